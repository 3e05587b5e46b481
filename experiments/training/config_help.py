"""The fields of a configuration for `--help`: each as the flag that replaces it, with its type."""

import dataclasses
import inspect
import itertools
import re
import sys
import textwrap
import typing

from data_prep.jobs.docstrings import arguments
from data_prep.tasks import docstring_of, options_of
from official_bert.common.errors import UserError

_HELP = {"--help", "-help", "--helpshort", "-helpshort", "--helpfull", "-helpfull", "-?"}


def add_to_help(load, arguments):
    """Where a command is asked for help, has it tell the fields of its --config too.

    Args:
      load: `config_files.load_config`.
      arguments: of the command line.
    """
    if not _HELP & set(arguments):
        return
    words = [word for argument in arguments for word in argument.split("=", 1)]
    given = {w.lstrip("-"): value for w, value in itertools.pairwise(words) if w.startswith("-")}
    if not given.get("config"):
        return
    fields = {k.removeprefix("config."): v for k, v in given.items() if k.startswith("config.")}
    try:
        about = text(load(given["config"], fields), given["config"])
    except UserError as error:
        about = f"error: {error}"
    main = sys.modules["__main__"]
    main.__doc__ = f"{main.__doc__}\n{about}\n"  # which absl prints before the flags


def text(config, source):
    """What `--help` says of a configuration beside the flags of the command.

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
    """(flag, value, type, comment) of each field, those inside other fields included.

    Of several alike (phases, variants) the first is listed in full, the others where they differ.
    """
    comments, hints = {}, typing.get_type_hints(type(node))
    for kind in reversed(type(node).__mro__[:-1]):
        comments |= _comments(kind)
    for field in sorted(dataclasses.fields(node), key=lambda field: field.kw_only):  # own first
        value, name = getattr(node, field.name), f"{flag}.{field.name}"
        about = comments.get(field.name, "")
        if dataclasses.is_dataclass(value):
            yield from _entries(value, name)
        elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            yield from _of_several(value, name)
        elif field.name == "task_options" and node.task:
            yield from _task_options(node.task, value, name)
        else:
            yield name, value, _type_name(hints[field.name]), about


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
        yield f"{flag}.{name}", value, _type_name(option.annotation), about


def _comments(kind):
    """{field: the comments above and behind it, or what the docstring says of it}."""
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


def _type_name(hint):
    name = hint.__name__ if inspect.isclass(hint) and not typing.get_args(hint) else str(hint)
    return re.sub(r"\b[a-z_]\w*(?:\.\w+)*\.(?=\w)", "", name)
