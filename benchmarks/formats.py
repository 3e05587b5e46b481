"""Size, latency and throughput of what experiments.export writes, from text to logits.

    BERT_DATA_DIR=... python -m benchmarks.formats --shapes=minilm,base --output=benchmarks/results

Measured as in `serving.py`: the same weights and texts for every format, each in a process of its
own, in turns within one run; latency for one text, throughput for batches of 32 of mixed length. A
SavedModel has its tokeniser inside; in front of the others stands the library `tokenizers` with the
export's own `tokenizer.json`, padding to the longest text of the batch.
"""

import json
import os
from pathlib import Path

from benchmarks import serving

CONTESTANTS = {  # format, precision
    "SavedModel": ("saved_model", "float32"),
    "SavedModel bfloat16": ("saved_model", "bfloat16"),
    "ONNX": ("onnx", "float32"),
    "ONNX int8": ("onnx", "int8"),
    "LiteRT": ("litert", "float32"),
    "LiteRT int8": ("litert", "int8"),
}


def main():
    serving.compare("formats", __doc__, CONTESTANTS, make_models, contestant)


def make_models(shape, data_dir, folder):
    """Make a model with random weights in every format; write their megabytes to `sizes.json`."""
    import official_bert
    from official_bert import export as exports

    model, tokenizer, settings = serving.random_model(shape, data_dir)
    official_bert.save(f"{folder}/model", model, tokenizer, settings)
    sizes = {}
    for name, (format, precision) in CONTESTANTS.items():
        path, options = Path(folder, name), {"precision": precision}
        if format == "saved_model":
            exports.export(f"{folder}/model", path, **options)
        else:
            exports.export_ids(f"{folder}/model", path, format=format, **options)
        sizes[name] = sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6
    Path(folder, "sizes.json").write_text(json.dumps(sizes))


def contestant(name, folder):
    """Return texts -> numpy logits."""
    format, _ = CONTESTANTS[name]
    if format == "saved_model":
        return serving.saved_model(f"{folder}/{name}")
    run = {"onnx": _onnx, "litert": _litert}[format](Path(folder, name))
    encode = _tokenizer(Path(folder, name))
    return lambda texts: run(encode(texts))


def _tokenizer(folder):
    import numpy as np
    import tokenizers

    reader = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))

    def encode(texts):
        rows = reader.encode_batch(texts)
        batch = {
            "input_ids": [row.ids for row in rows],
            "input_mask": [row.attention_mask for row in rows],
            "segment_ids": [row.type_ids for row in rows],
        }
        return {name: np.array(value, np.int32) for name, value in batch.items()}

    return encode


def _onnx(folder):
    import onnxruntime

    session = onnxruntime.InferenceSession(folder / "model.onnx")
    return lambda batch: session.run(["logits"], batch)[0]


def _litert(folder):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(folder / "model.tflite"), num_threads=os.cpu_count())
    run = interpreter.get_signature_runner()
    return lambda batch: run(**batch)["logits"]


if __name__ == "__main__":
    main()
