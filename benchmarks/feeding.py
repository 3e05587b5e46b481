"""Records read on the host, beside what an H100 would take of them.

    python -m benchmarks.feeding

The rate is rows of `numpy_batches` a second of processor time, with 1, 2 and 4 processes that read
side by side, so that it is that of a core on a busy machine too. What would be taken is half of
the card's peak in bfloat16, in FLOPs counted from the shapes. Records are those of the embedded
sample.
"""

import json
import multiprocessing
import tempfile
import time
from pathlib import Path

from data_prep.create_pretraining_data import create
from data_prep.records import numpy_batches, open_records
from experiments.training.flops import pretraining_step_flops
from official_bert.config import named_config

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "feeding.json"
SIZES = ("tiny", "small", "base", "large")
LENGTHS = (128, 512)
PROCESSES = (1, 2, 4)
BATCH, ROWS = 256, 20_000  # ROWS: read by each process
PEAK = 989e12


def rate(folder):
    """Rows a second of processor time."""
    batches = numpy_batches(open_records(folder), BATCH, epochs=None)
    next(batches)  # files are open
    started = time.process_time()
    for _ in range(ROWS // BATCH):
        next(batches)
    return ROWS // BATCH * BATCH / (time.process_time() - started)


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
                        rates = pool.map(rate, [folder + "/records"] * processes, chunksize=1)
                    key = f"{length}{' dynamic' * dynamic}, {processes} processes"
                    found[key] = sum(rates) / processes
                    print(key, round(found[key]), flush=True)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")


def table(found):
    """Markdown: cores that read what each size takes."""
    lines = ["| | length | rows/s at half of the peak | cores that read them | dynamic masks |",
             "|---|---|---|---|---|"]  # fmt: skip
    for size in SIZES:
        for length in LENGTHS:
            rows = taken(size, length)
            rates = [found[f"{length}{kind}, 4 processes"] for kind in ("", " dynamic")]
            cores = " | ".join(f"{rows / one:.2g}" for one in rates)
            lines.append(f"| {size} | {length} | {rows:,.0f} | {cores} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
    print(table(json.loads(RESULTS.read_text())))
