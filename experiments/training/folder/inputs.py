"""The files that a run reads: where the configuration says they lie, and digests of their content.

A result belongs to the content that was read, not to its path. A run that was moved together with
its data goes on; a run whose records, examples, vocabulary or first weights have changed does not.
"""

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from data_prep.records import open_records
from data_prep.tasks import class_of, get_task
from experiments.training.folder import shared_prefix
from experiments.training.folder.run_folder import Input
from experiments.training.settings.config import path_values
from official_bert.checkpoints.finding import resolve
from official_bert.common.checksums import sha256_file, state
from official_bert.common.errors import UserError
from official_bert.tokenization import find_vocabulary


@dataclasses.dataclass(frozen=True)
class Inputs:
    """The files that a run reads.

    Attributes:
      found: {"dev" or "phases.0.records": Input} at the start of this session.
      look_again: returns the same from the files as they are now.
    """

    found: dict[str, Input]
    look_again: Callable[[], dict[str, Input]]

    def digests(self) -> dict[str, str]:
        """Return {name: digest} of what is read for training and evaluation."""
        return {name: x.digest for name, x in self.found.items() if not _is_of_tests(name)}

    def differences(self, before: dict[str, Input]) -> list[str]:
        """List the differences from what an earlier session found, a line each."""
        return _differences(before, self.found)

    def check(self) -> None:
        """Raise UserError where a file has changed since the run began or went on."""
        if lines := _differences(self.found, self.look_again()):
            raise UserError(
                f"while the run was reading, {'; '.join(lines)}. Put back what was there and give "
                "the same command, or start again with --overwrite"
            )


def pretraining_inputs(config, opened) -> Inputs:
    """Return the Inputs of a PretrainConfig; `opened`: (records, held-out ones or None) of each
    phase."""

    def look(opened):
        found = {}
        for index, (phase, both) in enumerate(zip(config.phases, opened, strict=True)):
            for name, records in zip(("records", "heldout_records"), both, strict=True):
                if records:
                    path = getattr(phase, name)
                    found[f"phases.{index}.{name}"] = Input(path, records.fingerprint)
        vocab = config.vocab or find_vocabulary(config.phases[0].records)
        paths = {"vocab": "" if config.init_from else vocab, "trunk": shared_prefix.file(config)}
        return found | path_inputs(config, **paths)

    def look_again():
        paths = [(phase.records, phase.heldout_records) for phase in config.phases]
        return look([[path and open_records(path) for path in both] for both in paths])

    return Inputs(look(opened), look_again)


def finetuning_inputs(config, examples) -> Inputs:
    """Return the Inputs of a FinetuneConfig; `examples`: {split: examples}, all of them in
    memory."""
    read = {split: Input(config.data_dir, examples_digest(e)) for split, e in examples.items()}
    vocab = "" if config.model else config.vocab
    beside = {name: os.path.join(config.data_dir, name) for name in class_of(config.task).also_read}

    def look():
        files = {name: Input(path, files_digest((path,))) for name, path in beside.items()}
        return read | files | path_inputs(config, vocab=vocab)

    return Inputs(look(), look)


def path_inputs(config, **others) -> dict[str, Input]:
    """Return the Input of each field that names a file or a model, except for the data.

    Args:
      others: {field: path} in place of the configuration's own.
    """
    found = {}
    for name, (kind, given) in path_values(config).items():
        path = others.get(name, given)
        if path and name != "data_dir":
            if kind == "file":  # the run itself will say if it is missing
                digest = files_digest((path,)) if os.path.exists(path) else ""
            else:
                digest = checkpoint_digest(path)
            found[name] = Input(str(path), digest)
    return found


def _differences(before: dict[str, Input], now: dict[str, Input]) -> list[str]:
    lines = []
    for name in {**before, **now}:
        old, new = before.get(name), now.get(name)
        if None in (old, new) and _is_of_tests(name):
            continue  # asking for predictions or not does not change the data
        if old is None or new is None:
            paths = (one.place if one else "none" for one in (old, new))
            lines.append(f"{name}: {' -> '.join(paths)}")
        elif old.digest != new.digest and old.place == new.place:
            lines.append(f"{name} ({new.place}) has changed")
        elif old.digest != new.digest:
            lines.append(f"{name}: {old.place} -> {new.place}, which holds something else")
    return lines


def _is_of_tests(name):
    return name.startswith("test")


def files_digest(paths: tuple[str, ...]) -> str:
    """Hash the names and contents of files, not their folders.

    Raises:
      UserError: there is no such file.
    """
    digest = hashlib.sha256()
    for path in paths:
        if not os.path.isfile(path):
            raise UserError(f"{path}: no such file")
        digest.update(f"{Path(path).name} {_sha256(path, *state(path))}\n".encode())
    return digest.hexdigest()[:16]


def checkpoint_digest(checkpoint: str) -> str:
    """Hash a checkpoint: the files of a folder, or of the folder of its prefix.

    A preset is hashed by its name, a model of the hub by its name and commit.
    """
    try:
        folder = resolve.find(checkpoint)
    except UserError:
        return checkpoint  # the run itself will say so
    if isinstance(folder, str):
        return folder
    if not folder.is_dir():
        folder = folder.parent
    if folder.parent.name == "snapshots":  # a cache of the hub, to which other programs add files
        return folder.name
    # A model card may be written after the model was used, so it does not count.
    found = (p for p in folder.iterdir() if p.is_file() and p.name[0] != "." and p.suffix != ".md")
    return files_digest(tuple(sorted(map(str, found))))


def examples_digest(*splits: list) -> str:
    """Hash the examples that tasks read from their files."""
    digest = hashlib.sha256()
    for example in (example for examples in splits for example in examples):
        digest.update(repr(example).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class TaskExamples:
    """The examples of a fine-tuning, described.

    Attributes:
      digest: of the training and dev examples.
      golds: digest of what the dev examples are scored against, whatever else a model sees of them.
      train, dev: their numbers.
    """

    digest: str
    golds: str
    train: int
    dev: int


def task_examples(config) -> TaskExamples:
    """Describe the examples that a FinetuneConfig reads from files."""
    return _task_examples(*_data_of(config))


def read_task(config) -> tuple:
    """Return (task, training examples, dev examples) of a FinetuneConfig.

    The examples of the last call stay in memory until `forget_examples`."""
    return _read(*_data_of(config))


def _data_of(config):
    return config.task, config.data_dir, json.dumps(config.task_options, sort_keys=True)


@functools.cache
def _task_examples(*data: str) -> TaskExamples:
    task, train, dev = _read(*data)
    golds = (getattr(example, task.gold, None) for example in dev)
    # Sentences have the same tags in a document of several as alone.
    parts = [part for gold in golds for part in (gold if isinstance(gold, tuple) else [gold])]
    return TaskExamples(examples_digest(train, dev), examples_digest(parts), len(train), len(dev))


@functools.lru_cache(maxsize=1)
def _read(name: str, data_dir: str, options: str):
    task = get_task(name, data_dir, **json.loads(options))
    return task, task.examples("train"), task.examples("dev")


forget_examples = _read.cache_clear


@functools.lru_cache(maxsize=10_000)
def _sha256(path: str, *_state: int) -> str:
    return sha256_file(path)
