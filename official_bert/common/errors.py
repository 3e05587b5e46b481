"""The one exception for mistakes that a user can correct, and shared parts of its messages."""

import collections
import contextlib
import difflib
import importlib.util
import os
from collections.abc import Iterable, Iterator


class UserError(Exception):
    """Wrong usage or input. The message says what was wrong, where, and what to do.

    Commands print it on one line and exit with status 2 (`data_prep.jobs.commands`); callers of the
    Python API can catch it like any exception.
    """


def meant(name: str, known: Iterable[str]) -> str:
    """Return ' (did you mean "NAME"?)' with the known name nearest to a wrong one, or ""."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f' (did you mean "{near[0]}"?)' if near else ""


def first_of(names: Iterable[str], most: int) -> str:
    """Return the first `most` names and the number of the rest, as in "a, b and 3 more"."""
    names = list(map(str, names))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def first_line(error: Exception) -> str:
    """Return the first line of an error's message; the name of its class where it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def check_choice(name: str, value, choices: Iterable[str], source: str = "") -> None:
    """Raise UserError where a value is not one of the choices; `source` starts the message."""
    if value not in (known := list(choices)):
        where = f"{source}: " if source else ""
        raise UserError(f"{where}{name}={value!r:.80}; it is one of {', '.join(known)}")


def check_once(names: Iterable, what: str) -> None:
    """Raise UserError where a name occurs twice; `what` starts the message."""
    counts = collections.Counter(str(name) for name in names)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise UserError(f"{what}: {first_of(twice, 6)} is there twice")


def check_installed(module: str, what: str, extra: str) -> None:
    """Raise UserError where a package is missing; `what` needs it, and our extra installs it."""
    if importlib.util.find_spec(module) is None:
        raise UserError(f"{what}: pip install 'official-bert[{extra}]'")


@contextlib.contextmanager
def os_errors(path: str | os.PathLike, done: str = "read", advice: str = "") -> Iterator[None]:
    """Turn an OSError of the block, which reads or writes `path`, into a UserError.

    Args:
      path: the file or folder.
      done: participle for the message: the file cannot be read, written, ...
      advice: added to the message.

    Raises:
      UserError: the block raised OSError.
    """
    try:
        yield
    except OSError as error:
        message = f"{path}: cannot be {done} ({error.strerror or error})"
        raise UserError(f"{message}; {advice}" if advice else message) from error
