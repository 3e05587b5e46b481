"""Readers that hang, grow, crash, ask for input or fail: each ends, and says which file it was."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from official_bert import UserError
from official_bert.checkpoints.files import guarded_process

ROOT = Path(__file__).parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")


# The function that the process is told to call.
def good(path):
    return {"a": np.arange(3, dtype="f4").reshape(3, 1), "b": np.array(len(Path(path).read_text()))}


def busy(path):
    Path(f"{path}.pid").write_text(str(os.getpid()))
    Path(f"{path}.pid").rename(f"{path}.busy")
    while True:
        sum(range(1000))


def growing(path):
    held = []
    while True:
        held.append(np.ones(1_000_000))


def crashing(path):
    import ctypes

    ctypes.string_at(1)


def failing(path):
    raise KeyError("no such\nthing")


def refusing(path):
    raise UserError(f"{path}: a poem, no model")


def leaving(path):
    sys.exit(3)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "file").write_text("content")
    return tmp_path / "file"


def read(path, name, seconds=None):
    # Imported anew there, by the name under which it is found here.
    return guarded_process.arrays(f"{__name__}:{name}", path, "json", seconds)


@pytest.fixture(autouse=True)
def this_module_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def test_what_is_read_comes_back(path):
    found = read(path, "good")
    assert found["a"].tolist() == [[0], [1], [2]] and found["a"].dtype == np.float32
    assert found["b"] == 7


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("failing", "cannot be read ('no such"),
        ("refusing", ": a poem, no model"),
        ("crashing", "crashed (SIGSEGV)"),
        ("leaving", "failed (exit code 3)"),
        pytest.param("growing", "cannot be read (Unable to allocate", marks=linux),
    ],
)
def test_a_reader_that_fails(path, name, message):
    with pytest.raises(UserError) as error:
        read(path, name)
    assert str(path) in str(error.value) and message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(sys.platform == "win32", reason="there only time by the clock has a limit")
def test_a_reader_that_does_not_end(path):
    with pytest.raises(UserError, match="file: cannot be read.* did not end within 1 s"):
        read(path, "busy", seconds=1)


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match=r"absent: cannot be read \(no such file"):
        read(tmp_path / "absent", "good")


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_ctrl_c_ends_both(path):
    code = (
        "import signal; from official_bert.checkpoints.files import guarded_process; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "  # who starts it may ignore it
        "print('now', flush=True); "
        f"guarded_process.arrays('test_guarded_process:busy', {str(path)!r}, 'json')"
    )
    places = f"{ROOT}:{Path(__file__).parent}"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": places},
        start_new_session=True,
    )
    try:
        assert process.stdout.readline() == b"now\n"
        while not path.with_name("file.busy").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    finally:
        process.kill()
    assert b"KeyboardInterrupt" in errors
    child = int(path.with_name("file.busy").read_text())
    with pytest.raises(ProcessLookupError):
        while True:  # it was killed, and its number stays until the system has taken note of it
            os.kill(child, 0)
            time.sleep(0.01)


def test_threads_alive_do_no_harm(path):
    """A fork with JAX's threads alive may hang; this starts a process anew."""
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert read(path, "good")["b"] == 7
    finally:
        stop.set()
        thread.join()
