"""What comes of single flipped bits in the files that a later step reads: `tests.fuzz --flips`.

A flip may change nothing, be refused in a clear error (`UserError`), or, of a checkpoint, lead to
the one before and a warning that says so. Anything else is found: another result, another
exception, a fallback that nobody is told of.
"""

import contextlib
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from official_bert.common.errors import UserError
from tests import tiny_inputs

_MANIFEST = ("max_seq_length", "max_predictions_per_seq", "vocab_size", "vocab_sha256", "options",
             "dynamic_masking", "compression", "seed", "counts", "shards")  # fmt: skip
EQUAL, ERROR, FALLBACK, FOUND = OUTCOMES = ("equal", "clear error", "fallback, said", "FOUND")


def count(seed: int = 0, share: float = 1.0) -> dict[str, Counter]:
    """The outcomes for each kind of file.

    Args:
      seed: of the places.
      share: of the usual number of flips.
    """
    return {
        name: _outcomes(paths, max(1, round(flips * share)), seed, look)
        for name, flips, paths, look in _cases()
    }


def table(counts: dict[str, Counter]) -> str:
    """The counts as a table in Markdown."""
    lines = [f"| file | flips | {' | '.join(OUTCOMES)} |", "|---" * 6 + "|"]
    for name, found in counts.items():
        numbers = " | ".join(str(found[outcome]) for outcome in OUTCOMES)
        lines.append(f"| {name} | {found.total()} | {numbers} |")
    return "\n".join(lines)


def _cases() -> Iterator[tuple[str, int, list[Path], Callable[[], str]]]:
    """(name, number of flips, files, what says EQUAL, FALLBACK or FOUND of the damaged files)."""
    from official_bert.checkpoints import huggingface, model_folder

    for name, flips, kind, load in (
        ("weights.safetensors", 200, "model_folder", model_folder.load),
        ("model.safetensors", 60, "huggingface", huggingface.import_huggingface),
    ):
        folder = tiny_inputs.model(kind)
        look = _same(lambda load=load, folder=folder: _weights(load(folder)))
        yield f"{kind}: {name}", flips, [folder / name], look
    newest = tiny_inputs.checkpoints() / "step-00000002"
    yield "checkpoint", 1500, [newest / "arrays.npz", newest / "state.json"], _checkpoint
    records = tiny_inputs.records()
    shard = next(records.glob("*.tfrecord"))
    yield "TFRecord shard", 260, [shard], _same(_reader(records))
    yield "its manifest", 24, [records / "manifest.json"], _same(lambda: _reader(records)())
    packed = tiny_inputs.records("GZIP")
    shard = next(packed.glob("*.tfrecord*"))
    yield "TFRecord shard, packed", 260, [shard], _same(_reader(packed))
    yield "kept features", 260, [tiny_inputs.arrays()], _same(_arrays)


def _outcomes(paths: list[Path], flips: int, seed: int, look: Callable[[], str]) -> Counter:
    whole = {path: path.read_bytes() for path in paths}
    ends = np.cumsum([8 * len(content) for content in whole.values()])
    found = Counter()
    for place in np.random.default_rng(seed).integers(0, ends[-1], flips).tolist():
        index = int(np.searchsorted(ends, place, side="right"))
        path = paths[index]
        place -= int(ends[index]) - 8 * len(whole[path])
        damaged = bytearray(whole[path])
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            outcome = look()
        except UserError:
            outcome = ERROR
        except Exception as error:
            outcome = FOUND
            logging.error("bit %d of %s: %r", place, path, error)
        else:
            if outcome == FOUND:
                logging.error("bit %d of %s: another result", place, path)
        path.write_bytes(whole[path])
        found[outcome] += 1
    return found


def _same(read: Callable) -> Callable[[], str]:
    """Compares what is read with what was read at first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = read()
    return lambda: EQUAL if read() == expected else FOUND


def _weights(loaded) -> list[bytes]:
    return [np.asarray(variable).tobytes() for variable in loaded.model.weights]


def _checkpoint() -> str:
    from experiments.training.checkpointing import Checkpoints

    with _warnings_counted() as said:
        arrays, state = Checkpoints(tiny_inputs.checkpoints()).load_newest()
    step = state["step"]
    expected = tiny_inputs.checkpoint_arrays(step)
    same = state == {"step": step, "note": step} and arrays.keys() == expected.keys()
    if not same or any(arrays[name].tobytes() != expected[name].tobytes() for name in expected):
        return FOUND
    if step == 1:
        return FALLBACK if said else FOUND
    return EQUAL


@contextlib.contextmanager
def _warnings_counted():
    """A list that gets an entry a warning; none is shown."""
    said, logger = [], logging.getLogger()

    def keep(record):
        said.append(record)
        return False

    # Of the logger, not of a handler: `logging.warning` calls the root logger itself.
    logger.addFilter(keep)
    try:
        yield said
    finally:
        logger.removeFilter(keep)


def _reader(folder: Path) -> Callable[[], list]:
    """A function that reads the batches in training's way; TensorFlow's graph is made once."""
    from data_prep.records import explained, open_records, pretraining_dataset

    dataset = pretraining_dataset(open_records(str(folder)), 4, seed=1, drop_remainder=False)

    def read():
        records = open_records(str(folder))
        with explained(records):
            batches = [
                {name: values.numpy().tolist() for name, values in batch.items()}
                for batch in dataset
            ]
        # A checksum that lost its name is a field more, which nothing reads.
        known = {name: records.manifest.get(name) for name in _MANIFEST}
        return [{**vars(records), "manifest": known}, batches]

    return read


def _arrays() -> dict:
    from data_prep.jobs import array_files

    found = array_files.read(tiny_inputs.arrays())
    return {
        name: (found[name].dtype, found[name].shape, found[name].tobytes())
        for name in ("ids/values", "ids/offsets")
    }
