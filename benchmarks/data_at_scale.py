"""The whole path from text to records on a synthetic corpus of many gigabytes.

    python benchmarks/data_at_scale.py --articles='wikipedia/*.txt.gz' --books='books/*.txt.gz' \\
        --vocab=vocab.txt --gigabytes=1,20 --folder=/scratch --output=results.json

The corpus is the given articles and books again and again, one word in ten replaced by another of
them, drawn as often as it is written: it compresses like text, and its documents differ. Of each
size are measured: sentences; records of length 128 and, from the same token store, 512; those of
128 again, killed with SIGKILL at 40% of the time and continued, whose bytes have to be the same;
and with --beam the same on a tenth with Beam's direct runner. Of each step: time, processor time,
the peak memory of every process (VmHWM), the most disk, and how many reads of which size the
pipeline asked for. All of it is deleted at the end: --folder needs about 30 times the size free.
"""

import argparse
import functools
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

_FILE_BYTES = 64_000_000  # of the synthetic corpus
_SUBSTITUTED = 0.1
_CHAPTER = 60  # paragraphs of a book that are a document


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--articles", help="Glob of articles: paragraphs a line, blank lines.")
    parser.add_argument("--books", help="Glob of books: paragraphs between blank lines.")
    parser.add_argument("--vocab", help="Uncased vocabulary.")
    parser.add_argument("--gigabytes", default="1", help="Sizes of the corpus, with commas.")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--dupe_factor", type=int, default=5)
    parser.add_argument("--beam", action="store_true", help="Run a tenth on Beam, too.")
    parser.add_argument("--folder", help="Where there is room for it.")
    parser.add_argument("--output", help="Write the results to this JSON file too.")
    parser.add_argument("--step", help=argparse.SUPPRESS)  # one step, as JSON
    parser.add_argument("--reads", help=argparse.SUPPRESS)  # where it notes its reads
    arguments = parser.parse_args()
    if arguments.step:
        return _step(arguments.reads, **json.loads(arguments.step))
    results = {}
    for gigabytes in arguments.gigabytes.split(","):
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            results[f"{gigabytes} GB"] = _measure(float(gigabytes), Path(folder), arguments)
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(results, indent=1) + "\n")


def _measure(gigabytes, folder, arguments):
    """Every step of one size: {step: what `_run` returns}."""
    started = time.perf_counter()
    documents = _documents(arguments.articles, arguments.books)
    size = _write_corpus(documents, int(gigabytes * 1e9), folder / "raw", arguments.workers)
    print(f"\n{size / 1e9:.2f} GB of text made in {time.perf_counter() - started:.0f} s")
    steps, texts = {}, folder / "sentences"
    split = {"layout": "articles", "num_workers": arguments.workers}
    steps["sentences"] = _run(
        folder, "split_files", inputs=str(folder / "raw" / "*"), output=str(texts), **split
    )
    shutil.rmtree(folder / "raw")

    def records(name, inputs="*", kill_after=None, **options):
        options = {
            "vocab_path": arguments.vocab,
            "num_workers": arguments.workers,
            "dupe_factor": arguments.dupe_factor,
        } | options
        pattern, output = str(texts / f"{inputs}.txt.gz"), str(folder / name)
        return _run(folder, "create", kill_after, inputs=pattern, output=output, **options)

    store = str(folder / "store")
    steps["length 128"] = records("128", token_store=store)
    long = {"max_seq_length": 512, "max_predictions_per_seq": 77, "token_store": store}
    steps["length 512, same store"] = records("512", **long)
    _remove(folder / "512", store)
    steps["length 128, killed"] = records("again", kill_after=0.4 * steps["length 128"]["seconds"])
    steps["length 128, continued"] = records("again")
    _check_equal(folder / "128", folder / "again")
    _remove(folder / "128", folder / "again")
    if arguments.beam:
        steps["a tenth"] = records("tenth", inputs="*0")
        options = ["direct_running_mode=multi_processing"]
        options += [f"direct_num_workers={arguments.workers}"]
        steps["a tenth on Beam"] = records("beam", inputs="*0", beam=options)
        _check_equal(folder / "tenth", folder / "beam")
    _print(steps)
    return {"bytes": size, "steps": steps}


def _documents(articles, books):
    """Lists of paragraphs, the first the title."""
    from data_prep.corpus.text_files import text_lines

    documents = []
    for path in sorted(glob.glob(articles)):
        text = "\n".join(text_lines(path))
        documents += [block.split("\n") for block in re.split(r"\n\n+", text) if "\n" in block]
    for path in sorted(glob.glob(books)):
        text = "\n".join(text_lines(path))
        paragraphs = [block.replace("\n", " ") for block in re.split(r"\n\s*\n", text)]
        for at in range(0, len(paragraphs), _CHAPTER):
            documents.append([f"Chapter {at // _CHAPTER}", *paragraphs[at : at + _CHAPTER]])
    return documents


def _write_corpus(documents, size, folder, workers):
    """Writes files of about _FILE_BYTES, together `size` bytes; returns how many it became."""
    from data_prep.jobs.processes import Processes

    os.makedirs(folder)
    words = [np.array(" \n ".join(document).split(" "), object) for document in documents]
    write = functools.partial(_write_file, words, min(size, _FILE_BYTES), folder)
    with Processes(workers) as processes:
        return sum(processes.map(write, range(max(1, round(size / _FILE_BYTES)))))


def _write_file(words, size, folder, number):
    generator = np.random.default_rng(number)
    every, written = np.concatenate(words), 0
    every = every[every != "\n"]
    with open(folder / f"text-{number:05d}.txt", "w", encoding="utf-8") as file:
        while written < size:
            document = words[generator.integers(len(words))].copy()
            chosen = (generator.random(len(document)) < _SUBSTITUTED) & (document != "\n")
            document[chosen] = generator.choice(every, chosen.sum())
            text = " ".join(document).replace(" \n ", "\n")
            written += len(file.write(f"{text}\n\n") and text.encode())
    return written


def _step(reads, function, **options):
    """One step in this process and its workers, whose reads are noted."""
    from data_prep.create_pretraining_data import create
    from data_prep.jobs import storage
    from data_prep.jobs.beam import BeamWorkers
    from data_prep.sentences import split_files

    notes = os.open(reads, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for name in ("read_bytes", "read_array"):
        setattr(storage, name, _noting(notes, getattr(storage, name)))
    if "beam" in options:
        options["workers"] = BeamWorkers("DirectRunner", options.pop("beam"))
    {"create": create, "split_files": split_files}[function](**options, progress=False)


def _noting(notes, read):
    def noted(path, *arguments, **named):
        found = read(path, *arguments, **named)
        size = getattr(found, "nbytes", None) or len(found)
        os.write(notes, f"{path.rpartition('.')[2][-12:]} {size}\n".encode())
        return found

    return noted


def _run(folder, function, kill_after=None, **options):
    """A step in a process group of its own, watched."""
    reads = folder / "reads"
    reads.unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, __file__, f"--reads={reads}"]
        + [f"--step={json.dumps({'function': function, **options})}"],
        start_new_session=True,
    )
    watched = _Watched(process.pid, folder)
    try:
        process.wait(kill_after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    peaks, disk = watched.end()
    if process.returncode and kill_after is None:
        raise SystemExit(f"the step {function} ended with {process.returncode}")
    return {
        "seconds": seconds,
        "processor seconds": sum(
            getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime")
        ),
        "peak MB": peaks,
        "disk GB": disk / 1e9,
        "killed": process.returncode == -signal.SIGKILL,
        "reads": _summary(reads),
    }


class _Watched(threading.Thread):
    """Samples the memory of a process and of those below it, and the disk that a folder takes."""

    def __init__(self, pid, folder):
        super().__init__(daemon=True)
        self._pid, self._folder = pid, folder
        self._peaks, self._disk, self._over = {}, 0, threading.Event()
        self.start()

    def run(self):
        while not self._over.wait(0.25):
            self._sample()

    def end(self):
        """MB at the peak of each process, the largest first; bytes of disk at their most."""
        self._over.set()
        self.join()
        return sorted(
            (round(peak / 1024) for peak in self._peaks.values()), reverse=True
        ), self._disk

    def _sample(self):
        for pid in _below(self._pid):
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue  # it has ended
            if peak := re.search(r"VmHWM:\s+(\d+)", status):
                self._peaks[pid] = max(self._peaks.get(pid, 0), int(peak[1]))
        self._disk = max(self._disk, _disk(self._folder))


def _below(pid):
    found = [pid]
    for process in found:
        for path in glob.glob(f"/proc/{process}/task/*/children"):
            try:
                found += map(int, Path(path).read_text().split())
            except OSError:
                continue
    return found


def _disk(folder):
    total, folders = 0, [folder]
    for path in folders:
        try:
            for entry in os.scandir(path):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue  # it was removed meanwhile
    return total


def _summary(reads):
    """{ending of the files: {"number", "mean bytes"}}."""
    sizes = defaultdict(list)
    for line in reads.read_text().splitlines() if reads.exists() else ():
        kind, size = line.rsplit(" ", 1)
        sizes[kind].append(int(size))
    return {
        kind: {"number": len(found), "mean bytes": round(sum(found) / len(found))}
        for kind, found in sizes.items()
        if kind in ("rows", "keys", "tokens", "sentences", "documents")
    }


def _check_equal(one, other):
    """Raises SystemExit unless two sets of records have the same bytes."""
    manifests = [json.loads((folder / "manifest.json").read_text()) for folder in (one, other)]
    if manifests[0]["shards"] != manifests[1]["shards"]:
        raise SystemExit(f"{one} and {other} differ")


def _remove(*folders):
    for folder in folders:
        shutil.rmtree(folder)


def _print(steps):
    print("| step | seconds | processor s | peak MB of a process | disk GB | reads |")
    print("|---" * 6 + "|")
    for name, step in steps.items():
        reads = ", ".join(
            f"{kind} {found['number']:,} of {found['mean bytes'] / 1e3:,.0f} kB"
            for kind, found in step["reads"].items()
        )
        print(
            f"| {name}{' (SIGKILL)' if step['killed'] else ''} | {step['seconds']:,.1f} | "
            f"{step['processor seconds']:,.1f} | {', '.join(map(str, step['peak MB'][:4]))} | "
            f"{step['disk GB']:.2f} | {reads} |"
        )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
