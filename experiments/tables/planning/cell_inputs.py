"""The files that a table's cell reads, by its configuration.

The key of a cell has the digests of its files, not their paths: a result is found again wherever
the same files lie. A file of another cell counts by that cell's key.
"""

from typing import Any

from experiments.tables.run.grid import CellInputs, referred
from experiments.training.folder.inputs import path_inputs
from experiments.training.settings.config import path_values
from experiments.training.settings.options import flat


def of_fields(fields: dict[str, str | list[str]], digests: dict[str, str]) -> CellInputs:
    """Return the inputs of a cell whose configuration names files in some fields.

    Args:
      fields: {field: path or paths}.
      digests: {label: digest of the files}; the labels enter the key.
    """
    paths = [[value] if isinstance(value, str) else value for value in fields.values()]
    return CellInputs(tuple(fields), digests, _outside(path for some in paths for path in some))


def of_training(config: Any, data: str | None = None) -> CellInputs:
    """Return the inputs of a cell that trains.

    Fields that say where a run takes place and how it is watched do not change its result, so they
    are ignored too.

    Args:
      config: PretrainConfig or FinetuneConfig.
      data: digest of a fine-tuning's examples, which `data_dir` names; None: a pre-training.
    """
    fields = flat(config)
    # An empty path has no digest: a file of another cell counts by that cell's key.
    made = {name: "" for name, (_, value) in fields.items() if referred(value)[0]}
    digests = {name: one.digest for name, one in path_inputs(config, **made).items()}
    ignored = [name for name, (field, _) in fields.items() if field.metadata.get("bookkeeping")]
    if getattr(config, "snapshots", ()):
        ignored.remove("snapshots")  # other cells need them: a run without them is another
    # The paths of the digests count by these; another device changes the last digits alone.
    ignored += [*digests, "distribute"]
    if data is not None:
        ignored.append("data_dir")
        digests["data"] = data
    paths = (path for _, path in path_values(config).values() if path)
    return CellInputs(tuple(ignored), digests, _outside(paths))


def _outside(paths) -> tuple[str, ...]:
    return tuple(path for path in paths if not referred(path)[0])
