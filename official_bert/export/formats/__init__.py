"""ONNX and LiteRT files of models, which take token ids."""
