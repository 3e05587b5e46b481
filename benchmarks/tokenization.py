"""Rates of texts to WordPiece ids, beside other tokenisers.

    python -m benchmarks.tokenization --input='corpus/*/*.txt.gz' --vocab=vocab.txt

One process, one thread where a library lets us choose. The contestants take turns over the rounds
and the best round counts, so that a busy machine disturbs all alike. The last column says how many
lines get other ids than the original's algorithm gives. Peers that are not installed are left out.
"""

import glob
import gzip
import json
import os
import sys
import time

from absl import flags

from official_bert.common import commands
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_write

_INPUT = flags.DEFINE_string("input", None, "Glob of text files, plain or .gz.")
_VOCAB = flags.DEFINE_string("vocab", None, "The vocabulary, an uncased one.")
_MEGABYTES = flags.DEFINE_float("megabytes", 8.0, "How much text to use.")
_ROUNDS = flags.DEFINE_integer("rounds", 3, "How often each contestant runs.")
_OUTPUT = flags.DEFINE_string("output", "", "A JSON file for the results as well.")

_BATCH = 512  # lines a call, for those that take batches


def main(_):
    if not _INPUT.value or not _VOCAB.value:
        raise UserError("name texts and a vocabulary: --input='corpus/*.txt.gz' --vocab=vocab.txt")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    lines = _lines(_INPUT.value, _MEGABYTES.value)
    results = measure(lines, _VOCAB.value, _ROUNDS.value)
    print("| tokeniser | MB/s | against the original | lines that differ |\n|---|---|---|---|")
    for row in results:
        print("| {name} | {mb_per_s:.2f} | {ratio:.1f} | {differing} of {lines} |".format(**row))
    if _OUTPUT.value:
        with atomic_write(_OUTPUT.value) as file:
            file.write(json.dumps(results, indent=1) + "\n")


def measure(lines: list[str], vocab_path: str, rounds: int) -> list[dict]:
    """Runs all contestants in turn; the first is the reference that the others are held to."""
    megabytes = sum(len(line.encode()) + 1 for line in lines) / 1e6
    contestants = _contestants(vocab_path)
    best, outputs = {}, {}
    for number in range(rounds):
        for name, run in contestants.items():
            print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
            started = time.perf_counter()
            output = run(lines)
            seconds = time.perf_counter() - started
            best[name] = min(seconds, best.get(name, seconds))
            outputs[name] = output
    reference, *_ = contestants
    want = list(_rows(outputs[reference]))
    return [
        {
            "name": name,
            "mb_per_s": megabytes / best[name],
            "ratio": best[reference] / best[name],
            "differing": sum(a != b for a, b in zip(want, _rows(outputs[name]), strict=True)),
            "lines": len(lines),
        }
        for name in contestants
    ]


def _contestants(vocab_path):
    """From names to functions of lines; what they return `_rows` understands."""
    from official_bert.tokenization import BertTokenizer

    ours, warm = BertTokenizer(vocab_path), BertTokenizer(vocab_path)

    def cold(lines):
        return BertTokenizer(vocab_path).encode_batch(lines)

    return {
        "the original's algorithm": lambda lines: [ours.encode(line) for line in lines],
        "encode_batch, words not seen before": cold,
        "encode_batch, words seen before": warm.encode_batch,
        **_tensorflow(ours, vocab_path),
        **_hugging_face(vocab_path),
    }


def _tensorflow(ours, vocab_path):
    try:
        import tensorflow as tf
        import tensorflow_text as tf_text

        from official_bert.tokenization.in_graph import InGraphTokenizer
    except ImportError as error:
        print(f"left out: TensorFlow's ({error})", file=sys.stderr)
        return {}
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)

    def in_batches(tokenize):
        tokenize(tf.constant(["traced once"]))

        def run(lines):
            batches = (lines[i : i + _BATCH] for i in range(0, len(lines), _BATCH))
            return [tokenize(tf.constant(batch)) for batch in batches]

        return run

    slow = tf_text.BertTokenizer(vocab_path, token_out_type=tf.int32, lower_case=True)
    fast = tf_text.FastBertTokenizer(
        ours.vocab, token_out_type=tf.int32, lower_case_nfd_strip_accents=True
    )
    return {
        "InGraphTokenizer": in_batches(InGraphTokenizer(ours.vocab)),
        "tensorflow-text BertTokenizer": in_batches(
            lambda texts: slow.tokenize(texts).merge_dims(-2, -1)
        ),
        "tensorflow-text FastBertTokenizer": in_batches(fast.tokenize),
    }


def _hugging_face(vocab_path):
    try:
        import tokenizers
    except ImportError as error:
        print(f"left out: tokenizers ({error})", file=sys.stderr)
        return {}
    tokenizer = tokenizers.BertWordPieceTokenizer(vocab_path, lowercase=True)

    def run(lines):
        return [found.ids for found in tokenizer.encode_batch(lines, add_special_tokens=False)]

    return {"Hugging Face tokenizers": run}


def _rows(output):
    """The ids of each line, whatever a contestant returned."""
    if isinstance(output, tuple):
        ids, offsets = output
        for start, end in zip(offsets[:-1], offsets[1:], strict=True):
            yield ids[start:end].tolist()
    else:
        for item in output:
            if isinstance(item, list):
                yield item
            else:
                yield from item.to_list()


def _lines(pattern, megabytes):
    """Lines of all files in equal shares, so that every kind of text is in."""
    paths = sorted(glob.glob(pattern, recursive=True))
    if not paths:
        raise UserError(f"--input: no file matches {pattern}")
    lines = []
    for path in paths:
        opened = gzip.open if path.endswith(".gz") else open
        with opened(path, "rb") as file:
            text = file.read(int(megabytes * 1e6 / len(paths)))
        lines += text.decode("utf-8", "ignore").split("\n")
    return lines


if __name__ == "__main__":
    commands.run(main)
