"""Parts of a configuration in the key of a table's cell: digests of files, and fields left out."""

from typing import Any

from experiments.training.folder.inputs import path_inputs
from experiments.training.settings.options import flat


def fingerprints(config: Any) -> dict[str, str]:
    """Return digests of the files that a configuration names, except for other cells' (by their
    keys)."""
    found = flat(config).items()
    made = {name: "" for name, (_, value) in found if str(value).startswith("@")}
    return {name: one.digest for name, one in path_inputs(config, **made).items()}


def ignored(config: Any, keep: str) -> tuple[str, ...]:
    """Return the fields that do not change the result: where a run takes place, how it is watched.

    The field `keep` changes which files a run leaves. Where it is set, another cell needs these
    files, so it counts: a run without them must not be taken for this one."""
    fields = ((name, field) for name, (field, _) in flat(config).items())
    bookkeeping = [name for name, field in fields if field.metadata.get("bookkeeping")]
    if getattr(config, keep):
        bookkeeping.remove(keep)
    return (*bookkeeping, "distribute")
