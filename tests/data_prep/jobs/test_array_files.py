"""Arrays on disk; `tests.fuzz` damages them."""

import numpy as np
import pytest

from data_prep.jobs import array_files
from official_bert.common.errors import UserError


def test_no_file_and_one_without_a_checksum(tmp_path):
    with pytest.raises(UserError, match="b.npz: cannot be read .No such file"):
        array_files.read(tmp_path / "b.npz")
    np.savez(tmp_path / "a.npz", ids=np.arange(3))
    with pytest.raises(UserError, match="a.npz is damaged"):
        array_files.read(tmp_path / "a.npz")
