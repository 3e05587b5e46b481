"""Configurations from files and the command line, and their part of `--help`.

`--config=FILE.py:SCALE` loads a file, `--config.learning_rate=3e-5` replaces a field (typed; nested
fields and positions work too: `--config.bert.hidden_size=64`, `--config.phases.0.records=DIR`).
Unknown fields are errors that list the valid ones. `--task_options.NAME=VALUE` is an option of the
task, for finetune, evaluate and predict alike.
"""

import contextlib
import dataclasses
import hashlib
import importlib.util
import inspect
import itertools
import pathlib
import re
import sys
import textwrap
import traceback
import typing

from absl import flags

from data_prep.jobs import command_flags
from data_prep.jobs.docstrings import arguments
from data_prep.tasks import docstring_of, options_of
from experiments.training.settings.config_values import guess, override, unknown_field
from experiments.training.settings.options import classes_for, names_for
from official_bert.common.errors import UserError, meant
from official_bert.common.typed import type_words
from official_bert.extension import places

flags.disclaim_key_flags()  # --help shows them as the command's own

CONFIGS = pathlib.Path(__file__).parents[2] / "configs"
_PACKAGE = CONFIGS.parent.resolve()
# Configurations that share a file; each is the function of its name there.
SHARED_FILES = dict.fromkeys(("table1", "table2", "table3", "table4"), "checkpoint_tables.py")

_HELP = {"--help", "-help", "--helpshort", "-helpshort", "--helpfull", "-helpfull", "-?"}
_TASK_OPTIONS = "task_options."
# Arguments of a function that runs a configuration, besides its options.
_SET_BY_COMMANDS = ("config", "ablation", "workdir", "quiet", "command", "began", "lock")


def known():
    """Return the names of all configurations, the extensions' too, with commas between."""
    others = ("__init__.py", "columns.py", "scales.py", *SHARED_FILES.values())
    files = [path.stem for path in CONFIGS.glob("*.py") if path.name not in others]
    return ", ".join(sorted([*files, *SHARED_FILES, *places("recipes")]))


def load_config(source, overrides=()):
    """Return the configuration of a file, with fields replaced.

    Args:
      source: "FILE.py", "FILE.py:SCALE", or the name of a file in experiments/configs
        ("glue", "glue:smoke").
      overrides: see `override`.

    Returns: the dataclass that the file's `get_config(scale)` returns.
    Raises: UserError for a missing file, an unknown scale or field, a wrong type, or an error
      inside the user's own file.
    """
    path, function, scale = split_source(source)
    config = made_by(import_file(path), path, function, scale)
    return override(config, overrides)


def split_source(source):
    """Return (file, name of its function, scale) of a --config."""
    path, colon, scale = source.rpartition(":")
    if not colon or path.endswith((".py:", "")) and not path:
        path, scale = source, ""
    for candidate in (pathlib.Path(path), CONFIGS.parent.parent / path, CONFIGS / f"{path}.py"):
        candidate = candidate.resolve()
        if candidate.is_file():
            return candidate, "get_config", scale
        if candidate.parent == CONFIGS.resolve() and candidate.stem in SHARED_FILES:
            return candidate.with_name(SHARED_FILES[candidate.stem]), candidate.stem, scale
    # Commands of older reports name extensions' files as if they lay in experiments/configs.
    old = pathlib.Path(path).parent in (pathlib.Path("experiments/configs"), CONFIGS)
    name = pathlib.Path(path).stem if old else path
    if name in (recipes := places("recipes")):
        module, _, function = recipes[name].partition(":")
        return pathlib.Path(importlib.util.find_spec(module).origin), function, scale
    raise UserError(
        f"--config={source}: no such file {path}{meant(path, known().split(', '))}; files in "
        f"experiments/configs: {known()}"
    )


def import_file(path):
    name = "bert_config_file_" + hashlib.sha256(str(path).encode()).hexdigest()[:8]
    if _is_ours(path):
        parts = path.relative_to(_PACKAGE).with_suffix("").parts
        return importlib.import_module(".".join(("experiments", *parts)))
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look there
    with _errors_of(path):
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _errors_of(path):
    """Turn an exception of a user's configuration file into a UserError of one line.

    Exceptions of the project's own files pass unchanged."""
    try:
        yield
    except Exception as error:
        if _is_ours(path):
            raise
        trace = traceback.TracebackException.from_exception(error)
        lines = [frame.lineno for frame in trace.stack if frame.filename == str(path)]
        if isinstance(error, SyntaxError) and error.filename == str(path):
            lines.append(error.lineno)
        where = f"{path} line {lines[-1]}" if lines else f"{path}"
        what = _wrong_argument(error) or list(trace.format_exception_only())[-1].strip()
        if isinstance(error, UserError):
            what = str(error).removeprefix("configuration: ")
        raise UserError(f"{where}: {what}") from error


def _is_ours(path):
    return path.is_relative_to(_PACKAGE)


def _wrong_argument(error):
    """Return a message for an unknown field of a dataclass; "" for other errors."""
    match = re.match(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'", str(error))
    for frame, _ in traceback.walk_tb(error.__traceback__) if match else ():
        for value in (*frame.f_locals.values(), *frame.f_globals.values()):
            kind = value if inspect.isclass(value) else type(value)
            if kind.__name__ == match[1] and dataclasses.is_dataclass(kind):
                if match[2] in names_for(kind):
                    write = f"replaced({match[1]}(...), {match[2]}=VALUE)"
                    return f"{match[2]} is an option: write {write} of settings.options"
                return f"{match[1]}: {unknown_field(kind, match[2])}"
    return ""


def made_by(module, path, function, scale):
    get_config = getattr(module, function, None)
    if get_config is None:
        raise UserError(f"{path} has no function get_config(scale) that returns a configuration")
    if scale and not inspect.signature(get_config).parameters:
        raise UserError(f'{path} has no scales, but ":{scale}" was asked for')
    with _errors_of(path):
        config = get_config(scale) if scale else get_config()
    if not dataclasses.is_dataclass(config):
        raise UserError(f"{path}: {function} returned {type(config).__name__}, not a dataclass")
    return config


def add_to_help(arguments):
    """Add the fields of a command's --config to its help, if its arguments ask for help."""
    if not _HELP & set(arguments):
        return
    words = [word for argument in arguments for word in argument.split("=", 1)]
    given = {w.lstrip("-"): value for w, value in itertools.pairwise(words) if w.startswith("-")}
    if not given.get("config"):
        return
    fields = {k.removeprefix("config."): v for k, v in given.items() if k.startswith("config.")}
    try:
        about = help_of(load_config(given["config"], fields), given["config"])
    except UserError as error:
        about = f"error: {error}"
    main = sys.modules["__main__"]
    main.__doc__ = f"{main.__doc__}\n{about}\n"  # which absl prints before the flags


def help_of(config, source):
    """Return the text of `--help` on the fields of a configuration.

    Args:
      config: a configuration, a dataclass; its values are the defaults.
      source: what --config says.
    """
    lines = [f"fields of --config={source}, as it sets them:", ""]
    for flag, value, kind, about in _entries(config, "--config"):
        lines.append(f"  {flag}={_shown(value)}  ({kind})")
        lines += textwrap.wrap(
            about, 100, initial_indent=" " * 6, subsequent_indent=" " * 6, break_on_hyphens=False
        )
    return "\n".join(lines)


def _entries(node, flag):
    """Yield (flag, value, type, comment) of each field, inner fields included.

    Among several parts of one kind (phases, variants) the first is listed in full, the others where
    they differ.
    """
    comments, hints = {}, typing.get_type_hints(type(node))
    for kind in reversed(type(node).__mro__[:-1]):
        comments |= _comments(kind)
    if hasattr(node, "model_options"):
        own = (field for field in dataclasses.fields(node) if field.name != "model_options")
    else:
        own = dataclasses.fields(node)
    for field in sorted(own, key=lambda field: field.kw_only):  # own first
        value, name = getattr(node, field.name), f"{flag}.{field.name}"
        about = comments.get(field.name, "")
        if dataclasses.is_dataclass(value):
            yield from _entries(value, name)
        elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            yield from _of_several(value, name)
        elif field.name == "task_options" and node.task:
            yield from _task_options(node.task, value, name)
        else:
            yield name, value, type_words(hints[field.name]), about
    for kind in classes_for(type(node)):
        yield from _entries(kind.of(node), flag)


def _of_several(nodes, flag):
    known = {}
    for index, node in enumerate(nodes):
        for name, value, kind, about in _entries(node, ""):
            if index == 0 or name not in known or known[name] != value:
                yield f"{flag}.{index}{name}", value, kind, about if name not in known else ""
            known.setdefault(name, value)


def _task_options(task, chosen, flag):
    comments = arguments(docstring_of(task))
    for name, option in options_of(task).items():
        value, about = chosen.get(name, option.default), comments.get(name, "")
        yield f"{flag}.{name}", value, type_words(option.annotation), about


def _comments(kind):
    """Return {field: the comments above and beside it, or its entry in the docstring}."""
    found, above = arguments(kind.__doc__), []
    for line in inspect.getsource(kind).splitlines():
        code, _, comment = line.partition("# ")
        if field := re.match(r" {4}(\w+): ", code):
            if about := " ".join([*above, comment]).strip():
                found[field[1]] = about
            above = []
        else:
            above = [*above, comment.strip()] if comment and not code.strip() else []
    return found


def _shown(value):
    if isinstance(value, (tuple, list)):
        return ",".join(map(str, value))
    if callable(value) or isinstance(value, dict):
        return "" if not value else str(value)
    return str(value)


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
    if not flags.FLAGS.config:
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
