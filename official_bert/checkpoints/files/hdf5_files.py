"""HDF5 files of KerasHub's presets and ELMo, read in a guarded process.

HDF5's own code follows whatever a file says. Here its Python library finds the arrays; links, and
arrays that lie in other files, are not read.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from official_bert.checkpoints.files import guarded_process
from official_bert.common.errors import UserError


def read(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Return every array of an HDF5 file by its path in it; bfloat16, which numpy lacks, as
    float32.

    Raises:
      UserError: the file is missing or damaged, its arrays do not lie in it, or reading it took
        more than its limits.
    """
    return guarded_process.arrays(f"{__name__}:read_unguarded", path, "h5py")


def read_unguarded(path: str) -> dict[str, np.ndarray]:
    """Read the arrays as `read` does, but in this process."""
    import h5py

    found, size = {}, os.path.getsize(path)

    def keep(name, item):
        if not isinstance(item, h5py.Dataset):
            return
        if item.external or item.is_virtual:
            raise UserError(f"{path}: the array {name} lies in another file, which is not read")
        if item.shape is None or item.dtype.kind not in "biufV" or item.nbytes > size:
            raise UserError(f"{path}: {name} is not an array of numbers, or larger than the file")
        half = item.attrs.get("dtype") == "bfloat16"  # in Keras's files
        found[name] = _widened(item[...]) if half else item[...]

    with h5py.File(path, "r") as file:
        file.visititems(keep)  # each once, and no links
    return found


@contextlib.contextmanager
def written(arrays: dict[str, np.ndarray], source: str | os.PathLike) -> Iterator[str]:
    """Yield the path of a temporary file of Keras's format that holds these arrays alone.

    Raises:
      UserError: no file can have arrays of such names; `source` is where they came from.
    """
    import h5py

    with tempfile.TemporaryDirectory(prefix="official-bert-") as folder:
        path = str(Path(folder, "model.weights.h5"))
        try:
            with h5py.File(path, "w") as file:
                for name, array in arrays.items():
                    file[name] = array
        except (ValueError, TypeError, RuntimeError) as error:
            raise UserError(f"{source}: its arrays have wrong names ({error})") from None
        yield path


def _widened(array: np.ndarray) -> np.ndarray:
    """Return float32 from bfloat16, which is the upper half of a float32's bits."""
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
