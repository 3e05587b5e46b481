"""A run's folder: configuration, versions, metrics, checkpoints, results and model.

config.json      versions.json    metrics.jsonl    events/    checkpoints/
results.json     predictions/     model/           failure.json, of a table's run that failed
"""

import dataclasses
import hashlib
import json
import os
import time
from pathlib import Path

from data_prep.jobs import checked_json, commands, output_folder
from experiments.training.folder import provenance
from experiments.training.folder.dataclass_json import of_json, to_json
from experiments.training.settings.config_values import differences, from_dict, result_dict, to_dict
from official_bert.common.errors import UserError
from official_bert.common.files import make_folder, write_text
from official_bert.common.json_files import read_json
from official_bert.common.paths import local_path

CONFIG, RESULTS, FAILURE = "config.json", "results.json", "failure.json"
_FILES = (CONFIG, provenance.FILE, "metrics.jsonl", RESULTS, FAILURE, "analysis.json",
          "report.md", "example_scores.npz")  # fmt: skip
_LEAVES = ("save_model", "predict_test", "snapshots")  # bookkeeping that decides a run's files
_FOLDERS = ("events", "checkpoints", "predictions", "snapshots", "model")
# The names that a run replaces and removes in its folder, once that has a `CONFIG`.
NAMES = (*_FILES, *_FOLDERS)


@dataclasses.dataclass(frozen=True)
class Input:
    """A file or folder that a run reads: its place, and a digest of its content."""

    place: str
    digest: str


def begin(path, overwrite=False, lock=None):
    """Check that a folder is new or a run's; `overwrite` renames it (see `output_folder`).

    Raises:
      UserError: something that no run wrote stands under one of a run's names.
    """
    output_folder.begin(local_path(path), CONFIG, NAMES, overwrite, lock)


class RunFolder:
    """The folder of a run, new or to be continued.

    Args:
      path: the folder; created where it is missing.
      config: the configuration; its kind and values are compared with those of an earlier run.
      write: False in all processes but the first of a distributed run.
      lock: the folder's `locks.FolderLock`, where it is locked.

    Call `begin` first.

    Raises:
      UserError: an earlier run here had other options; the message lists the differences.
    """

    def __init__(self, path, config, write=True, lock=None):
        self.path = local_path(path)
        self.write = write
        self._lock = lock
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"workdir {self.path} is a file; give a folder")
        self._config, self._inputs = config, None
        self._results = self.path / RESULTS
        self._before = self._check_config(config)
        if write:
            make_folder(self.path)
            if self._before is None:
                self._write_config(None)

    def begin(self, inputs):
        """Write the `inputs.Inputs` of a new run, or compare them with those that the run began
        with.

        Raises:
          UserError: an earlier run here read something else; the message lists the differences.
        """
        self._inputs = inputs
        if self._before and (lines := inputs.differences(self._before[1])):
            raise UserError(
                f"{self.path} holds a run on other data: {'; '.join(lines)}. Put back what it "
                "read, choose another --workdir or pass --overwrite"
            )
        if not self._results.exists():
            self._write_config(to_json(inputs.found))

    def digest(self):
        """Hash the options and data that decide the result: an int below 2**24."""
        text = json.dumps([result_dict(self._config), self._inputs.digests()], sort_keys=True)
        return int(hashlib.sha256(text.encode()).hexdigest()[:6], 16)

    def other_process(self):
        """Describe how this process differs from the chief, which writes the folder."""
        stored, inputs = read_config(self.path, type(self._config), "share the workdir")
        lines = differences(result_dict(stored), result_dict(self._config))
        lines += self._inputs.differences(inputs)
        return (
            "the processes of this run have other options or data (the first's -> this one's): "
            f"{'; '.join(lines) or 'another process says which'}; start all with the same command"
        )

    @property
    def checkpoints(self):
        return self.path / "checkpoints"

    @property
    def model(self):
        return self.path / "model"

    @property
    def predictions(self):
        return self.path / "predictions"

    def finished(self, kind, check_model):
        """Return the results of a finished run, with full paths; None before the run has finished.

        Args:
          kind: of `run_results`: the class of the results.
          check_model: function of the model's folder that raises UserError where it is damaged.

        Raises:
          UserError: a file that the results name is gone, the model is damaged, or the
            configuration asks for files that the run did not leave.
        """
        if not self._results.exists():
            return None
        asked = {name: getattr(self._config, name, None) for name in _LEAVES}
        before = self._before[0]
        missing = [n for n, value in asked.items() if value and value != getattr(before, n)]
        if missing:
            raise UserError(
                f"{self.path} is finished, but ran without --config.{missing[0]}="
                f"{to_dict(asked[missing[0]])}; leave it out, choose another --workdir or pass "
                "--overwrite"
            )
        stored = checked_json.read(self._results, finite=False)
        found = of_json(kind, stored, str(self._results))
        found = _with_paths(found, lambda inside: str(self.path / inside))
        return _with_paths(found, lambda path: self._check_there(path, check_model))

    def finish(self, results):
        """Write results.json, with paths relative to the folder and the time of now.

        Args:
          results: of a class of `run_results`.

        Returns: the results.

        Raises:
          UserError: the data changed while the run was reading.
        """
        if self.write and self._inputs:
            self._inputs.check()
        results.ended = round(time.time(), 2)
        self.write_json(RESULTS, to_json(_with_paths(results, self._inside)))
        return results

    def write_json(self, name, value):
        """Write a JSON file and its checksum into the folder, whole or not at all.

        Raises:
          UserError: the folder was removed, or cannot be written.
        """
        if self.write:
            if self._lock:
                self._lock.check()
            checked_json.write(self.path / name, value)

    def write_versions(self, seed, devices):
        """Write versions.json (`provenance`), with seed and devices; print changes since the last
        session."""
        if self.write:
            if self._lock:
                self._lock.check()
            changed = provenance.note(self.path, seed=seed, devices=devices)
            if changed:
                commands.say(
                    f"{self.path} goes on with other code or versions: {changed} (versions.json "
                    "keeps both)"
                )

    def forget_metrics_after(self, step):
        """Drop the metrics of steps that a continued run will take again."""
        path = self.path / "metrics.jsonl"
        if not self.write or not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                if json.loads(line)["step"] <= step:
                    kept.append(line)
            except (ValueError, KeyError, TypeError):
                continue  # the last line of a killed process, or a damaged one
        write_text(path, "".join(line + "\n" for line in kept), own=True)

    def _write_config(self, inputs):
        kind = {"kind": type(self._config).__name__, **to_dict(self._config)}
        self.write_json(CONFIG, kind if inputs is None else kind | {"inputs": inputs})

    def _inside(self, path):
        return os.path.relpath(path, self.path)

    def _check_there(self, path, check_model):
        try:
            if not os.path.exists(path):
                raise UserError(f"{path}: missing")
            if Path(path) == self.model:
                check_model(self.model)
        except UserError as error:
            raise UserError(
                f"{self.path} is finished, but {error}; put it back, or --overwrite runs it again"
            ) from None
        return path

    def _check_config(self, config):
        """Return (configuration, its inputs) of an earlier run that began; None without one."""
        left = [name for name in NAMES if os.path.lexists(self.path / name)]
        if {CONFIG, provenance.FILE, FAILURE}.issuperset(left):
            if CONFIG in left and not checked_json.is_ours(self.path / CONFIG):
                raise UserError(f"{self.path / CONFIG} is not a run's; choose another --workdir")
            return None  # only the options of a run that was refused before it began
        stored = read_config(self.path, type(config), "choose another --workdir or --overwrite")
        lines = differences(result_dict(stored[0]), result_dict(config))
        if lines:
            raise UserError(
                f"{self.path} holds a run with other options (old -> new): {'; '.join(lines)}. "
                "Choose another --workdir or pass --overwrite"
            )
        return stored


def read_config(folder, kind, otherwise):
    """Return (configuration, {name: Input}) of a run's config.json.

    Args:
      kind: the configuration's dataclass.
      otherwise: the user's other choice, for messages.

    Raises:
      UserError: there is none, or it is damaged, or of another kind or version.
    """
    path = Path(folder) / CONFIG
    stored = read_json(path, finite=False, missing=otherwise)
    inputs, name = stored.pop("inputs", {}), stored.pop("kind", None)
    if name != kind.__name__:
        raise UserError(f"{folder} holds a run of {name}, this is {kind.__name__}; {otherwise}")
    stored.pop("checksum", None)
    try:
        inputs = of_json(dict[str, Input], inputs, f"{path}: inputs")
        return from_dict(kind, stored, path), inputs
    except UserError as error:  # of another version
        raise UserError(f"{error}; {otherwise}") from None


def _with_paths(results, change):
    """Return results with `change` applied to every path."""
    named = {name: getattr(results, name, "") for name in ("model", "predictions_file")}
    found: dict = {name: change(path) for name, path in named.items() if path}
    if files := getattr(results, "files", {}):
        found["files"] = {name: change(path) for name, path in files.items()}
    return dataclasses.replace(results, **found)
