"""The start of TensorFlow without the notes that it prints before any setting can silence them."""

import contextlib
import importlib
import importlib.util
import os
import tempfile
from collections.abc import Iterator


def import_tensorflow() -> None:
    """Import TensorFlow without the notes that its start prints; commands call it first.

    Nothing happens where TensorFlow is not installed, since whoever needs it will say so, or where
    KERAS_BACKEND names another backend.
    """
    if os.environ.get("KERAS_BACKEND", "tensorflow") != "tensorflow":
        return
    if importlib.util.find_spec("tensorflow") is None:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with quiet():
        importlib.import_module("tensorflow")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Turn standard error aside, that of C++ code too; what was said is shown after a failure."""
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as notes:
        os.dup2(notes.fileno(), 2)
        try:
            yield
        except BaseException:
            notes.seek(0)
            os.write(stderr, notes.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
