"""Checkpoints of a run: all numbers that its next steps depend on, written whole or not at all.

A checkpoint is a folder `checkpoints/step-00001000` with `arrays.npz` (weights and optimiser by
their paths, the exact bits) and `state.json` (step, data position, best score so far). It is
written under a temporary name and renamed, so a folder with the final name is complete. Checksums
show later damage by a disk; then the checkpoint before it is used.
"""

import json
import logging
import re
from pathlib import Path

import numpy as np

from official_bert.checkpoints import integrity
from official_bert.common.errors import UserError
from official_bert.common.files import (
    atomic_folder,
    atomic_write,
    remove,
    remove_unfinished,
    write_text,
)
from official_bert.common.json_files import read_json

_STATE = "state.json"
_NAME = re.compile(r"step-(\d{8,})")


class OtherMasks(UserError):
    """Raised for a checkpoint of a run that began with other dropout masks."""


class Checkpoints:
    """The checkpoints in one folder: the newest `keep` stay, and the best one.

    Args:
      folder: where they are; created when the first one is saved.
      keep: how many of the newest stay.
    """

    def __init__(self, folder, keep=2):
        self.folder = Path(folder)
        self.keep = max(1, keep)

    def steps(self):
        """Return the steps that have a checkpoint, ascending."""
        if not self.folder.is_dir():
            return []
        names = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in names if match)

    def save(self, step, arrays, state, best_step=None):
        """Write one checkpoint, then remove those that are neither new nor the best.

        Args:
          step: int, the number of steps taken.
          arrays: dict of name -> numpy array.
          state: dict of JSON values.
          best_step: the step whose checkpoint stays whatever its age.

        Raises:
          UserError: the disk is full; the earlier checkpoints are still there.
        """
        from official_bert.randomness import MASKS  # needs Keras; checks of a start do not

        # An earlier one of this step is damaged, or the run would have gone on from it.
        with atomic_folder(self._path(step), own=True) as folder:
            with atomic_write(folder / "arrays.npz", "wb") as file:
                np.savez(file, **arrays)
            fields = json.loads(json.dumps({**state, "step": step, "masks": MASKS}))
            fields = integrity.with_checksums(folder, _STATE, fields)
            write_text(folder / _STATE, json.dumps(fields, indent=1))
        for old in self.steps()[: -self.keep]:
            if old not in (best_step, step):
                remove(self._path(old))

    def load(self, step):
        """Return (arrays, state) of one checkpoint.

        Raises:
          OtherMasks: another version's dropout made it.
          UserError, or anything: it is damaged.
        """
        path = self._path(step)
        state = read_json(path / _STATE, finite=False)
        integrity.check_folder(path, _STATE, state, required=True)
        state.pop(integrity.CHECKSUMS)
        from official_bert.randomness import MASKS

        masks = state.pop("masks", None)
        with np.load(path / "arrays.npz", allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        if masks != MASKS:
            raise OtherMasks(
                f"{path} is of a version whose dropout draws other masks ({masks or 'before 0.2'}, "
                f"here {MASKS}), so its run would not go on as it began; finish it with that "
                "version, choose another --workdir or pass --overwrite"
            )
        return arrays, state

    def load_newest(self):
        """Return (arrays, state) of the newest intact checkpoint; None without any checkpoint.

        Raises:
          UserError: there are checkpoints, and all are damaged; or `OtherMasks`.
        """
        remove_unfinished(self.folder, _NAME)
        steps = self.steps()
        for step in reversed(steps):
            try:
                return self.load(step)
            except OtherMasks:
                raise
            except Exception as error:  # damage comes as every kind
                logging.warning("%s is damaged (%s); trying an older one", self._path(step), error)
        if steps:
            raise UserError(
                f"all checkpoints in {self.folder} are damaged; start again with --overwrite"
            )
        return None

    def remove_all(self):
        """Remove the folder: a finished fine-tuning no longer needs its checkpoints."""
        remove(self.folder)

    def newest_state(self):
        """Return the file that describes the newest checkpoint.

        Raises:
          UserError: there is none.
        """
        if not self.steps():
            raise UserError(f"{self.folder}: no checkpoint to go on from")
        return self._path(self.steps()[-1]) / _STATE

    def _path(self, step):
        return self.folder / f"step-{step:08d}"


def check_arrays(found, expected):
    """Compare the arrays of a checkpoint with those of a model.

    Args:
      found: dict of name -> array, of the checkpoint.
      expected: dict of name -> array, of the model.

    Raises:
      UserError: a name or a shape differs.
    """
    missing = sorted(set(expected) - set(found))
    extra = sorted(set(found) - set(expected))
    if missing or extra:
        raise UserError(
            f"the checkpoint is of another model: it lacks {missing[:3] or 'nothing'} "
            f"and has {extra[:3] or 'nothing'} too many"
        )
    for name, array in expected.items():
        if tuple(found[name].shape) != tuple(array.shape):
            raise UserError(
                f"the checkpoint is of another model: {name} has shape {found[name].shape} there "
                f"and {tuple(array.shape)} here"
            )
