"""Speed of pre-training data, beside the original's algorithm and other tokenisers.

    python -m benchmarks.data_prep --corpus='sentences/*.txt.gz' --vocab=vocab.txt --rounds=3

Where the original's own code is installed (`pip install --no-deps bert-tensorflow==1.0.4`, the
package that Google published) it runs too, under TensorFlow 2's compatibility module, beside our
slow reference of its algorithm. The corpus is what data_prep.sentences or data_prep.wikipedia
writes. Every run is a process of its own; contestants take turns, so that a machine whose speed
drifts slows all alike, and the best of the rounds counts. All have the same text. Ours learns the
words in the first megabytes, at some 0.25 s: --excerpt=5 shows what that makes of a small corpus.
Rates are by processor time of one core (start-up and imports left out), with the wall clock beside
it; on a quiet machine the two agree. Memory is the peak of the process, imports included.
"""

import argparse
import glob
import gzip
import importlib.util
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import machine
from official_bert.common.markdown import markdown_table

PARTS = ("create", "tokenise", "read")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", required=True, help="Glob of sentence files, plain or gzip.")
    parser.add_argument("--vocab", required=True, help="Uncased vocabulary.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--excerpt", type=float, default=20.0, help="MB for all contestants.")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--output", default="", help="Folder for data_prep.json.")
    arguments = parser.parse_args()
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    with tempfile.TemporaryDirectory() as folder:
        bench = _Bench(arguments, folder)
        results = {part: getattr(bench, part)() for part in arguments.parts.split(",")}
    if arguments.output:
        path = Path(arguments.output, "data_prep.json")
        path.write_text(json.dumps(results, indent=1) + "\n")


class _Bench:
    def __init__(self, arguments, folder):
        self._vocab, self._rounds, self._folder = arguments.vocab, arguments.rounds, Path(folder)
        self._excerpt = _text(arguments.corpus, arguments.excerpt, self._folder / "excerpt.txt")
        self._megabytes = os.path.getsize(self._excerpt) / 1e6

    def create(self):
        """Return sequences a second of one core at length 128."""
        table = {}
        for dupe in (1, 5):
            contestants = {"reference": _reference, "official_bert": _ours}
            if importlib.util.find_spec("bert"):
                contestants = {"original": _original} | contestants
            runs = self._in_turns({name: (work, dupe) for name, work in contestants.items()})
            slow = runs[next(iter(contestants))]
            for name, run in runs.items():
                table[f"{name}, dupe {dupe}"] = run | {
                    "sequences/s": run["sequences"] / run["cpu"],
                    "corpus MB/s": self._megabytes / run["cpu"],
                    "ratio": slow["cpu"] / slow["sequences"] / (run["cpu"] / run["sequences"]),
                }
        return _print("records at length 128, one core", table)

    def tokenise(self):
        """Return megabytes a second of one core."""
        runs = self._in_turns({name: (_tokenise, name) for name in _TOKENISERS})
        for run in runs.values():
            run["MB/s"] = self._megabytes / run["cpu"]
        return _print("tokenisation, one core", runs)

    def read(self):
        """Return sequences a second through the reader of records."""
        contestants = {}
        for kind in ("static", "dynamic"):
            made = str(self._folder / kind)
            self._run(_ours, 2, made, kind == "dynamic")
            for batch in (32, 256):
                contestants[f"{kind} masks, batches of {batch}"] = _read, made, batch
        runs = self._in_turns(contestants, key="wall")
        for run in runs.values():
            run["sequences/s"] = run["sequences"] / run["wall"]
        return _print("reading, two threads", runs)

    def _in_turns(self, contestants, key="cpu"):
        best = {}
        for _ in range(self._rounds):
            for name, (work, *options) in contestants.items():
                run = self._run(work, *options)
                if name not in best or run[key] < best[name][key]:
                    best[name] = run
        return best

    def _run(self, work, *options):
        """Run one contestant in a process of its own; return what it measured."""
        return machine.in_a_process(_measured, work, self._excerpt, self._vocab, *options)


def _measured(work, *arguments):
    return work(*arguments) | {"peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _timed(function):
    wall, cpu = time.perf_counter(), time.process_time()
    sequences = function()
    return {
        "sequences": sequences,
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
    }


def _original(text, vocab, dupe):
    import random

    import tensorflow.compat.v1 as tf

    sys.modules["tensorflow"] = tf  # what TensorFlow 1 programs import
    from bert import create_pretraining_data, tokenization

    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.flags.FLAGS(["", f"--input_file={text}", "--output_file=x", f"--vocab_file={vocab}"])

    def work():
        tokenizer = tokenization.FullTokenizer(vocab, do_lower_case=True)
        instances = create_pretraining_data.create_training_instances(
            [text], tokenizer, 128, dupe, 0.1, 0.15, 20, random.Random(12345)
        )
        create_pretraining_data.write_instance_to_example_files(
            instances, tokenizer, 128, 20, [f"{text}.original.tfrecord"]
        )
        return len(instances)

    return _timed(work)


def _reference(text, vocab, dupe):
    import tensorflow as tf

    from benchmarks import original_pretraining_data as original
    from official_bert.tokenization import BertTokenizer

    tokenizer = BertTokenizer(vocab)
    ids = {piece: index for index, piece in enumerate(tokenizer.vocab)}
    tf.train.Example()  # imported before the clock starts

    def work():
        documents = original.read_documents([text], tokenizer)
        examples = original.make_examples(documents, tokenizer.vocab, dupe_factor=dupe)
        original.write_records(examples, ids, f"{text}.reference.tfrecord")
        return len(examples)

    return _timed(work)


def _ours(text, vocab, dupe, output="", dynamic=False):
    from data_prep.create_pretraining_data import create
    from data_prep.jobs import workers  # noqa: F401  (imported before the clock starts)
    from data_prep.pretraining import shards  # noqa: F401  (imported before the clock starts)
    from official_bert.tokenization import fast  # noqa: F401

    made = output or f"{text}.ours"
    options = {"dupe_factor": dupe, "num_workers": 1, "dynamic_masking": dynamic}

    def work():
        return create(text, vocab, made, progress=False, **options)["counts"]["examples"]

    measured = _timed(work)
    if not output:
        shutil.rmtree(made)
    return measured


def _tokenise(text, vocab, name):
    encode = _TOKENISERS[name](vocab)
    with open(text, encoding="utf-8") as file:
        lines = file.read().split("\n")

    def work():
        for start in range(0, len(lines), 8192):
            encode(lines[start : start + 8192])
        return len(lines)

    if "known" in name:
        work()
    return _timed(work)


def _original_tokenizer(vocab):
    from official_bert.tokenization import BertTokenizer

    tokenizer = BertTokenizer(vocab)
    index = {piece: place for place, piece in enumerate(tokenizer.vocab)}
    return lambda lines: [[index[piece] for piece in tokenizer.tokenize(line)] for line in lines]


def _our_tokenizer(vocab):
    from official_bert.tokenization import BertTokenizer

    return BertTokenizer(vocab).encode_batch


def _huggingface_tokenizer(vocab):
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(vocab, lowercase=True)
    return lambda lines: tokenizer.encode_batch(lines, add_special_tokens=False)


def _tensorflow_tokenizer(vocab):
    import tensorflow as tf
    import tensorflow_text

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    pieces = Path(vocab).read_text(encoding="utf-8").splitlines()
    tokenizer = tensorflow_text.FastBertTokenizer(pieces, lower_case_nfd_strip_accents=True)
    return lambda lines: tokenizer.tokenize(tf.constant(lines))


_TOKENISERS = {
    "original": _original_tokenizer,
    "official_bert": _our_tokenizer,
    "official_bert, known words": _our_tokenizer,
    "huggingface": _huggingface_tokenizer,
    "tensorflow_text": _tensorflow_tokenizer,
}


def _read(text, vocab, folder, batch):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(2)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    from data_prep.records import open_records, pretraining_dataset

    records = open_records(folder)
    for _ in pretraining_dataset(records, batch).take(20):
        pass  # files cached, functions traced

    def work():
        batches = 0
        for _ in pretraining_dataset(records, batch, epochs=4):
            batches += 1
        return batches * batch

    return _timed(work)


def _text(pattern, megabytes, path):
    """Return about so many MB of the corpus, taken evenly from all files, as one plain file."""
    files = sorted(glob.glob(pattern, recursive=True))
    if not files:
        raise SystemExit(f"no file matches {pattern!r}")
    share = int(megabytes * 1e6 / len(files))
    missing = 0  # what short files leave to the others
    with open(path, "w", encoding="utf-8") as output:
        for file in files:
            with (gzip.open if file.endswith(".gz") else open)(
                file, "rt", encoding="utf-8"
            ) as text:
                taken = 0
                while taken < share + missing and (lines := text.readlines(1 << 16)):
                    output.writelines(lines)
                    taken += sum(map(len, lines))
                missing = max(0, share + missing - taken)
            output.write("\n")
    return str(path)


def _print(title, table):
    columns = dict.fromkeys(name for row in table.values() for name in row)
    rows = [[name, *(_readable(row.get(c, "")) for c in columns)] for name, row in table.items()]
    print(f"\n{title}\n" + "\n".join(markdown_table([["", *columns], *rows])), flush=True)
    return table


def _readable(value):
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"


if __name__ == "__main__":
    main()
