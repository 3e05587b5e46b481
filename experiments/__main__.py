"""All commands under one name: `official-bert finetune` is `python -m experiments.finetune`.

Python looks for `-m experiments` in the working folder first, where a user's own folder of that
name would hide this package. `official-bert` does not look there.
"""

import ast
import importlib.util
import runpy
import sys
from pathlib import Path

from data_prep.jobs import commands
from official_bert.common.errors import UserError
from official_bert.extension import object_paths

_OWN = {
    module.rpartition(".")[2]: module
    for module in (
        "data_prep.wikipedia",
        "data_prep.sentences",
        "data_prep.vocab",
        "data_prep.create_pretraining_data",
        "data_prep.show_records",
        "experiments.pretrain",
        "experiments.finetune",
        "experiments.evaluate",
        "experiments.predict",
        "experiments.ablate",
        "experiments.report",
        "experiments.convert",
        "experiments.publish",
        "experiments.export",
        "experiments.serve",
        "data_prep.tasks.submission",
    )
}


def modules() -> dict[str, str]:
    """Return {command: module}, the commands of extensions last."""
    added = object_paths("commands")
    return _OWN | {name: place.partition(":")[0] for name, place in added.items()}


def main() -> None:
    """Run the command that the first argument names with the arguments after it, and exit.

    Raises:
      SystemExit: always; 2 where there is no such command.
    """
    commands.end(_run)


def _run() -> None:
    name, *arguments = sys.argv[1:] or ["--help"]
    module = modules().get(name.replace("-", "_"))
    if module:
        sys.argv[1:] = arguments
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    elif name in ("-h", "--help", "--helpshort", "--helpfull", "help"):
        print(
            f"official-bert COMMAND --OPTION=VALUE ...; official-bert COMMAND --help\n\n{_listed()}"
        )
    else:
        raise UserError(f"no command {name!r}; those there are:\n{_listed()}")


def _listed() -> str:
    """Return a line a command: its name and the first line of its module's docstring.

    The modules are parsed, not imported."""
    lines = []
    for name, module in modules().items():
        path = importlib.util.find_spec(module).origin
        doc = ast.get_docstring(ast.parse(Path(path).read_text("utf-8")))
        lines.append(f"  {name:<24} {doc.splitlines()[0]}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
