"""The one exception for mistakes that a user can correct, and the hint at a name nearby."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Wrong usage or input. The message says what was wrong, where, and what to do.

    Commands print it on one line and exit with status 2 (see `commands`); callers of
    the Python API can catch it like any exception.
    """


def meant(name: str, known: Iterable[str]) -> str:
    """' (did you mean "NAME"?)' of the known name that is most like a wrong one; "" without one."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f' (did you mean "{near[0]}"?)' if near else ""
