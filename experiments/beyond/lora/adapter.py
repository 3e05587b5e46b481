"""A fine-tuned model as a small folder beside the checkpoint that it began from: peft's format.

    official-bert adapter --base=CHECKPOINT --model=runs/lora/model --output=ADAPTER
    official-bert adapter --base=CHECKPOINT --adapter=ADAPTER --output=MODEL

The first command writes the low-rank updates, the pooler and the head; the second adds them to the
checkpoint again and writes a plain model folder. `peft.PeftModel.from_pretrained` reads
`adapter_config.json` and `adapter_model.safetensors`. `model.json` has what these do not say: head,
labels, lengths and a checksum of the checkpoint.
"""

import contextlib
import math
from pathlib import Path

import google_crc32c
import numpy as np

from data_prep.jobs import command_flags, commands
from data_prep.jobs.outputs import check_outputs
from official_bert.backend import tensorflow_start
from official_bert.backend.variables import named_arrays, named_variables
from official_bert.checkpoints import integrity, model_folder, safetensors_files
from official_bert.checkpoints.names import FINE_TUNED, from_ours, rows_of, to_ours
from official_bert.common.errors import UserError, first_of
from official_bert.common.files import atomic_folder, write_json
from official_bert.common.json_files import field, read_json

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
_BASE = "base_checksum"
_PREFIX = "base_model.model."
# Ends of the names of a block's products; two of them end with "output.dense".
_PRODUCTS = ["query", "key", "value", "intermediate.dense", "output.dense"]
_TASKS = {"classification": "SEQ_CLS", "tagging": "TOKEN_CLS", "span": "QUESTION_ANS"}
# Further parts of peft's LoRA, which are not computed here.
_UNKNOWN = ("use_dora", "rank_pattern", "alpha_pattern", "fan_in_fan_out", "layer_replication")


def run(base: str, output: str, model: str = "", adapter: str = "", overwrite: bool = False) -> str:
    """Write the adapter of a model, or the model of an adapter.

    Args:
      base: the checkpoint that the fine-tuning began from, of any known kind, or a name.
      output: the folder to write.
      model: a fine-tuned model folder, whose adapter is written.
      adapter: a folder, whose model is written.
      overwrite: rename what stands at the output to NAME.~1~ first.

    Returns: a line that says what was written.
    Raises:
      UserError: not one of model and adapter is given, or it does not fit the base.
    """
    if bool(model) == bool(adapter):
        raise UserError("--model=FOLDER writes its adapter, --adapter=FOLDER its model: give one")
    check_outputs([base, model or adapter], outputs=[output], overwrite=overwrite)
    tensorflow_start.import_tensorflow()
    import official_bert

    start = official_bert.load(base)
    if model:
        return write(output, model_folder.load(model), start, base, overwrite)
    made, settings = read(adapter, start)
    model_folder.save(output, made, start.tokenizer, settings, overwrite=overwrite)
    return f"{output}: {base} with the updates of {adapter}"


def write(folder, model, base, base_name: str, overwrite: bool = False) -> str:
    """Write what a fine-tuned model has beyond its base.

    Updates that were merged are found again in the singular vectors of the difference, to the
    rounding of the sums. The rank is the largest of all products.

    Args:
      model, base: `LoadedModel`s.
      base_name: the base's, for peft.

    Returns: a line that says what was written.
    Raises:
      UserError: the model has no fine-tuned head, a weight outside of products, pooler and head
        differs, or a difference has no low rank.
    """
    if model.head not in FINE_TUNED:
        raise UserError(f"a model with head {model.head} has no adapter: fine-tune it first")
    ours, before = named_arrays(model.model), named_arrays(base.encoder)
    tensors, whole, found = {}, set(), {}
    for row in rows_of(model.model, model.head):
        new, old = ours.pop(row.ours), before.get(row.ours)
        if row.part != model.head and (old is None or old.shape != new.shape):
            raise UserError(f"{base_name} has no {row.ours} of the model's shape")
        if row.part != model.head and (new == old).all():
            continue
        if row.part in ("pooler", model.head):
            tensors[_PREFIX + row.huggingface] = from_ours("huggingface", row, new)
            whole.add(row.huggingface.removeprefix("bert.").partition(".")[0])
        elif row.ours.startswith("layer_") and row.ours.endswith("/kernel"):
            found[row] = *np.linalg.svd(new.astype("f8") - old, full_matrices=False), _noise(old)
        else:
            raise UserError(_trained_whole(row.ours, base_name))
    if ours:
        raise UserError(f"an adapter has no place for {first_of(ours, 3)}")
    rank = max([1, *(int((sizes > noise).sum()) for _, sizes, _, noise in found.values())])
    for row, (left, sizes, right, _) in found.items():
        if rank * (len(left) + right.shape[1]) >= len(left) * right.shape[1]:
            raise UserError(_trained_whole(row.ours, base_name))
        roots, stem = np.sqrt(sizes[:rank]), _PREFIX + row.huggingface.removesuffix("weight")
        tensors[f"{stem}lora_A.weight"] = (left[:, :rank] * roots).T.astype("f4")
        tensors[f"{stem}lora_B.weight"] = (right[:rank].T * roots).astype("f4")
    config = {
        "peft_type": "LORA", "task_type": _TASKS.get(model.head), "r": rank, "lora_alpha": rank,
        "target_modules": _PRODUCTS, "modules_to_save": sorted(whole), "lora_dropout": 0.0,
        "bias": "none", "inference_mode": True, "base_model_name_or_path": base_name,
    }  # fmt: skip
    settings = {**model.settings, _BASE: _checksum(before)}
    settings.pop(integrity.CHECKSUMS, None)
    with atomic_folder(folder, overwrite) as made:
        safetensors_files.write(made / WEIGHTS_FILE, tensors, format="pt")
        write_json(made / CONFIG_FILE, config)
        name = model_folder.MODEL_FILE
        write_json(made / name, integrity.with_checksums(made, name, settings))
    size = sum(tensor.nbytes for tensor in tensors.values())
    return f"{folder}: rank {rank}, {size / 1e6:.1f} MB"


def read(folder, base):
    """Return (the plain model of an adapter, the settings of its folder).

    An adapter that peft wrote has no `model.json`: its head follows from the kind of task and the
    classifier's shape, and its labels are numbers.

    Args:
      base: the `LoadedModel` that the adapter was made from; it stays as it is.

    Raises:
      UserError: a file is damaged, the adapter was made from another checkpoint or does more than
        LoRA's formula, or a tensor is missing, unknown or of another shape.
    """
    folder = Path(folder)
    path = folder / CONFIG_FILE
    config = read_json(path, missing="is it the folder of an adapter?")
    more = [name for name in _UNKNOWN if config.get(name)]
    if config.get("peft_type") != "LORA" or more or config.get("bias", "none") != "none":
        raise UserError(f"{path}: {', '.join(more) or 'peft_type or bias'}: only LoRA is read")
    rank, alpha = field(config, "r", int, path), field(config, "lora_alpha", (int, float), path)
    scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
    with contextlib.ExitStack() as stack:
        shapes, tensor = safetensors_files.open_all([folder / WEIGHTS_FILE], stack)
        tensors = {name.removeprefix(_PREFIX): tensor(name) for name in shapes}
    before = named_arrays(base.encoder)
    if (folder / model_folder.MODEL_FILE).exists():
        settings = model_folder.read_settings(folder)
        integrity.check_folder(folder, model_folder.MODEL_FILE, settings, required=True)
        del settings[integrity.CHECKSUMS]
        if settings.pop(_BASE, None) != _checksum(before):
            raise UserError(f"{folder} was made from another checkpoint than this base")
    else:
        settings = _settings(config, tensors, path)
    _, model = model_folder.build(base.config, settings, seed=0)
    arrays = {**named_arrays(model), **before}
    for row in rows_of(model, settings["head"]):
        stem = row.huggingface.removesuffix("weight")
        new = tensors.pop(row.huggingface, None)
        a, b = (tensors.pop(f"{stem}lora_{one}.weight", None) for one in "AB")
        shape = arrays[row.ours].shape
        try:
            if new is not None:
                arrays[row.ours] = to_ours("huggingface", row, new, shape)
            elif row.part == settings["head"]:
                raise ValueError("is missing")
            if a is not None or b is not None:
                if a is None or b is None or (a.shape[1], b.shape[0]) != shape:
                    raise ValueError("has updates of another shape")
                arrays[row.ours] = arrays[row.ours] + scale * (b @ a).T.astype("f4")
        except ValueError as error:
            raise UserError(f"{folder / WEIGHTS_FILE}: {row.huggingface} {error}") from error
    if tensors:
        raise UserError(f"{folder / WEIGHTS_FILE}: {first_of(tensors, 3)}: not known in this model")
    for name, variable in named_variables(model).items():
        variable.assign(arrays[name])
    return model, settings


def _checksum(arrays) -> str:
    total = 0
    for name in sorted(arrays):
        total = google_crc32c.extend(total, np.ascontiguousarray(arrays[name]).tobytes())
    return f"{total:08x}"


def _noise(kernel) -> float:
    """Return the largest singular value that rounding a float32 kernel's sums can make, about."""
    return float(np.spacing(np.abs(kernel).max()) * sum(map(math.sqrt, kernel.shape)))


def _trained_whole(name, base_name) -> str:
    return (
        f"{name} differs from that of {base_name} by no low-rank update: the model was trained "
        "whole, or from another checkpoint"
    )


def _settings(config, tensors, path) -> dict:
    """Return the settings of a model folder for an adapter that peft wrote."""
    heads = {task: head for head, task in _TASKS.items()}
    if (head := heads.get(config.get("task_type"))) is None:
        raise UserError(f"{path}: task_type is one of {', '.join(heads)}")
    settings = {"head": head}
    if head != "span":
        name = f"{FINE_TUNED[head].huggingface}.weight"
        if name not in tensors:
            raise UserError(f"{path.with_name(WEIGHTS_FILE)}: {name} is missing")
        count = len(tensors[name])
        settings |= {"num_labels": count, "labels": [str(i) for i in range(count)]}
    return settings | ({"problem": "single_label"} if head == "classification" else {})


def main(_) -> None:
    print(run(**command_flags.values(run)))


def _define_flags() -> None:
    command_flags.define(run)


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
