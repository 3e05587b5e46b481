"""Flags of the commands that run configurations.

`--config=FILE.py:SCALE` loads a file, `--config.learning_rate=3e-5` replaces a field (typed; nested
fields and positions work too: `--config.bert.hidden_size=64`, `--config.phases.0.records=DIR`).
Unknown fields are errors that list the valid ones. `--task_options.NAME=VALUE` is an option of the
task, for finetune, evaluate and predict alike.
"""

import sys

from absl import flags

from data_prep.jobs import command_flags
from experiments.training.settings.config_files import known, load_config
from experiments.training.settings.config_help import add_to_help
from experiments.training.settings.config_values import guess, override
from official_bert.common.errors import UserError

flags.disclaim_key_flags()  # --help shows them as the command's own

_TASK_OPTIONS = "task_options."
# Arguments of a function that runs a configuration, besides its options.
_SET_BY_COMMANDS = ("config", "ablation", "workdir", "quiet", "command", "began", "lock")


def define_flags(function):
    """Define the flags of a command that runs configurations.

    They are --config, --config.FIELD for the fields on this command line, --workdir, and one for
    each option of `function`, which the command calls. Only the `__main__` part of a command calls
    this, so that several commands can be imported into one process.
    """
    flags.DEFINE_string(
        "config",
        None,
        "FILE.py[:SCALE], or the name of a file in experiments/configs. Replace single fields "
        "with --config.FIELD=VALUE, for example --config.learning_rate=3e-5; --help together with "
        "--config lists them.",
    )
    flags.DEFINE_string("workdir", None, "folder of the run: results, checkpoints, the model")
    command_flags.define(function, _SET_BY_COMMANDS)
    _define_all("config.", "replaces a field of the configuration")
    define_task_options()
    add_to_help(sys.argv[1:])


def define_task_options():
    """Define --task_options.NAME for the options on this command line."""
    _define_all(_TASK_OPTIONS, "sets an option of the task")


def task_options_from_flags():
    """Return {name: value} of the --task_options.NAME flags of this command line."""
    return {
        name.removeprefix(_TASK_OPTIONS): guess(value)
        for name, value in _values(_TASK_OPTIONS).items()
    }


def _define_all(prefix, help):
    for argument in sys.argv[1:]:
        name = argument.lstrip("-").partition("=")[0]
        if argument.startswith("-") and name.startswith(prefix) and name not in flags.FLAGS:
            flags.DEFINE_string(name, None, help)


def _values(prefix):
    given = {name: flags.FLAGS[name].value for name in flags.FLAGS if name.startswith(prefix)}
    return {name: value for name, value in given.items() if value is not None}


def config_from_flags(kind):
    """Return the configuration of --config and the --config.FIELD flags of this command line.

    Raises: UserError where --config is missing or wrong, or gives no `kind`.
    """
    return _from_flags(_source(), kind)


def configs_from_flags(kind):
    """Return {source: configuration} of a --config that may name several, with commas between.

    Raises: UserError, see `config_from_flags`.
    """
    sources = filter(None, map(str.strip, _source().split(",")))
    return {source: _from_flags(source, kind) for source in sources}


def _source():
    if not (flags.FLAGS.config or "").strip(", "):
        raise UserError(f"--config is missing; choose a file, for example one of {known()}")
    return flags.FLAGS.config


def _from_flags(source, kind):
    config = load_config(source)
    if not isinstance(config, kind):
        given = type(config).__name__
        raise UserError(f"--config gives a {given}; this command needs {kind.__name__}")
    fields = {
        name.removeprefix("config."): value
        for name, value in (_values("config.") | _values(_TASK_OPTIONS)).items()
    }
    return override(config, fields)
