"""Commands called in the process of the tests: to import TensorFlow takes longer than most work."""

import sys

import pytest
from absl import app, flags

from data_prep.jobs import commands


def call(command, *arguments):
    """Do what `python -m command arguments` does, for the module of a command.

    Returns: the exit code; what it prints is with `capsys`.
    """
    app.define_help_flags()
    known = set(flags.FLAGS)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", [command.__name__, *arguments])
        try:
            command._define_flags()
            commands.run(command.main)
        finally:
            for name in set(flags.FLAGS) - known:
                delattr(flags.FLAGS, name)
            flags.FLAGS.unparse_flags()
    return ended.value.code
