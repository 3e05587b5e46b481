"""Models that come with the package: `official_bert.load("tiny-wikipedia")` needs no network.

Each is a model folder in `official_bert/embedded`; its README.md says what it learnt from and what
it can do.
"""

import os
from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "embedded"


def names() -> list[str]:
    """Return the models there are."""
    return sorted(path.name for path in _FOLDER.iterdir())


def find(model: str | os.PathLike) -> Path:
    """Return the folder of an embedded model, or the path as it is; what lies here under the name
    wins."""
    path, inside = Path(model), _FOLDER / model
    return inside if len(path.parts) == 1 and inside.is_dir() and not path.exists() else path
