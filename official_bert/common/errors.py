"""The one exception for mistakes that a user can correct."""


class UserError(Exception):
    """Wrong usage or input. The message says what was wrong, where, and what to do.

    Commands print it on one line and exit with status 2 (see `commands`); callers of
    the Python API can catch it like any exception.
    """
