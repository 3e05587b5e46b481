"""Arrays on disk: every flipped bit is found or changes nothing."""

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


def read(path):
    arrays = array_files.read(path)
    return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


@pytest.mark.parametrize("packed", [False, True])
def test_a_flipped_bit_is_found_or_changes_nothing(tmp_path, packed):
    path = tmp_path / "a.npz"
    array_files.write(path, ARRAYS, packed)
    expected, whole, found = read(path), path.read_bytes(), 0
    assert expected.keys() == ARRAYS.keys() and expected["count"][1:] == ((), b"\7" + bytes(7))
    for place in np.random.default_rng(0).integers(0, 8 * len(whole), 150).tolist():
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            arrays = read(path)
        except UserError as error:
            assert f"{path} is damaged" in str(error)
            found += 1
        else:
            assert {name: arrays[name] for name in expected} == expected
    assert found > 75


def test_a_file_of_before_without_a_checksum_is_read(tmp_path):
    np.savez(tmp_path / "a.npz", **ARRAYS)
    assert array_files.read(tmp_path / "a.npz")["count"] == 7
    with pytest.raises(UserError, match="b.npz does not exist"):
        array_files.read(tmp_path / "b.npz")
