"""The tensors of a Hugging Face folder: `model.safetensors`, its shards, or `pytorch_model.bin`."""

import contextlib
import math
import re
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import numpy as np

from official_bert.checkpoints.integrity import check_type
from official_bert.errors import UserError
from official_bert.files import inside
from official_bert.json_files import field, parse_json, read_json

# The safetensors format has no checksums; ours are in its metadata: JSON, {tensor: CRC-32C}.
CHECKSUMS = "official_bert_crc32c"
# Older versions run code from a file although told to load weights only (CVE-2025-32434), or write
# beyond their memory (CVE-2026-24747).
_OLDEST_TORCH = (2, 10)
# What is looked for, in this order: a file, or the index of its shards.
_OTHERS = (".h5", ".msgpack", ".onnx", ".gguf", ".pt", ".pth", ".ckpt")
_FILES = ("model.safetensors", "pytorch_model.bin")


def checksum(array: np.ndarray) -> str:
    """The CRC-32C of the array's bytes."""
    return f"{google_crc32c.value(np.ascontiguousarray(array).reshape(-1).view(np.uint8)):08x}"


def open_tensors(
    folder: Path, stack: contextlib.ExitStack
) -> tuple[dict[str, tuple[int, ...]], Callable[[str], np.ndarray]]:
    """({name: shape}, function that reads a name), from whichever weights file is there.

    Args:
      folder: the folder.
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
        if name.endswith(".bin"):
            return _open_pickles(paths)
        return _open_safetensors(paths, stack)
    others = sorted(path.name for path in folder.glob("*") if path.suffix in _OTHERS)
    told = f"; {', '.join(others)} is not read" if others else ""
    raise UserError(f"{folder}: neither {' nor '.join(_FILES)} is there{told}")


def has_tensors(folder: Path) -> bool:
    """Whether weights are there that `open_tensors` opens."""
    return any(
        (folder / f"{name}{end}").is_file() for name in _FILES for end in ("", ".index.json")
    )


def _open_safetensors(paths: list[Path], stack: contextlib.ExitStack):
    import safetensors

    shapes, files, checksums = {}, {}, {}
    for path in paths:
        try:
            file = stack.enter_context(safetensors.safe_open(path, framework="np"))
            for name in file.keys():  # noqa: SIM118 (not a dictionary)
                shapes[name] = tuple(file.get_slice(name).get_shape())
                files[name] = path, file
            stored = (file.metadata() or {}).get(CHECKSUMS)
        except (safetensors.SafetensorError, OSError, ValueError) as error:
            raise UserError(f"{path}: cannot be read ({error})") from error
        checksums |= parse_json(stored, f"{path}: {CHECKSUMS}") if stored else {}

    def read(name):
        path, file = files[name]
        try:
            array = file.get_tensor(name)
        except Exception as error:  # a type that numpy does not have
            raise UserError(f"{path}: tensor {name} cannot be read ({error})") from error
        if name in checksums and checksum(array) != checksums[name]:
            raise UserError(f"{path}: tensor {name} is damaged (its checksum is wrong)")
        return array

    return shapes, read


def _open_pickles(paths: list[Path]):
    try:
        import torch
    except ImportError as error:
        raise UserError(
            f"{paths[0]}: a pickle, which PyTorch reads; pip install torch, or use "
            "model.safetensors"
        ) from error
    version = tuple(int(number) for number in re.findall(r"\d+", torch.__version__)[:2])
    if version < _OLDEST_TORCH:
        oldest = ".".join(map(str, _OLDEST_TORCH))
        raise UserError(
            f"{paths[0]}: a pickle, which PyTorch {torch.__version__} does not read safely; "
            f"install torch>={oldest}, or use model.safetensors"
        )
    tensors: dict = {}
    for path in paths:
        tensors |= _unpickled(path, torch)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}

    def read(name):
        tensor = tensors[name].detach()
        check_type(str(tensor.dtype).removeprefix("torch."), f"tensor {name}", paths[0])
        return tensor.to(torch.float32).numpy()

    return shapes, read


def _unpickled(path: Path, torch) -> dict:
    try:
        # weights_only: a pickle from a stranger must not run code.
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: cannot be read ({reason})") from error
    if not isinstance(tensors, dict):
        raise UserError(f"{path}: holds a {type(tensors).__name__}, not tensors by name")
    size = path.stat().st_size
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise UserError(f"{path}: {str(name)[:80]!r} is no tensor")
        # A view of a single number can have any shape.
        if tensor.layout != torch.strided or math.prod(tensor.shape) > size:
            raise UserError(f"{path}: tensor {name} is larger than the file")
    return tensors
