"""Checkpoints of a version whose dropout drew other masks are refused by name."""

import json

import numpy as np
import pytest

from experiments.training.folder.checkpointing import Checkpoints, OtherMasks
from official_bert.checkpoints import integrity
from official_bert.common.json_files import read_json


def test_a_run_that_began_with_other_masks_does_not_go_on(tmp_path):
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    for step in (1, 2):
        checkpoints.save(step, {"model/a": np.ones(3)}, {"loss": 1.5})
    assert checkpoints.load_newest()[1] == {"loss": 1.5, "step": 2}
    path = checkpoints.newest_state()
    state = read_json(path, finite=False)
    assert state.pop("masks")
    state.pop(integrity.CHECKSUMS)
    state = integrity.with_checksums(path.parent, path.name, state)  # as version 0.1 wrote it
    path.write_text(json.dumps(state))
    with pytest.raises(
        OtherMasks, match=r"step-00000002 is of a version whose dropout draws other"
    ):
        checkpoints.load_newest()
