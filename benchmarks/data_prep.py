"""Speed and memory of pre-training data, beside the original's algorithm and other tokenisers.

    python benchmarks/data_prep.py --corpus='sentences/*.txt.gz' --vocab=vocab.txt --rounds=3

Where the original's own code is installed (`pip install --no-deps bert-tensorflow==1.0.4`, the
package that Google published) it runs too, under TensorFlow 2's compatibility module, beside our
slow reference of its algorithm. The corpus is what data_prep.sentences or data_prep.wikipedia
writes. Every run is a process of its own; contestants take turns, so that a machine whose speed
drifts slows all alike, and the best of the rounds counts. All have the same text. Ours learns the
words in the first megabytes, at some 0.25 s: --excerpt=5 shows what that makes of a small corpus.
Rates are by processor time of one core (start-up and imports left out), with the wall clock beside
it; on a quiet machine the two agree. Memory is the peak of the largest process, imports included.
"""

import argparse
import glob
import gzip
import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("create", "memory", "workers", "tokenise", "read")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", help="Glob of sentence files, plain or gzip.")
    parser.add_argument("--vocab", help="Uncased vocabulary.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--excerpt", type=float, default=20.0, help="MB for all contestants.")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--output", help="Write the results to this JSON file too.")
    parser.add_argument("--run", help=argparse.SUPPRESS)  # one contestant, as JSON
    arguments = parser.parse_args()
    if arguments.run:
        return print(json.dumps(_contestant(**json.loads(arguments.run))))
    with tempfile.TemporaryDirectory() as folder:
        bench = _Bench(arguments, folder)
        results = {part: getattr(bench, part)() for part in arguments.parts.split(",")}
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(results, indent=1) + "\n")


class _Bench:
    def __init__(self, arguments, folder):
        self._vocab, self._rounds, self._folder = arguments.vocab, arguments.rounds, Path(folder)
        self._excerpt = _text(arguments.corpus, arguments.excerpt, self._folder / "excerpt.txt")
        self._small = _text(arguments.corpus, 20, self._folder / "small.txt")
        self._large = _text(arguments.corpus, 120, self._folder / "large.txt")

    def create(self):
        """Sequences a second of one core at length 128."""
        table = {}
        for dupe in (1, 5):
            names = {"reference": "reference", "official_bert": "ours"}
            if importlib.util.find_spec("bert"):
                names = {"original": "original"} | names
            runs = self._in_turns(
                {
                    name: {"what": what, "text": self._excerpt, "dupe": dupe}
                    for name, what in names.items()
                }
            )
            slow = runs[next(iter(names))]
            for name, run in runs.items():
                table[f"{name}, dupe {dupe}"] = run | {
                    "sequences/s": run["sequences"] / run["cpu"],
                    "corpus MB/s": _megabytes(self._excerpt) / run["cpu"],
                    "ratio": slow["cpu"] / slow["sequences"] / (run["cpu"] / run["sequences"]),
                }
        return _print("records at length 128, one core", table)

    def memory(self):
        """Peak memory over a small and a large corpus."""
        table = {}
        for text in (self._small, self._large):
            run = _run(what="ours", text=text, dupe=5, vocab=self._vocab, folder=self._folder)
            table[f"{_megabytes(text):.0f} MB"] = run | {
                "sequences/s": run["sequences"] / run["cpu"],
                "corpus MB/s": _megabytes(text) / run["cpu"],
            }
        return _print("one worker, dupe 5", table)

    def workers(self):
        """Wall clock of 1 and 2 workers."""
        contestants = {
            f"{number} workers": {
                "what": "ours",
                "text": self._large,
                "dupe": 5,
                "num_workers": number,
            }
            for number in (1, 2)
        }
        runs = self._in_turns(contestants, key="wall")
        for run in runs.values():
            run["speed-up"] = runs["1 workers"]["wall"] / run["wall"]
        return _print("local processes, dupe 5", runs)

    def tokenise(self):
        """Megabytes a second of one core."""
        names = ["original", "official_bert", "huggingface", "tensorflow_text"]
        contestants = {
            name: {"what": "tokenise", "name": name, "text": self._excerpt} for name in names
        }
        contestants["official_bert, 20 MB"] = contestants["official_bert"] | {"text": self._small}
        runs = self._in_turns(contestants)
        for name, run in runs.items():
            text = self._small if "20 MB" in name else self._excerpt
            run["MB/s"] = _megabytes(text) / run["cpu"]
        return _print("tokenisation, one core", runs)

    def read(self):
        """Sequences a second through the reader of records."""
        contestants = {}
        for dynamic in (False, True):
            kind = "dynamic" if dynamic else "static"
            folder = str(self._folder / kind)
            _run(
                what="ours",
                text=self._small,
                dupe=2,
                vocab=self._vocab,
                folder=self._folder,
                output=folder,
                dynamic=dynamic,
            )
            for batch in (32, 256):
                contestants[f"{kind} masks, batches of {batch}"] = {
                    "what": "read",
                    "text": folder,
                    "batch": batch,
                }
        runs = self._in_turns(contestants, key="wall")
        for run in runs.values():
            run["sequences/s"] = run["sequences"] / run["wall"]
        return _print("reading, two threads", runs)

    def _in_turns(self, contestants, key="cpu"):
        best = {}
        for _ in range(self._rounds):
            for name, options in contestants.items():
                run = _run(vocab=self._vocab, folder=self._folder, **options)
                if name not in best or run[key] < best[name][key]:
                    best[name] = run
        return best


def _run(folder, **options):
    """One contestant in a process of its own; returns what it measured."""
    options["folder"] = str(folder)
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "2"}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, f"--run={json.dumps(options)}"],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _contestant(what, folder, vocab, text, **options):
    sys.path.insert(0, str(ROOT))
    work = {
        "original": _original,
        "reference": _reference,
        "ours": _ours,
        "tokenise": _tokenise,
        "read": _read,
    }[what]
    measured = work(text, vocab, folder, **options)
    # Of the largest process, in MB.
    peaks = [resource.getrusage(who).ru_maxrss for who in (_SELF, resource.RUSAGE_CHILDREN)]
    return measured | {"peak MB": max(peaks) / 1024}


_SELF = resource.RUSAGE_SELF


def _timed(function):
    wall, cpu = time.perf_counter(), time.process_time()
    sequences = function()
    return {
        "sequences": sequences,
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
    }


def _original(text, vocab, folder, dupe):
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
        output = os.path.join(folder, "original.tfrecord")
        create_pretraining_data.write_instance_to_example_files(
            instances, tokenizer, 128, 20, [output]
        )
        return len(instances)

    return _timed(work)


def _reference(text, vocab, folder, dupe):
    import tensorflow as tf

    from benchmarks import original_pretraining_data as original
    from official_bert.tokenization import BertTokenizer

    tokenizer = BertTokenizer(vocab)
    ids = {piece: index for index, piece in enumerate(tokenizer.vocab)}
    tf.train.Example()  # imported before the clock starts

    def work():
        documents = original.read_documents([text], tokenizer)
        examples = original.make_examples(documents, tokenizer.vocab, dupe_factor=dupe)
        original.write_records(examples, ids, os.path.join(folder, "original.tfrecord"))
        return len(examples)

    return _timed(work)


def _ours(text, vocab, folder, dupe, num_workers=1, output="", dynamic=False):
    from data_prep.create_pretraining_data import create
    from data_prep.jobs import workers  # noqa: F401  (imported before the clock starts)
    from data_prep.pretraining import shards  # noqa: F401  (imported before the clock starts)
    from official_bert.tokenization import fast  # noqa: F401

    scratch = output or os.path.join(folder, "ours")
    shutil.rmtree(scratch, ignore_errors=True)

    def work():
        manifest = create(
            text,
            vocab,
            scratch,
            dupe_factor=dupe,
            num_workers=num_workers,
            dynamic_masking=dynamic,
            progress=False,
        )
        return manifest["counts"]["examples"]

    measured = _timed(work)
    if not output:
        shutil.rmtree(scratch)
    return measured


def _tokenise(text, vocab, folder, name):
    encode = {
        "original": _original_tokenizer,
        "official_bert": _our_tokenizer,
        "huggingface": _huggingface_tokenizer,
        "tensorflow_text": _tensorflow_tokenizer,
    }[name](vocab)
    with open(text, encoding="utf-8") as file:
        lines = file.read().split("\n")

    def work():
        for start in range(0, len(lines), 8192):
            encode(lines[start : start + 8192])
        return len(lines)

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


def _read(text, vocab, folder, batch):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(2)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    from data_prep.records import open_records, pretraining_dataset

    records = open_records(text)
    for _ in pretraining_dataset(records, batch).take(20):
        pass  # files cached, functions traced

    def work():
        batches = 0
        for _ in pretraining_dataset(records, batch, epochs=4):
            batches += 1
        return batches * batch

    return _timed(work)


def _text(pattern, megabytes, path):
    """About so many MB of the corpus, taken evenly from all files, as one plain file."""
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


def _megabytes(path):
    return os.path.getsize(path) / 1e6


def _print(title, table):
    columns = dict.fromkeys(name for row in table.values() for name in row)
    print(f"\n{title}\n| | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name, row in table.items():
        values = (row.get(column, "") for column in columns)
        print(f"| {name} | " + " | ".join(_readable(value) for value in values) + " |")
    sys.stdout.flush()
    return table


def _readable(value):
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"


if __name__ == "__main__":
    main()
