"""ONNX and LiteRT files of models, which take token ids.

Begin with `id_export.export_ids`, which writes a folder and compares the file's answers with the
model's. `onnx_graph` writes the encoder node by node and `onnx_file` adds the heads;
`litert_file` asks TensorFlow's converter. The command `experiments.export` calls this room.
"""
