"""Arrays on disk; `tests.fuzz` damages them."""

import numpy as np
import pytest

from data_prep.jobs import array_files
from official_bert.common.errors import UserError

ARRAYS = {
    "ids/values": np.arange(30, dtype=np.int16),
    "ids/offsets": np.array([0, 10, 30]),
    "empty": np.zeros((0, 3), np.float32),
    "count": 7,
}


def test_a_file_of_before_without_a_checksum_is_read(tmp_path):
    np.savez(tmp_path / "a.npz", **ARRAYS)
    assert array_files.read(tmp_path / "a.npz")["count"] == 7
    with pytest.raises(UserError, match="b.npz does not exist"):
        array_files.read(tmp_path / "b.npz")
