"""Models that come with the package: `official_bert.load("tiny-wikipedia")` needs no network.

Each is a model folder in `official_bert/embedded`; its README.md says what it learnt from and what
it can do.
"""

import os
from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "embedded"


def names() -> list[str]:
    """Return the names of the embedded models."""
    return sorted(path.name for path in _FOLDER.iterdir())


def find(model: str | os.PathLike) -> Path:
    """Return the folder of an embedded model; any other path is returned as it is.

    Whatever has that name in the working directory comes first.
    """
    path, inside = Path(model), _FOLDER / model
    return inside if len(path.parts) == 1 and inside.is_dir() and not path.exists() else path
