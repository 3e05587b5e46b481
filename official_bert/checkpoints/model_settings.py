"""The file `model.json` of a model folder: which head it has, its labels, its task."""

import os
from pathlib import Path
from typing import Any

from official_bert.checkpoints import embedded
from official_bert.checkpoints.names import FINE_TUNED
from official_bert.common.errors import UserError, check_choice, check_once
from official_bert.common.json_files import field, list_of, read_json, shorten
from official_bert.config import PROBLEMS
from official_bert.extension import check_name, find, names
from official_bert.objectives import parse_spec
from official_bert.window_pooling import POOLINGS, token_pooling_fields

MODEL_FILE = "model.json"
HEADS = ("none", "pretraining", *FINE_TUNED)  # of BERT


def read_settings(folder: str | os.PathLike) -> dict[str, Any]:
    """Return the contents of the folder's `model.json`, checked; needs neither Keras nor
    TensorFlow.

    Raises:
      UserError: the file is missing, is not JSON, or a field is wrong.
    """
    path = embedded.find(folder) / MODEL_FILE
    settings = read_json(path, missing=f"is {folder} a model folder?{of_run(folder)}")
    check_name("heads", settings.get("head"), HEADS, str(path))
    if settings["head"] == "classification":
        settings.setdefault("problem", "single_label")
        check_choice("problem", settings.get("problem"), PROBLEMS, str(path))
        if settings.get("windows", "") != "":
            check_choice("windows", settings.get("windows"), POOLINGS, str(path))
        for name in settings.keys() & set(token_pooling_fields()):
            field(settings, name, bool, path)
    if settings["head"] in ("classification", "tagging"):
        count = _positive(path, settings, "num_labels")
        labels = settings.get("labels") and list_of(settings, "labels", (str, int), path)
        if labels and len(labels) != count:
            raise UserError(f"{path}: labels has {len(labels)} entries, num_labels is {count}")
        check_once(labels or (), f"{path}: labels")
    if settings["head"] not in HEADS:
        find("heads", settings["head"]).check(settings, path)
    if settings["head"] == "pretraining":
        for written in list_of(settings, "objectives", (str, dict), path):
            parse_spec(written, f"{path}: objectives")
    for name, kind in (("embedding", dict), ("fine_tuning", dict), ("license", str)):
        if name in settings:
            field(settings, name, kind, path)
    for name in ("max_seq_length", "num_labels"):
        if settings.get(name) is not None:
            _positive(path, settings, name)
    task = settings.get("task")
    if isinstance(task, dict):  # what fine-tuning writes
        for name in task.keys() & {"name", "options"}:
            field(task, name, str if name == "name" else dict, f"{path}: task")
    return settings


def of_run(folder: str | os.PathLike) -> str:
    """Return advice where a run's or an export's folder is given in place of a model's; else ""."""
    if left := _of_start(Path(folder)):
        return left
    inside = Path(folder) / "model"
    if any((Path(folder) / place / "saved_model.pb").is_file() for place in ("", "1")):
        return " (it holds an export; this asks for the model folder that it was made from)"
    return f" (this run's model is {inside})" if (inside / MODEL_FILE).is_file() else ""


def _of_start(folder: Path) -> str:
    """Return what a run of an extension left in place of a model folder; else ""."""
    known = names("starts")
    for run in (folder, folder.parent):
        if not (run / "results.json").is_file() or not (run / "config.json").is_file():
            continue
        name = read_json(run / "config.json").get("model")
        if name in known and not (run / "model" / MODEL_FILE).is_file():
            return f" ({run} is a run of {name}: {find('starts', name).leaves})"
    for marker in (name for name in known if "*" in name):
        if folder.is_dir() and any(folder.glob(marker)):
            return f" ({find('starts', marker).leaves})"
    return ""


def _positive(path: Path, settings: dict[str, Any], name: str) -> int:
    value: Any = settings.get(name)
    valid = isinstance(value, int) and not isinstance(value, bool) and value > 0
    check_field(path, settings, name, valid, "a positive whole number")
    return value


def check_field(
    path: Path, settings: dict[str, Any], name: str, valid: bool, expected: str
) -> None:
    if not valid:
        raise UserError(f"{path}: {name} must be {expected}, not {shorten(settings.get(name))}")
