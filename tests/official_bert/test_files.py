"""Files and folders appear whole or not at all."""

import errno
import os

import pytest

from official_bert.errors import UserError
from official_bert.files import atomic_folder, atomic_write, sha256_file


def test_a_file_appears_only_when_complete(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    with atomic_write(path) as file:
        file.write("ä\n")
        assert not path.exists()
    assert path.read_bytes() == "ä\n".encode()
    assert os.listdir(path.parent) == ["file.txt"]


@pytest.mark.parametrize("error", [RuntimeError(), KeyboardInterrupt()])
def test_an_error_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(type(error)), atomic_write(path) as file:
        file.write("half")
        raise error
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file.txt"]


def test_a_full_disk_is_said_in_one_sentence(tmp_path):
    with pytest.raises(UserError, match="disk is full"), atomic_write(tmp_path / "file"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert os.listdir(tmp_path) == []


def test_a_folder_is_replaced_only_on_request(tmp_path):
    folder = tmp_path / "model"
    for content in ("one", "two"):
        with atomic_folder(folder, overwrite=content == "two") as temporary:
            (temporary / "file").write_text(content)
        assert (folder / "file").read_text() == content
    with pytest.raises(UserError, match="--overwrite"), atomic_folder(folder):
        pass
    assert (folder / "file").read_text() == "two" and os.listdir(tmp_path) == ["model"]


def test_sha256(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert sha256_file(tmp_path / "empty").startswith("e3b0c44298fc1c14")
