"""The start and end of every command: absl flags, exit codes, one clear line for an error.

Exit codes: 0 success; 1 a failure; 2 wrong usage or input; 130 interrupted with Ctrl-C; 141 the
reader of its output has ended.
"""

import contextlib
import errno
import logging
import os
import re
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from absl import app, flags

from official_bert.common.errors import UserError
from official_bert.common.files import FULL, UNWRITABLE

_LIMITS = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
_NO_THREAD = "can't start new thread"  # which is not an OSError
_MOST_SAID = 2000  # characters, of the beginning and of the end
# Errors of a folder that was removed meanwhile, is on a full disk, or cannot be written.
_USERS_ERRORS = (errno.ENOENT, *FULL, *UNWRITABLE, *_LIMITS)
# Where an installation was broken off.
_REQUIRED = ("keras", "numpy", "tensorflow", "tensorflow_text", "tokenizers", "safetensors")
_INSTALL = "pip install 'official-bert[tensorflow]', or [jax], [torch]"
# Where it is that errors without a path are about.
_PLACES = {
    errno.ENOENT: "the working folder",
    **dict.fromkeys((*FULL, errno.EFBIG), "the disk"),
    **dict.fromkeys(_LIMITS, "the limits of the system (ulimit -a)"),
}


def run(main: Callable[[Sequence[str]], int | None], takes_files: bool = False) -> None:
    """Parse the flags, call `main(argv)`, and end the process as `end` does.

    Args:
      takes_files: whether the command has arguments beside its flags; main finds them in argv[1:].
    """

    def checked(argv: Sequence[str]) -> int | None:
        if len(argv) > 1 and not takes_files:
            raise UserError(f"unexpected argument {argv[1]!r}; options are given as --name=value")
        # JAX tells of each kind of device that this machine has not, the others of each request.
        for name in ("jax", "httpx", "httpx2"):
            logging.getLogger(name).setLevel(logging.WARNING)
        return main(argv)

    end(lambda: app.run(checked, flags_parser=_parse_flags))


def required(*names: str) -> None:
    """Raise UserError where a flag of this command has no value."""
    for name in names:
        if not flags.FLAGS[name].value:
            what = flags.FLAGS[name].help.rstrip(".")
            raise UserError(f"--{name} is missing: {what}; see --help")


def say(text: object) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def end(work: Callable[[], object]) -> NoReturn:
    """Call `work()`, flush its output, and end the process.

    Raises:
      SystemExit: always, with one of the project's exit codes.
    """
    _open_streams()
    code = _exit_code(work)
    for stream in (sys.stdout, sys.stderr):
        if failed := _exit_code(stream.flush):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # Python tries once more
            code = code or failed
    sys.exit(code)


@contextlib.contextmanager
def ended_in_order() -> Iterator[None]:
    """End a block on SIGTERM, and when the terminal closes, as Ctrl-C does.

    So processes that it started end too, and it saves its work.
    """

    def leave(number, _frame):
        raise SystemExit(128 + number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:  # nohup
            signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _open_streams() -> None:
    """Open standard streams that the user closed (`>&-`).

    Otherwise a file would get such a stream's number, and the output with it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(handle, True)
            setattr(sys, name, os.fdopen(handle, mode))
    for stream in (sys.stdout, sys.stderr):  # file names may not be UTF-8
        stream.reconfigure(errors="backslashreplace")


def _exit_code(work: Callable[[], object]) -> int:
    try:
        work()
        return 0
    except SystemExit as ended:
        return ended.code or 0
    except UserError as error:
        return _say(f"error: {error}", 2)
    except OSError as error:
        if error.errno == errno.EPIPE and _nobody_reads():
            return 128 + signal.SIGPIPE
        place = error.filename or _PLACES.get(error.errno)
        if place is None or error.errno not in _USERS_ERRORS:
            return _failed(error)
        return _say(f"error: {place}: {error.strerror}", 2)
    except ModuleNotFoundError as error:
        if error.name not in _REQUIRED:
            return _failed(error)
        return _say(f"error: {error.name} is not installed: {_INSTALL}", 2)
    except KeyboardInterrupt as interrupt:
        return _say(str(interrupt) or "interrupted; run the same command again to continue", 130)
    except FloatingPointError as error:  # of a training: its message says what to try
        return _say(f"failed: {error}", 1)
    except Exception as error:
        if str(error) == _NO_THREAD:
            return _say(f"error: {_PLACES[errno.EAGAIN]}: {error}", 2)
        return _failed(error)


def _nobody_reads() -> bool:
    """Return whether standard output is a pipe whose reader has ended (`| head -1`)."""
    streams = select.poll()
    for stream in (sys.stdout, sys.stderr):
        streams.register(stream, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in streams.poll(0))


def _failed(error: Exception) -> int:
    logging.exception("failed")
    return _say(f"failed: {type(error).__name__}: {error}", 1)


def _parse_flags(argv):
    try:
        return flags.FLAGS(argv)
    except SystemExit:  # of --help, which absl ends as a failure
        sys.exit(0)
    except flags.Error as error:
        if missing := re.search(r"Flag --(\w+) must have a value other than None", str(error)):
            required(missing[1])
        raise UserError(f"{error}\nSee --help for the options.") from error


def _say(message: str, code: int) -> int:
    # Names of files, and texts of strangers, may be long or hold control sequences.
    if len(message) > 2 * _MOST_SAID:
        message = f"{message[:_MOST_SAID]} ... {message[-_MOST_SAID:]}"
    message = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda c: repr(c[0])[1:-1], message)
    with contextlib.suppress(OSError):  # nobody hears it
        print(message, file=sys.stderr, flush=True)
    return code
