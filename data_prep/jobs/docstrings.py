"""Descriptions of options, from docstrings; `--help` shows them."""

import inspect
import re
import textwrap


def arguments(docstring: str | None) -> dict[str, str]:
    """Return {name: description} from the parts "Args" and "Attributes" of a docstring."""
    found = {}
    body = inspect.cleandoc(docstring or "")
    for part in re.findall(r"^(?:Args|Attributes):\n((?:  .*\n?|\n)*)", body, re.MULTILINE):
        for entry in re.split(r"\n(?=\S)", textwrap.dedent(part).strip()):
            names, _, about = entry.partition(": ")
            found |= dict.fromkeys(names.split(", "), " ".join(about.split()))
    return found
