"""The whole path from text to records on a synthetic corpus of many gigabytes.

    python -m benchmarks.data_at_scale --articles='wikipedia/*.txt.gz' --books='books/*.txt.gz' \\
        --vocab=vocab.txt --gigabytes=1,20 --dupe_factor=1 --folder=/scratch/scale \\
        --output=results.json

The corpus is the given articles and books again and again, one word in ten replaced by another of
them, drawn as often as it is written: it compresses like text, and its documents differ. Of each
size are measured, as --steps says:

    sentences  always; the text is written and split a gigabyte at a time, and removed
    128        always; records of length 128
    512        records of length 512, from the same token store
    beam       a tenth of the files, here and with Beam's direct runner (--beam_python), whose bytes
               have to be the same
    killed     those of 128 again, killed with SIGKILL at 40% of the time and continued, whose bytes
               have to be the same

Of each step: time, processor time, the peak memory of every process (VmHWM), the most disk, and how
many reads of which size the pipeline asked for. Finished shards of records are taken away while
others are made, as to another disk, and compared by the checksums of their bytes in the manifest.

Ctrl-C, SIGTERM or a lost machine stop it at any time, and the same command goes on where it was:
figures lie in FOLDER/20GB/state.json and, unfinished too, in --output. A step's time is that of its
parts together. The folder is emptied at the end. It needs about twice the size free at
--dupe_factor=1, and 1.4 times more for each further duplication.
"""

import argparse
import contextlib
import functools
import glob
import itertools
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

from benchmarks import machine
from official_bert.common.files import write_text
from official_bert.common.markdown import markdown_table

_FILE_BYTES = 64_000_000  # of the synthetic corpus
_PORTION = 16  # files that are there as text at a time


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--articles", help="Glob of articles: paragraphs a line, blank lines.")
    parser.add_argument("--books", help="Glob of books: paragraphs between blank lines.")
    parser.add_argument("--vocab", help="Uncased vocabulary.")
    parser.add_argument("--gigabytes", default="1", help="Sizes of the corpus, with commas.")
    parser.add_argument("--steps", default="512,killed", help="Of 512,beam,killed.")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--dupe_factor", type=int, default=5)
    parser.add_argument("--beam_python", default=sys.executable, help="A Python that has Beam.")
    parser.add_argument("--folder", help="Where there is room for it.")
    parser.add_argument("--output", help="Write the results to this JSON file too.")
    parser.add_argument("--step", help=argparse.SUPPRESS)  # one step, as JSON
    parser.add_argument("--reads", help=argparse.SUPPRESS)  # where it notes its reads
    arguments = parser.parse_args()
    if arguments.step:
        return _step(arguments.reads, **json.loads(arguments.step))
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        for gigabytes in arguments.gigabytes.split(","):
            folder = Path(arguments.folder or temporary) / f"{gigabytes}GB"
            state = results[f"{gigabytes} GB"] = _state(folder, arguments)
            save = functools.partial(_save, folder / "state.json", state, arguments.output, results)
            _measure(float(gigabytes), folder, arguments, state, save)
            _print(state["steps"])
            for path in folder.iterdir():  # state.json alone stays: a size is not measured twice
                if path.is_dir():
                    shutil.rmtree(path)
                elif path.suffix == ".reads":
                    path.unlink()


def _state(folder, arguments):
    """What was measured of a size before, or the beginnings."""
    options = {"workers": arguments.workers, "dupe_factor": arguments.dupe_factor}
    path = folder / "state.json"
    if not path.exists():
        os.makedirs(folder, exist_ok=True)
        return {"options": options, "bytes": 0, "portions": 0, "text seconds": 0, "steps": {}}
    state = json.loads(path.read_text())
    if state["options"] != options:
        raise SystemExit(f"{path} was measured with {state['options']}, not {options}")
    return state


def _save(path, state, output, results):
    for target, content in ((path, state), (output, results)):
        if target:
            write_text(target, json.dumps(content, indent=1) + "\n")


def _measure(gigabytes, folder, arguments, state, save):
    """Every step of one size that is not measured yet; notes in `state` what `_run` returns."""
    texts, store, wanted = folder / "sentences", folder / "store", arguments.steps.split(",")
    _sentences(int(gigabytes * 1e9), folder, texts, arguments, state, save)

    def records(step, output, inputs="*", kill_after=None, python=sys.executable, **options):
        before = state["steps"].get(step)
        if before and before["finished"]:
            return

        def note(figures, finished=False):
            total = _together(before, figures) if before else figures
            state["steps"][step] = total | {"finished": finished}
            save()

        options = {
            "inputs": str(texts / f"{inputs}.txt.gz"),
            "output": str(folder / output),
            "vocab_path": arguments.vocab,
            "num_workers": arguments.workers,
            "dupe_factor": arguments.dupe_factor,
        } | options
        note(_run(python, folder, step, "create", kill_after, note, **options), finished=True)

    def check_equal(step, one, other):
        if not state["steps"][step].get("same bytes"):
            _check_equal(folder / one, folder / other)
            state["steps"][step]["same bytes"] = True
            save()

    records("length 128", "128", token_store=str(store))
    if "512" in wanted:
        long = {"max_seq_length": 512, "max_predictions_per_seq": 77}
        records("length 512, same store", "512", token_store=str(store), **long)
    shutil.rmtree(store, ignore_errors=True)
    if "beam" in wanted:
        direct = ["direct_running_mode=multi_processing", f"direct_num_workers={arguments.workers}"]
        records("a tenth", "tenth", inputs="*0")
        records("a tenth on Beam", "beam", "*0", python=arguments.beam_python, beam=direct)
        check_equal("a tenth on Beam", "tenth", "beam")
    if "killed" in wanted:
        kill_after = 0.4 * state["steps"]["length 128"]["seconds"]
        records("length 128, killed", "again", kill_after=kill_after)
        records("length 128, continued", "again")
        check_equal("length 128, continued", "128", "again")


def _sentences(size, folder, texts, arguments, state, save):
    """Writes the corpus and splits it into sentences, some files at a time."""
    from benchmarks import synthetic_corpus

    files, raw = range(-(-size // _FILE_BYTES)), folder / "raw"
    globs = arguments.articles, arguments.books
    for portion in range(state["portions"], -(-len(files) // _PORTION)):
        shutil.rmtree(raw, ignore_errors=True)  # one that was not split to its end
        started = time.perf_counter()
        numbers = files[portion * _PORTION : (portion + 1) * _PORTION]
        file_size = min(size, _FILE_BYTES)
        written = synthetic_corpus.write(globs, numbers, file_size, raw, arguments.workers)
        state["text seconds"] += time.perf_counter() - started
        options = {"output": str(texts), "layout": "articles", "num_workers": arguments.workers}
        python, inputs = sys.executable, str(raw / "*")
        figures = _run(python, folder, "sentences", "split_files", inputs=inputs, **options)
        before = state["steps"].get("sentences")
        figures = _together(before, figures) if before else figures
        state["steps"]["sentences"] = figures | {"finished": len(files) == numbers[-1] + 1}
        state["bytes"] += written
        state["portions"] = portion + 1
        save()
    shutil.rmtree(raw, ignore_errors=True)


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
    with _ending_with_parent():
        {"create": create, "split_files": split_files}[function](**options, progress=False)


@contextlib.contextmanager
def _ending_with_parent():
    """Looks every second: a thread would keep the step from forking its workers."""
    parent = os.getppid()

    def look(*_):
        if os.getppid() != parent:
            os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 1, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _noting(notes, read):
    def noted(path, *arguments, **named):
        found = read(path, *arguments, **named)
        size = getattr(found, "nbytes", None) or len(found)
        os.write(notes, f"{path.rpartition('.')[2][-12:]} {size}\n".encode())
        return found

    return noted


def _run(python, folder, step, function, kill_after=None, note=None, **options):
    """A step, or what is left of it, in a process group of its own, watched; returns its figures.

    Args:
      note: called with the figures so far, every few seconds.
    """
    reads = folder / f"{step}.reads"  # those of earlier parts are in it
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(
        [python, "-m", "benchmarks.data_at_scale", f"--reads={reads}"]
        + [f"--step={json.dumps({'function': function, **options})}"],
        start_new_session=True,
        env=machine.importing(),  # for the processes that Beam starts too
    )
    taken_away = Path(options["output"]) if function == "create" else None
    watched = _Watched(process.pid, folder, taken_away, note)
    try:
        process.wait(kill_after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    finally:  # Ctrl-C ends the step too
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        figures = watched.end()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode not in ((0, -signal.SIGKILL) if kill_after else (0,)):
        raise SystemExit(f"the step {step!r} ended with {process.returncode}")
    # The workers of a killed process were never waited for: they are among the samples alone.
    waited = sum(getattr(after, n) - getattr(before, n) for n in ("ru_utime", "ru_stime"))
    figures["processor seconds"] = max(waited, figures["processor seconds"])
    figures |= {"killed": process.returncode == -signal.SIGKILL, "reads": _summary(reads)}
    return figures


def _together(before, now):
    """The figures of two parts of a step as those of one."""
    peaks = itertools.zip_longest(before["peak MB"], now["peak MB"], fillvalue=0)
    return now | {
        "seconds": before["seconds"] + now["seconds"],
        "processor seconds": before["processor seconds"] + now["processor seconds"],
        "peak MB": [max(pair) for pair in peaks],
        "disk GB": max(before["disk GB"], now["disk GB"]),
        "parts": before["parts"] + 1,
    }


class _Watched(threading.Thread):
    """Samples the memory and time of a process and of those below it, and the disk that a folder
    takes; takes away the shards that are finished in another."""

    def __init__(self, pid, folder, taken_away, note):
        super().__init__(daemon=True)
        self._pid, self._folder, self._taken_away, self._note = pid, folder, taken_away, note
        self._peaks, self._processor, self._disk = {}, 0.0, 0
        self._begun, self._over = time.perf_counter(), threading.Event()
        self.start()

    def run(self):
        for number in itertools.count():
            if number % 8 == 0:  # to walk the folder takes a while
                self._disk = max(self._disk, _disk(self._folder))
                if self._note and number:
                    self._note(self._figures())
            self._sample()
            if self._taken_away:
                for shard in self._taken_away.glob("[!.]*.tfrecord"):
                    shard.unlink()
            if self._over.wait(0.5):
                return

    def end(self):
        self._over.set()
        self.join()
        return self._figures()

    def _figures(self):
        """Figures so far; the peaks of memory are those of each process, the largest first."""
        return {
            "seconds": time.perf_counter() - self._begun,
            "processor seconds": self._processor,
            "peak MB": sorted((round(p / 1024) for p in self._peaks.values()), reverse=True),
            "disk GB": self._disk / 1e9,
            "parts": 1,
        }

    def _sample(self):
        ticks = 0
        for pid in _below(self._pid):
            try:
                status = Path(f"/proc/{pid}/status").read_text()
                times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
            except OSError:
                continue  # it has ended
            if peak := re.search(r"VmHWM:\s+(\d+)", status):
                self._peaks[pid] = max(self._peaks.get(pid, 0), int(peak[1]))
            ticks += sum(map(int, times))  # its own and those of the children it waited for
        self._processor = max(self._processor, ticks / os.sysconf("SC_CLK_TCK"))


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


def _print(steps):
    rows = [["step", "seconds", "processor s", "peak MB of a process", "disk GB", "reads"]]
    for name, step in steps.items():
        reads = ", ".join(
            f"{kind} {found['number']:,} of {found['mean bytes'] / 1e3:,.0f} kB"
            for kind, found in step["reads"].items()
        )
        numbers = [f"{step[n]:,.1f}" for n in ("seconds", "processor seconds")]
        peaks = ", ".join(map(str, step["peak MB"][:4]))
        name += " (SIGKILL)" if step["killed"] else ""
        rows.append([name, *numbers, peaks, f"{step['disk GB']:.2f}", reads])
    print("\n".join(markdown_table(rows)), flush=True)


if __name__ == "__main__":
    main()
