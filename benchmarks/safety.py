"""What the checks of files cost: the same work with and without each of them.

    python benchmarks/safety.py --size=base --records=500000 --rounds=5

A check is switched off by putting nothing in its place. Both ways take turns, round after round;
the table has their medians. All files are in the page cache, where checks weigh most.
"""

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

# The repository, not this folder, where data_prep.py is another benchmark.
sys.path[0] = str(Path(__file__).parents[1])

LENGTH, PREDICTIONS, BATCH = 128, 20, 256
NOTHING = mock.Mock(return_value=None)


class Case(NamedTuple):
    """A check: the work with it and without it, and how many records that work reads."""

    name: str
    checked: Callable
    unchecked: Callable
    records: int = 0


def model_cases(folder: Path, size: str) -> Iterator[Case]:
    """Loading a model of ours or a Hugging Face folder, and saving one."""
    import official_bert as ob
    from official_bert import files
    from official_bert.checkpoints import huggingface, huggingface_tensors, integrity, transfer

    config = ob.named_config(size)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *(f"w{i}" for i in range(config.vocab_size - len(special)))]
    tokenizer, model = ob.BertTokenizer(pieces), ob.BertEncoder(config, seed=0)

    def save():
        ob.save(folder / "ours", model, tokenizer, overwrite=True)

    def load():
        ob.load(folder / "ours")

    def load_theirs():
        huggingface.import_huggingface(folder / "theirs")

    save()
    huggingface.export_huggingface(folder / "theirs", model, tokenizer)
    checksums, finite = (integrity, "check_folder", NOTHING), (integrity, "check_finite", NOTHING)
    theirs_finite = (transfer, "check_finite", NOTHING)
    no_checksums = (huggingface_tensors, "parse_json", mock.Mock(return_value={}))
    fields_alone = (integrity, "with_checksums", lambda folder, name, fields: fields)
    for name, work, patches in (
        ("load, checksums", load, [checksums]),
        ("load, finite weights", load, [finite]),
        ("load, both", load, [checksums, finite]),
        ("load from safetensors, both", load_theirs, [no_checksums, theirs_finite]),
        ("save, checksums", save, [fields_alone]),
        ("save, wait for the disk", save, [(files, "_sync", NOTHING)]),
    ):
        yield Case(f"{size} model: {name}", work, _without(work, patches))


def checkpoint_cases(folder: Path, megabytes: float) -> Iterator[Case]:
    """Reading and writing a checkpoint of a run."""
    from experiments.training.checkpointing import Checkpoints
    from official_bert import files
    from official_bert.checkpoints import integrity

    arrays = {f"w{i}": np.ones(round(megabytes * 1e6 / 40), "f4") for i in range(10)}
    checkpoints = Checkpoints(folder / "checkpoints")

    def save():
        checkpoints.save(1, arrays, {})

    def load():
        checkpoints.load(1)

    save()
    no_checksums = (integrity, "with_checksums", lambda folder, name, fields: fields)
    for name, work, patches in (
        ("load, checksums", load, [(integrity, "check_folder", NOTHING)]),
        ("save, wait for the disk", save, [(files, "_sync", NOTHING)]),
        ("save, checksums", save, [no_checksums]),
    ):
        yield Case(f"checkpoint of {megabytes:g} MB: {name}", work, _without(work, patches))


def reader_case(folder: Path, examples: int) -> Case:
    """Reading records for training, their numbers compared with their bounds or not."""
    import tensorflow as tf

    from data_prep import records as reader
    from data_prep.pretraining.tf_example import pack_records
    from data_prep.records import open_records, pretraining_dataset

    draw = np.random.default_rng(0)
    rows = {
        "input_ids": draw.integers(1, 30_000, (examples, LENGTH)),
        "input_mask": np.ones((examples, LENGTH), int),
        "segment_ids": draw.integers(0, 2, (examples, LENGTH)),
        "masked_lm_positions": draw.integers(0, LENGTH, (examples, PREDICTIONS)),
        "masked_lm_ids": draw.integers(1, 30_000, (examples, PREDICTIONS)),
        "masked_lm_weights": np.ones((examples, PREDICTIONS), "f4"),
        "next_sentence_labels": draw.integers(0, 2, (examples, 1)),
    }
    path = folder / "a.tfrecord"
    with open(path, "wb") as file:
        for start in range(0, examples, 32_768):
            part = {name: values[start : start + 32_768] for name, values in rows.items()}
            file.write(pack_records(part))
    opened = open_records(str(path), vocab_size=30_000)
    checked = pretraining_dataset(opened, BATCH, seed=1)
    with (
        mock.patch.object(reader, "check_batch", lambda batch, records: tf.no_op()),
        mock.patch.object(reader, "_checked", lambda path: path),
    ):
        unchecked = pretraining_dataset(opened, BATCH, seed=1)
    name = f"records of length {LENGTH}, batches of {BATCH}: lengths and numbers in bounds"
    return Case(name, lambda: _read(checked), lambda: _read(unchecked), examples)


def _read(dataset):
    for _ in dataset:
        pass


def _without(work: Callable, patches: list) -> Callable:
    def run():
        with contextlib.ExitStack() as stack:
            for target, name, replacement in patches:
                stack.enter_context(mock.patch.object(target, name, replacement))
            work()

    return run


def measure(case: Case, rounds: int) -> tuple[float, float]:
    """Median seconds with and without the check; each is run once before."""
    seconds = [[], []]
    for number in range(rounds + 1):
        for way, work in enumerate((case.checked, case.unchecked)):
            start = time.perf_counter()
            work()
            if number:
                seconds[way].append(time.perf_counter() - start)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", default="base", help="of the model")
    parser.add_argument("--records", type=int, default=500_000, help="how many are read")
    parser.add_argument("--megabytes", type=float, default=1300, help="of a checkpoint; Adam's")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("| check | with | without | costs |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        cases = [*model_cases(folder, options.size), *checkpoint_cases(folder, options.megabytes)]
        for case in [*cases, reader_case(folder, options.records)]:
            ways = measure(case, options.rounds)
            shown = [f"{seconds:.3f} s" for seconds in ways]
            if case.records:
                shown = [f"{case.records / seconds:,.0f} records/s" for seconds in ways]
            print(f"| {case.name} | {' | '.join(shown)} | {ways[0] / ways[1] - 1:+.1%} |")


if __name__ == "__main__":
    main()
