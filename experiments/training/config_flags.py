"""Configurations on the command line.

`--config=FILE.py:SCALE` loads a file, `--config.learning_rate=3e-5` replaces a field (typed; nested
fields and positions work too: `--config.bert.hidden_size=64`, `--config.phases.0.records=DIR`).
Unknown fields are errors that list the valid ones. `--task_options.NAME=VALUE` is an option of the
task, for finetune, evaluate and predict alike.
"""

import sys

from experiments.training import config_files, config_help
from experiments.training.overrides import guess
from official_bert.common.errors import UserError

_TASK_OPTIONS = "task_options."


def define_flags(default=None, overwrite=True):
    """Defines --config, --config.FIELD for the fields on this command line, and --workdir.

    Called from a command's `__main__` part and never when a module is imported, so that several
    commands can be imported into one process.
    """
    from absl import flags

    flags.DEFINE_string(
        "config",
        default,
        "FILE.py[:SCALE], or the name of a file in experiments/configs. Replace single fields "
        "with --config.FIELD=VALUE, for example --config.learning_rate=3e-5; --help together with "
        "--config lists them.",
    )
    flags.DEFINE_string("workdir", None, "folder of the run: results, checkpoints, the model")
    names = ["config", "workdir"]
    if overwrite:
        flags.DEFINE_bool("overwrite", False, "discard what an earlier run left in --workdir")
        names.append("overwrite")
    _define_all("config.", "replaces a field of the configuration")
    define_task_options()
    show_in_help(*names)
    config_help.add_to_help(config_files.load_config, sys.argv[1:])


def define_task_options():
    """Defines --task_options.NAME for the options on this command line."""
    _define_all(_TASK_OPTIONS, "sets an option of the task")


def task_options_from_flags():
    """{name: value} of the --task_options.NAME flags of this command line."""
    return {
        name.removeprefix(_TASK_OPTIONS): guess(value)
        for name, value in _values(_TASK_OPTIONS).items()
    }


def _define_all(prefix, help):
    from absl import flags

    for argument in sys.argv[1:]:
        name = argument.lstrip("-").partition("=")[0]
        if argument.startswith("-") and name.startswith(prefix) and name not in flags.FLAGS:
            flags.DEFINE_string(name, None, help)


def _values(prefix):
    from absl import flags

    given = {name: flags.FLAGS[name].value for name in flags.FLAGS if name.startswith(prefix)}
    return {name: value for name, value in given.items() if value is not None}


def show_in_help(*names):
    """Lists flags that were defined in another module in the command's own --help."""
    from absl import flags

    main = sys.modules["__main__"]
    for name in names:
        flags.FLAGS.register_key_flag_for_module(
            getattr(main, "__file__", None) and sys.argv[0] or "", flags.FLAGS[name]
        )


def config_from_flags():
    """The configuration of --config and the --config.FIELD flags of this command line.

    Raises: UserError where --config is missing or wrong.
    """
    from absl import flags

    if not flags.FLAGS.config:
        known = config_files.known()
        raise UserError(f"--config is missing; choose a file, for example one of {known}")
    overrides = {
        name.removeprefix("config."): value
        for name, value in (_values("config.") | _values(_TASK_OPTIONS)).items()
    }
    return config_files.load_config(flags.FLAGS.config, overrides)
