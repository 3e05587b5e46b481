"""The part of `--help` that lists the fields of a configuration, with their values and comments."""

import dataclasses
import inspect
import itertools
import re
import sys
import textwrap
import typing

from data_prep.jobs.command_flags import arguments
from data_prep.tasks import docstring_of, options_of
from experiments.training.settings.config_files import load_config
from experiments.training.settings.options import classes_for
from official_bert.common.errors import UserError
from official_bert.common.typed import type_words

_HELP = {"--help", "-help", "--helpshort", "-helpshort", "--helpfull", "-helpfull", "-?"}


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
    own = (field for field in dataclasses.fields(node) if field.name != "model_options")
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
