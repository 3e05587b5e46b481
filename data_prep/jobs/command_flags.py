"""Flags of a command, made from the function that it calls: each option is described once.

Name, type and default are the parameter's; the help text is the docstring's. A parameter without
default is required.
"""

import inspect
import re
import textwrap

from absl import flags

from data_prep.jobs import commands
from data_prep.jobs.processes import available_cores
from official_bert.common.typed import outer

flags.disclaim_key_flags()  # so --help shows them as the command's own

_DEFINE = {
    bool: flags.DEFINE_bool, int: flags.DEFINE_integer, float: flags.DEFINE_float,
    tuple: flags.DEFINE_list,
}  # fmt: skip
_OF_CALLERS = ("inputs", "progress", "workers")  # commands set these themselves


def define(function, skip=(), least=None, unset=False, **choices) -> None:
    """Define a flag for each parameter of a function, or field of a dataclass.

    Args:
      skip: parameters without a flag of their name.
      least: {parameter: its smallest number}.
      unset: flags that are not given are None, whatever the parameter's default.
      **choices: the allowed values of a parameter.
    """
    least, texts = least or {}, arguments(function.__doc__)
    for parameter in parameters(function, skip):
        name = parameter.name
        about = texts.get(name, "")  # python -OO leaves no docstrings
        required = parameter.default is parameter.empty
        default = None if required or unset else parameter.default
        if name in choices:
            flags.DEFINE_enum(name, default, choices[name], about)
            continue
        bounds = {"lower_bound": least[name]} if name in least else {}
        if name == "num_workers":  # a function that says nothing of it uses one
            bounds, default = {"lower_bound": default}, default and available_cores()
        define_one = _DEFINE.get(outer(parameter.annotation)[0], flags.DEFINE_string)
        define_one(name, default, about, required=required, **bounds)


def parameters(function, skip=()) -> list[inspect.Parameter]:
    """Return the parameters of a function that have a flag."""
    skip = (*_OF_CALLERS, *skip)
    every = inspect.signature(function).parameters.values()
    return [one for one in every if one.name not in skip and one.kind != one.VAR_KEYWORD]


def values(function) -> dict:
    """Return {parameter: value} of the parameters that have a flag of their name.

    Raises:
      UserError: a required one is empty.
    """
    every = inspect.signature(function).parameters.values()
    found = {one.name: one for one in every if one.name in flags.FLAGS}
    commands.required(*(name for name, one in found.items() if one.default is one.empty))
    return {name: flags.FLAGS[name].value for name in found}


def arguments(docstring: str | None) -> dict[str, str]:
    """Return {name: description} from the parts "Args" and "Attributes" of a docstring."""
    found = {}
    body = inspect.cleandoc(docstring or "")
    for part in re.findall(r"^(?:Args|Attributes):\n((?:  .*\n?|\n)*)", body, re.MULTILINE):
        for entry in re.split(r"\n(?=\S)", textwrap.dedent(part).strip()):
            names, _, about = entry.partition(": ")
            found |= dict.fromkeys(names.split(", "), " ".join(about.split()))
    return found
