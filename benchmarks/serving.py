"""Latency and throughput of a served classifier, from text to logits.

    BERT_DATA_DIR=... python -m benchmarks.serving --shapes=minilm,base --output=benchmarks/results

Every contestant gets the same weights and the same texts (SST-2 sentences, SQuAD passages),
tokenises them with its own fast tokeniser and pads as its documentation says; logits are compared
before the clock starts. Each lives in a process of its own, and they take turns within one run.
Latency is for one text, throughput for batches of 32 of mixed length.
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import machine
from official_bert.common.markdown import markdown_table

# Layers, width, heads; "tiny" to try it out.
SHAPES = {"tiny": (2, 128, 2), "minilm": (6, 384, 12), "base": (12, 768, 12)}
CONTESTANTS = (
    "official_bert",
    "official_bert bfloat16",
    "official_bert Keras model",
    "PyTorch eager",
    "PyTorch compiled",
    "PyTorch eager bfloat16",
    "ONNX Runtime",
)
_FAR = 2e-3  # logits of float32 contestants differ by less


def main():
    compare("serving", __doc__, CONTESTANTS, make_models, contestant)


def compare(name, description, contestants, make, contestant):
    """Run a benchmark's command line: tables on stdout, NAME.json and NAME.md in --output.

    Args:
      name: of the benchmark.
      description: its first line is shown by --help.
      contestants: names of all there are.
      make, contestant: as for `measure`.
    """
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--shapes", default="minilm,base")
    parser.add_argument("--contestants", default="", help="comma-separated names; empty: all")
    parser.add_argument("--texts", type=int, default=64, help="texts of each kind")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data_dir", default=os.environ.get("BERT_DATA_DIR", ""))
    parser.add_argument("--output", default="", help=f"folder for {name}.json and {name}.md")
    options = parser.parse_args()
    if not options.data_dir:
        parser.error("--data_dir or BERT_DATA_DIR must name the folder of the data")
    names = [name for name in options.contestants.split(",") if name] or list(contestants)
    kinds = read_texts(Path(options.data_dir), options.texts)
    results, tables = {}, []
    for shape in options.shapes.split(","):
        rows, failed = measure(
            shape, names, kinds, options.rounds, options.data_dir, make, contestant
        )
        results[shape] = rows
        tables.append(markdown(shape, rows, failed))
        print(tables[-1] + "\n", flush=True)
    if options.output:
        folder = Path(options.output)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
        (folder / f"{name}.md").write_text("\n\n".join(tables) + "\n")


def read_texts(data_dir: Path, count: int) -> dict[str, list[str]]:
    """Return {kind: texts} of mixed length, the same in every run."""
    chosen = random.Random(0)
    sentences = (data_dir / "glue_data" / "SST-2" / "dev.tsv").read_text("utf-8").splitlines()[1:]
    squad = json.loads((data_dir / "squad_v1.1" / "dev-v1.1.json").read_text("utf-8"))
    passages = [p["context"] for article in squad["data"] for p in article["paragraphs"]]
    return {
        "SST-2": chosen.sample([line.split("\t")[0] for line in sentences], count),
        "SQuAD": chosen.sample(passages, count),
    }


def measure(shape, names, kinds, rounds, data_dir, make, contestant):
    """Return rows {contestant, kind: {p50_ms, p99_ms, texts_per_s}} and {contestant: why it
    failed}.

    Args:
      make: (shape, data_dir, folder) -> models in a folder; with their sizes in `sizes.json` rows
        have "megabytes" too.
      contestant: (name, folder) -> a function that answers texts.
    """
    with tempfile.TemporaryDirectory() as scratch:
        machine.in_a_process(make, shape, data_dir, scratch)
        sizes_file = Path(scratch, "sizes.json")
        sizes = json.loads(sizes_file.read_text()) if sizes_file.exists() else {}
        workers, failed, logits = {}, {}, {}
        for name in names:
            try:
                workers[name] = Worker(name, scratch, contestant)
                answers = [workers[name].ask(texts[:16])[0] for texts in kinds.values()]
                logits[name] = [value for answer in answers for row in answer for value in row]
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}"[:200].split("\n")[0]
                workers.pop(name, None)
        _check_equal(logits)
        times = {name: {kind: ([], []) for kind in kinds} for name in workers}
        for _ in range(rounds):
            for kind, texts in kinds.items():
                for name, worker in workers.items():
                    one, many = times[name][kind]
                    worker.ask(texts[:2])  # awake again
                    one += [worker.ask([text])[1] for text in texts]
                    many += [worker.ask(texts[i : i + 32])[1] for i in range(0, len(texts), 32)]
        for worker in workers.values():
            worker.close()
    rows = []
    for name, of_kind in times.items():
        row = {"contestant": name} | ({"megabytes": sizes[name]} if sizes else {})
        for kind, (one, many) in of_kind.items():
            row[kind] = {
                "p50_ms": 1e3 * statistics.median(one),
                "p99_ms": 1e3 * statistics.quantiles(one, n=100)[98],
                "texts_per_s": rounds * len(kinds[kind]) / sum(many),
            }
        rows.append(row)
    return rows, failed


def markdown(shape, rows, failed) -> str:
    layers, width, _ = SHAPES[shape]
    kinds = [name for name, of_kind in rows[0].items() if isinstance(of_kind, dict)]
    sizes = any("megabytes" in row for row in rows)
    table = [["", *["MB"] * sizes]]
    for kind in kinds:
        table[0] += [f"{kind}: p50 ms", "p99 ms", "texts/s, batch 32"]
    for row in rows:
        table.append([row["contestant"], *[f"{row.get('megabytes', 0):.0f}"] * sizes])
        for kind in kinds:
            found = row[kind]
            table[-1] += [f"{found[name]:.1f}" for name in ("p50_ms", "p99_ms")]
            table[-1].append(f"{found['texts_per_s']:.0f}")
    title = f"### {shape}: {layers} layers, {width} wide, from text"
    lines = [f"- {name}: did not run ({reason})" for name, reason in failed.items()]
    return "\n".join([title, "", *markdown_table(table), *lines])


class Worker:
    """A contestant in its own process."""

    def __init__(self, name, folder, contestant):
        context = multiprocessing.get_context("spawn")
        self._process = concurrent.futures.ProcessPoolExecutor(1, context)
        self._process.submit(_begin, contestant, name, folder).result()

    def ask(self, texts):
        """Return (logits, seconds) of a batch of texts."""
        return self._process.submit(_answer, texts).result()

    def close(self):
        self._process.shutdown()


def _begin(contestant, *arguments):
    global _predict  # of this process
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    _predict = contestant(*arguments)


def _answer(texts):
    start = time.perf_counter()
    logits = _predict(texts)
    seconds = time.perf_counter() - start
    return logits.tolist(), seconds


def make_models(shape, data_dir, folder):
    """Make a model with random weights as two exports, a model folder and a folder of
    transformers."""
    import official_bert
    from official_bert.checkpoints.hugging_face.huggingface import export_huggingface
    from official_bert.export import export

    model, tokenizer, settings = random_model(shape, data_dir)
    official_bert.save(f"{folder}/model", model, tokenizer, settings)
    export(f"{folder}/model", f"{folder}/float32")
    export(f"{folder}/model", f"{folder}/bfloat16", precision="bfloat16")
    export_huggingface(f"{folder}/transformers", model, tokenizer, settings)


def random_model(shape, data_dir):
    """Return (a classifier with random weights, its tokeniser, its settings)."""
    from official_bert import BertClassifier, BertConfig, BertEncoder, BertTokenizer

    layers, width, heads = SHAPES[shape]
    config = BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    model = BertClassifier(BertEncoder(config, seed=0), 2, seed=0)
    tokenizer = BertTokenizer(Path(data_dir) / "vocab" / "bert-base-uncased-vocab.txt")
    return model, tokenizer, {"labels": ["0", "1"], "max_seq_length": 384}


def contestant(name, folder):
    """Return texts -> numpy logits."""
    if name == "official_bert Keras model":
        return _keras_model(folder)
    if name.startswith("official_bert"):
        return saved_model(f"{folder}/{'bfloat16' if 'bfloat16' in name else 'float32'}")
    if name.startswith("PyTorch"):
        return _pytorch(folder, "compiled" in name, "bfloat16" in name)
    if name == "ONNX Runtime":
        return _onnx_runtime(folder)
    raise ValueError(f"no contestant {name}; there are {', '.join(CONTESTANTS)}")


def saved_model(folder):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    loaded = tf.saved_model.load(f"{folder}/1")
    run = loaded.signatures["serving_default"]
    return lambda texts: (loaded, run(text=tf.constant(texts))["logits"].numpy())[1]


def _keras_model(folder):
    """Return a function that pads a batch and calls the training model, as a plain server would."""
    import numpy as np
    import tensorflow as tf

    import official_bert

    loaded = official_bert.load(f"{folder}/model")
    call = tf.function(
        lambda ids, mask: loaded.model(
            {"input_ids": ids, "input_mask": mask, "segment_ids": tf.zeros_like(ids)}
        )["logits"],
        input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2,
    )
    cls_id, sep_id = loaded.tokenizer.cls_id, loaded.tokenizer.sep_id

    def predict(texts):
        flat, offsets = loaded.tokenizer.encode_batch(texts)
        rows = [flat[a:b][:382] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
        length = -(-(max(map(len, rows)) + 2) // 8) * 8
        ids, mask = np.zeros((2, len(rows), length), np.int32)
        for i, row in enumerate(rows):
            ids[i, : len(row) + 2] = [cls_id, *row, sep_id]
            mask[i, : len(row) + 2] = 1
        return call(ids, mask).numpy()

    return predict


def _pytorch(folder, compiled, bfloat16):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(f"{folder}/transformers")
    model = AutoModelForSequenceClassification.from_pretrained(
        f"{folder}/transformers", dtype=torch.bfloat16 if bfloat16 else torch.float32
    ).eval()
    run = torch.compile(model, dynamic=True) if compiled else model

    def predict(texts):
        batch = tokenizer(texts, padding=True, truncation=True, max_length=384, return_tensors="pt")
        with torch.inference_mode():
            return run(**batch).logits.float().numpy()

    return predict


def _onnx_runtime(folder):
    import onnxruntime
    import torch
    from onnxruntime.transformers import optimizer
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(f"{folder}/transformers")
    model = AutoModelForSequenceClassification.from_pretrained(
        f"{folder}/transformers", attn_implementation="eager"
    ).eval()
    model.config.return_dict = False
    names = ["input_ids", "attention_mask", "token_type_ids"]
    example = tokenizer(["a text", "another"], padding=True, return_tensors="pt")
    torch.onnx.export(
        model,
        tuple(example[name] for name in names),
        f"{folder}/model.onnx",
        input_names=names,
        output_names=["logits"],
        dynamic_axes={name: {0: "batch", 1: "length"} for name in names} | {"logits": {0: "batch"}},
        dynamo=False,
    )
    # Its own optimiser for BERT: fused attention, GELU and normalisation.
    config = model.config
    best = optimizer.optimize_model(
        f"{folder}/model.onnx",
        model_type="bert",
        num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size,
    )
    best.save_model_to_file(f"{folder}/optimised.onnx")
    print("ONNX Runtime fused:", best.get_fused_operator_statistics(), file=sys.stderr)
    session = onnxruntime.InferenceSession(f"{folder}/optimised.onnx")

    def predict(texts):
        batch = tokenizer(texts, padding=True, truncation=True, max_length=384, return_tensors="np")
        return session.run(["logits"], {name: batch[name] for name in names})[0]

    return predict


def _check_equal(logits):
    exact = {
        name: values for name, values in logits.items() if not name.endswith(("bfloat16", "int8"))
    }
    if not exact:
        return
    first, *others = exact
    for name in others:
        gap = max(abs(a - b) for a, b in zip(exact[first], exact[name], strict=True))
        if gap > _FAR:
            raise SystemExit(f"{first} and {name} differ by {gap:.1e}: not the same model")


if __name__ == "__main__":
    main()
