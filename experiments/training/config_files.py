"""Configuration files: where --config finds them, and what they return."""

import dataclasses
import hashlib
import importlib.util
import inspect
import pathlib

from experiments.training.overrides import override
from official_bert.common.errors import UserError

CONFIGS = pathlib.Path(__file__).parents[1] / "configs"
# Configurations that share a file there: each is a function of its name.
SHARED_FILES = dict.fromkeys(("table1", "table2", "table3", "table4"), "checkpoint_tables.py")
SHARED_FILES |= dict.fromkeys(("tfidf", "cbow", "bilstm_attention"), "word_baselines.py")
SHARED_FILES |= dict.fromkeys(
    ("albert", "electra", "roberta", "spanbert", "distil", "tinybert"), "successors.py"
)


def known():
    others = ("__init__.py", "columns.py", "compared.py", "scales.py", *SHARED_FILES.values())
    files = [path.stem for path in CONFIGS.glob("*.py") if path.name not in others]
    return ", ".join(sorted([*files, *SHARED_FILES]))


def load_config(source, overrides=()):
    """The configuration that a file gives, with fields replaced.

    Args:
      source: "FILE.py", "FILE.py:SCALE", or the name of a file in experiments/configs
        ("glue", "glue:smoke").
      overrides: see `override`.

    Returns: the dataclass that the file's `get_config(scale)` returns.
    Raises: UserError for a missing file, an unknown scale, an unknown field, a wrong type.
    """
    path, function, scale = split_source(source)
    config = made_by(import_file(path), path, function, scale)
    return override(config, overrides)


def split_source(source):
    """(file, name of its function, scale) of a --config."""
    path, colon, scale = source.rpartition(":")
    if not colon or path.endswith((".py:", "")) and not path:
        path, scale = source, ""
    for candidate in (pathlib.Path(path), CONFIGS.parent.parent / path, CONFIGS / f"{path}.py"):
        candidate = candidate.resolve()
        if candidate.is_file():
            return candidate, "get_config", scale
        if candidate.parent == CONFIGS.resolve() and candidate.stem in SHARED_FILES:
            return candidate.with_name(SHARED_FILES[candidate.stem]), candidate.stem, scale
    raise UserError(
        f"--config={source}: no such file {path}; files in experiments/configs: {known()}"
    )


def import_file(path):
    name = "bert_config_file_" + hashlib.sha256(str(path).encode()).hexdigest()[:8]
    if path.parent == CONFIGS.resolve():
        return importlib.import_module(f"experiments.configs.{path.stem}")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise UserError(f"{path} line {error.lineno}: not valid Python: {error.msg}") from error
    return module


def made_by(module, path, function, scale):
    get_config = getattr(module, function, None)
    if get_config is None:
        raise UserError(f"{path} has no function get_config(scale) that returns a configuration")
    if scale and not inspect.signature(get_config).parameters:
        raise UserError(f'{path} has no scales, but ":{scale}" was asked for')
    config = get_config(scale) if scale else get_config()
    if not dataclasses.is_dataclass(config):
        raise UserError(f"{path}: {function} returned {type(config).__name__}, not a dataclass")
    return config
