"""Records read on the host, beside an imitated H100 that takes them.

    python -m benchmarks.feeding

Read are the batches of `numpy_batches`, records of the embedded sample, by 1, 2 and 4 processes
side by side. Each batch is timed in processor time, so that its rate is that of a core on a busy
machine too. The consumer is imitated on that clock: a step takes as long as half of the card's
peak in bfloat16 allows, in FLOPs counted from the shapes, and the processes bring it their batches
in turn, each a few ahead. Counted are the steps that had to wait, and the time
that they did (`waited`).
"""

import json
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np

from data_prep.create_pretraining_data import create
from data_prep.pretraining import record_sets
from data_prep.records import numpy_batches, open_records
from experiments.training.flops import pretraining_step_flops
from official_bert.common.markdown import markdown_table
from official_bert.config import named_config

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "feeding.json"
SIZES = ("tiny", "small", "base", "large")
LENGTHS = (128, 512)
PROCESSES = (1, 2, 4)
BATCH, ROWS = 256, 5 * record_sets.WINDOW  # ROWS of each process; a window is parsed at once
PEAK = 989e12
AHEAD = 16  # batches that wait to be taken, of each process; those of a compiled loop on JAX


def read(folder):
    """Seconds of processor time of each batch."""
    batches = numpy_batches(open_records(folder), BATCH, epochs=None)
    clock = [time.process_time()]
    for _ in range(ROWS // BATCH):
        next(batches)
        clock.append(time.process_time())
    return np.diff(clock).tolist()


def waited(seconds, step, ahead=AHEAD):
    """How long the consumer waited for batches, after the first `ahead` of each process.

    Args:
      seconds: of the batches of each process.
      step: seconds that a step takes.
      ahead: batches that a process may have ready before it waits itself.

    Returns: (share of the steps that found no batch, share of the time).
    """
    free, begun, times = 0.0, [], []
    read_at = [0.0] * len(seconds)
    for k, of_each in enumerate(zip(*seconds, strict=True)):
        for process, own in enumerate(of_each):
            room = begun[len(begun) - ahead * len(seconds)] if k >= ahead else 0.0
            read_at[process] = max(read_at[process], room) + own
            begun.append(max(free, read_at[process]))
            times.append(begun[-1] - free)
            free = begun[-1] + step
    times = times[ahead * len(seconds) :]
    lost = sum(times)
    return sum(time > 0 for time in times) / len(times), lost / (lost + step * len(times))


def taken(size, length):
    """Rows a second at half of the peak."""
    masked = length * 20 // 128
    bert = named_config(size)
    one = pretraining_step_flops(bert, ("masked_lm", "next_sentence"), 1, length, masked)
    return PEAK / 2 / one


def main():
    found = {}
    for length in LENGTHS:
        for dynamic in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                create(
                    str(ROOT / "data_prep/sample/corpus/*"),
                    str(ROOT / "official_bert/embedded/tiny-wikipedia/vocab.txt"),
                    folder + "/records", max_seq_length=length, dynamic_masking=dynamic,
                    max_predictions_per_seq=length * 20 // 128, progress=False,
                )  # fmt: skip
                for processes in PROCESSES:
                    with multiprocessing.Pool(processes) as pool:
                        seconds = pool.map(read, [folder + "/records"] * processes, chunksize=1)
                    key = f"{length}{' dynamic' * dynamic}, {processes} processes"
                    found[key] = {
                        "rows_per_s": BATCH * processes * len(seconds[0]) / sum(map(sum, seconds)),
                        "waited": {
                            size: waited(seconds, BATCH / taken(size, length)) for size in SIZES
                        },
                    }
                    print(key, found[key], flush=True)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")


def table(found):
    """Markdown: cores that read what each size takes, and the share of time that it waits."""
    heads = ["", "length", "rows/s at half of the peak"]
    for kind in ("records", "dynamic masks"):
        heads += [f"{kind}: cores", *(f"{n} process{'es' * (n > 1)}" for n in PROCESSES)]
    lines = [heads]
    for size in SIZES:
        for length in LENGTHS:
            rows = taken(size, length)
            cells = [size, str(length), f"{rows:,.0f}"]
            for kind in ("", " dynamic"):
                runs = [found[f"{length}{kind}, {n} processes"] for n in PROCESSES]
                cells.append(f"{rows / runs[0]['rows_per_s']:.2g}")
                cells += [f"{run['waited'][size][1]:.0%}" for run in runs]
            lines.append(cells)
    return "\n".join(markdown_table(lines))


if __name__ == "__main__":
    main()
    print(table(json.loads(RESULTS.read_text())))
