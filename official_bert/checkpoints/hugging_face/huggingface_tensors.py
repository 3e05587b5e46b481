"""The tensors of a Hugging Face folder: `model.safetensors`, its shards, or `pytorch_model.bin`."""

import contextlib
import importlib.metadata
import math
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from official_bert.checkpoints.files import guarded_process, safetensors_files
from official_bert.checkpoints.integrity import check_type
from official_bert.common.errors import UserError
from official_bert.common.json_files import field, read_json
from official_bert.common.paths import inside

# Older versions run code from a file even with weights_only (CVE-2025-32434), or write out of
# bounds (CVE-2026-24747).
_OLDEST_TORCH = (2, 10)
# Weights in formats that are not read; a message names them.
_OTHERS = (".h5", ".msgpack", ".onnx", ".gguf", ".pt", ".pth", ".ckpt")
_FILES = ("model.safetensors", "pytorch_model.bin")  # in this order, each alone or in shards
# Types that a file of arrays may hold as they are; `transfer` takes the weights among them.
_NUMBERS = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")


def open_tensors(
    folder: Path, stack: contextlib.ExitStack
) -> tuple[dict[str, tuple[int, ...]], Callable[[str], np.ndarray]]:
    """Return ({name: shape}, function that reads a name), from whichever weights file is there.

    Args:
      stack: closes the files that are read later.

    Raises:
      UserError: there is none, one is damaged, or PyTorch is needed and absent or too old.
    """
    for name in _FILES:
        index, paths = folder / f"{name}.index.json", [folder / name]
        if not paths[0].is_file():
            if not index.is_file():
                continue
            shards = field(read_json(index), "weight_map", dict, index)
            names = {field(shards, tensor, str, f"{index}: weight_map") for tensor in shards}
            paths = [inside(folder, part, index) for part in sorted(names)]
        if not name.endswith(".bin"):
            return safetensors_files.open_all(paths, stack)
        _check_torch(folder / name)
        tensors: dict[str, np.ndarray] = {}
        for path in paths:
            tensors |= guarded_process.arrays(f"{__name__}:read_pickle", path, "torch")
        return {name: array.shape for name, array in tensors.items()}, tensors.__getitem__
    others = sorted(path.name for path in folder.glob("*") if path.suffix in _OTHERS)
    skipped = f"; {', '.join(others)} is not read" if others else ""
    raise UserError(f"{folder}: neither {' nor '.join(_FILES)} is there{skipped}")


def has_tensors(folder: Path) -> bool:
    """Return whether the folder has weights that `open_tensors` can open."""
    return any(
        (folder / f"{name}{end}").is_file() for name in _FILES for end in ("", ".index.json")
    )


def _check_torch(path: Path) -> None:
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        raise UserError(
            f"{path}: a pickle, which PyTorch reads; pip install torch, or use model.safetensors"
        ) from None
    if tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < _OLDEST_TORCH:
        oldest = ".".join(map(str, _OLDEST_TORCH))
        raise UserError(
            f"{path}: a pickle, which PyTorch {version} does not read safely; "
            f"install torch>={oldest}, or use model.safetensors"
        )


def read_pickle(path: str) -> dict[str, np.ndarray]:
    """Return a pickle's tensors, bfloat16 as float32; this process should be a guarded one."""
    import torch

    # weights_only: a pickle from a stranger must not run code.
    tensors = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(tensors, dict):
        raise UserError(f"{path}: holds a {type(tensors).__name__}, not tensors by name")
    size, found = os.path.getsize(path), {}
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise UserError(f"{path}: {str(name)[:80]!r} is not a tensor")
        # A view of a single number can have any shape.
        if tensor.layout != torch.strided or math.prod(tensor.shape) > size:
            raise UserError(f"{path}: tensor {name} is larger than the file")
        dtype = str(tensor.dtype).removeprefix("torch.")
        if dtype not in _NUMBERS:
            check_type(dtype, f"tensor {name}", path)
            tensor = tensor.to(torch.float32)  # bfloat16
        found[name] = tensor.detach().numpy()
    return found
