"""Start and end of every command: absl flags, exit codes, one clear line for an error.

Exit codes: 0 success; 1 a failure; 2 wrong usage or input; 130 interrupted with Ctrl-C.
"""

import errno
import importlib
import importlib.util
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Sequence

from absl import app, flags

from official_bert.common.errors import UserError
from official_bert.common.files import FULL, UNWRITABLE

# A folder that was removed while the command ran, is on a full disk, or cannot be written.
_USERS_ERRORS = (errno.ENOENT, *FULL, *UNWRITABLE)


def run(main: Callable[[Sequence[str]], int | None], takes_files: bool = False) -> None:
    """Parses the flags, calls `main(argv)` and exits with the project's exit codes.

    Args:
      takes_files: whether the command has arguments that are no flags; main finds them in argv[1:].

    Raises:
      SystemExit: always. Unknown or ill-typed flags print their message and exit with 2.
    """

    def guarded(argv: Sequence[str]) -> None:
        for stream in (sys.stdout, sys.stderr):  # names of files may be no UTF-8
            stream.reconfigure(errors="backslashreplace")
        # JAX tells of each kind of device that this machine has not, the others of each request.
        for name in ("jax", "httpx", "httpx2"):
            logging.getLogger(name).setLevel(logging.WARNING)
        sys.exit(_exit_code(main, argv, takes_files))

    app.run(guarded, flags_parser=_parse_flags)


def import_tensorflow() -> None:
    """Imports TensorFlow without the notes that its start prints; commands call it first.

    They are written by C++ code before any setting can silence it, so standard error is turned
    aside for the moment of the import; if the import fails, what it said is shown. Where
    TensorFlow is not installed this does nothing: whoever needs it will say so. Nor does it where
    KERAS_BACKEND names another one.
    """
    if os.environ.get("KERAS_BACKEND", "tensorflow") != "tensorflow":
        return
    if importlib.util.find_spec("tensorflow") is None:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as notes:
        os.dup2(notes.fileno(), 2)
        try:
            importlib.import_module("tensorflow")
        except BaseException:
            notes.seek(0)
            os.write(stderr, notes.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def _exit_code(main, argv, takes_files) -> int:
    if len(argv) > 1 and not takes_files:
        return _say(f"unexpected argument {argv[1]!r}; options are given as --name=value", 2)
    try:
        return main(argv) or 0
    except UserError as error:
        return _say(f"error: {error}", 2)
    except OSError as error:
        named = error.filename is not None or error.errno in FULL  # where does not matter
        if not named or error.errno not in _USERS_ERRORS:
            return _failed(error)
        return _say(f"error: {error.filename or 'the disk'}: {error.strerror}", 2)
    except KeyboardInterrupt as interrupt:
        return _say(str(interrupt) or "interrupted; run the same command again to continue", 130)
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> int:
    logging.exception("failed")
    return _say(f"failed: {type(error).__name__}: {error}", 1)


def _parse_flags(argv):
    try:
        return flags.FLAGS(argv)
    except SystemExit:  # of --help, which absl ends as a failure
        sys.exit(0)
    except flags.Error as error:
        sys.exit(_say(f"error: {error}\nSee --help for the options.", 2))
    except UserError as error:
        sys.exit(_say(f"error: {error}", 2))


def _say(message: str, code: int) -> int:
    print(message, file=sys.stderr, flush=True)
    return code
