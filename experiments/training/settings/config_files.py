"""Configurations from files: `--config=FILE.py:SCALE`, or a name of `experiments/configs`."""

import contextlib
import dataclasses
import hashlib
import importlib.util
import inspect
import pathlib
import re
import sys
import traceback

from experiments.training.settings.config_values import override
from experiments.training.settings.options import names_for, unknown_field
from official_bert.common.errors import UserError, meant
from official_bert.extension import object_paths

CONFIGS = pathlib.Path(__file__).parents[2] / "configs"
_PACKAGE = CONFIGS.parent.resolve()
# Configurations that share a file; each is the function of its name there.
SHARED_FILES = dict.fromkeys(("table1", "table2", "table3", "table4"), "checkpoint_tables.py")


def known():
    """Return the names of all configurations, the extensions' too, with commas between."""
    others = ("__init__.py", "columns.py", "scales.py", *SHARED_FILES.values())
    files = [path.stem for path in CONFIGS.glob("*.py") if path.name not in others]
    return ", ".join(sorted([*files, *SHARED_FILES, *object_paths("recipes")]))


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
    path, _, scale = source.rpartition(":")
    if not path:
        path, scale = source, ""
    for candidate in (pathlib.Path(path), CONFIGS.parent.parent / path, CONFIGS / f"{path}.py"):
        candidate = candidate.resolve()
        if candidate.is_file() and candidate.suffix == ".py":
            return candidate, "get_config", scale
        if candidate.parent == CONFIGS.resolve() and candidate.stem in SHARED_FILES:
            return candidate.with_name(SHARED_FILES[candidate.stem]), candidate.stem, scale
    # Commands of older reports name extensions' files as if they lay in experiments/configs.
    old = pathlib.Path(path).parent in (pathlib.Path("experiments/configs"), CONFIGS)
    name = pathlib.Path(path).stem if old else path
    if name in (recipes := object_paths("recipes")):
        module, _, function = recipes[name].partition(":")
        return pathlib.Path(importlib.util.find_spec(module).origin), function, scale
    raise UserError(
        f"--config={source}: no such Python file {path}{meant(path, known().split(', '))}; files "
        f"in experiments/configs: {known()}"
    )


def import_file(path):
    if _is_ours(path):
        parts = path.relative_to(_PACKAGE).with_suffix("").parts
        return importlib.import_module(".".join(("experiments", *parts)))
    name = "bert_config_file_" + hashlib.sha256(str(path).encode()).hexdigest()[:8]
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
    if not callable(get_config):
        raise UserError(f"{path} has no function {function}(scale) that returns a configuration")
    if scale and not inspect.signature(get_config).parameters:
        raise UserError(f'{path} has no scales, but ":{scale}" was asked for')
    with _errors_of(path):
        config = get_config(scale) if scale else get_config()
    if not dataclasses.is_dataclass(config):
        raise UserError(f"{path}: {function} returned {type(config).__name__}, not a dataclass")
    return config
