"""The fields of a table's cell that say what it reads.

A path is not in the key of a cell, the digest of what lies there is: a result is found again where
the same data lie elsewhere. A path inside another cell counts by that cell's key.
"""

from typing import Any

from experiments.training.folder.inputs import path_inputs
from experiments.training.settings.config import FinetuneConfig, path_values
from experiments.training.settings.options import flat


def of_files(paths: dict[str, str | list[str]], digests: dict[str, str]) -> dict[str, Any]:
    """Return `ignored`, `fingerprints` and `reads` of a `Cell` whose configuration names files.

    Args:
      paths: {field: path or paths}.
      digests: {name: digest} of what lies there.
    """
    listed = [[value] if isinstance(value, str) else value for value in paths.values()]
    return _fields(tuple(paths), digests, [path for some in listed for path in some])


def of_config(config: Any, keep: str, data: str = "") -> dict[str, Any]:
    """Return `ignored`, `fingerprints` and `reads` of a `Cell` that trains.

    Fields that say where a run takes place and how it is watched do not change its result, so they
    are ignored.

    Args:
      config: PretrainConfig or FinetuneConfig.
      keep: the field that says which models a run leaves. Where it is set, another cell needs these
        models, so it counts: a run without them must not be taken for this one.
      data: digest of a fine-tuning's examples.
    """
    fields = flat(config)
    elsewhere = {name: "" for name, (_, value) in fields.items() if str(value).startswith("@")}
    digests = {name: one.digest for name, one in path_inputs(config, **elsewhere).items()}
    watching = [name for name, (field, _) in fields.items() if field.metadata.get("bookkeeping")]
    if getattr(config, keep):
        watching.remove(keep)
    # The device changes the last digits alone.
    ignored = [*watching, "distribute", *digests]
    if isinstance(config, FinetuneConfig):
        ignored, digests = [*ignored, "data_dir"], digests | {"data": data}
    paths = [path for _, path in path_values(config).values() if path]
    return _fields(tuple(ignored), digests, paths)


def _fields(ignored, fingerprints, paths):
    reads = tuple(path for path in paths if not path.startswith("@"))
    return {"ignored": ignored, "fingerprints": fingerprints, "reads": reads}
