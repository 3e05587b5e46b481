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
from official_bert.checkpoints import integrity, members, model_folder, model_settings
from official_bert.checkpoints.files import safetensors_files
from official_bert.checkpoints.member import Member
from official_bert.checkpoints.names import FINE_TUNED, from_ours, rows_of, to_ours
from official_bert.common.errors import UserError, check_choice, first_of
from official_bert.common.files import atomic_folder, write_json
from official_bert.common.json_files import field, read_json, shorten

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
_BASE = "base_checksum"
_PREFIX, _FACTORS = "base_model.model.", ("lora_A", "lora_B")
_TASKS = {"classification": "SEQ_CLS", "tagging": "TOKEN_CLS", "span": "QUESTION_ANS"}
# Further parts of peft's LoRA, which are not computed here.
_UNKNOWN = (
    "use_dora", "rank_pattern", "alpha_pattern", "fan_in_fan_out", "layer_replication",
    "alora_invocation_tokens", "use_qalora",
)  # fmt: skip
# Beginnings of A and B that leave the checkpoint's kernels as they are; others change them.
_BEGINNINGS = (True, False, None, "gaussian", "eva", "orthogonal")


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
    if start.encoder is None:
        raise UserError(f"{base} has no Transformer, whose products LoRA updates")
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
    tensors, found = {}, {}
    for row in rows_of(model.model, model.head):
        new, old = ours.pop(row.ours), before.get(row.ours)
        if row.part != model.head and (old is None or old.shape != new.shape):
            raise UserError(f"{base_name} has no {row.ours} of the model's shape")
        if row.part != model.head and (new == old).all():
            continue
        if row.part in ("pooler", model.head):
            tensors[row.huggingface] = from_ours("huggingface", row, new)
        elif row.ours.startswith("layer_") and row.ours.endswith("/kernel"):
            parts = np.linalg.svd(new.astype("f8") - old, full_matrices=False)
            found[row] = *parts, max(_noise(old), _noise(new))
        else:
            raise UserError(_trained_whole(row.ours, base_name))
    if ours:
        raise UserError(f"an adapter has no place for {first_of(ours, 3)}")
    if not found:
        raise UserError(f"the blocks are those of {base_name}: there is no update to write")
    rank = max(1, *(int((sizes > noise).sum()) for _, sizes, _, noise in found.values()))
    for row, (left, sizes, right, _) in found.items():
        if rank * (len(left) + right.shape[1]) >= len(left) * right.shape[1]:
            raise UserError(_trained_whole(row.ours, base_name))
        roots, stem = np.sqrt(sizes[:rank]), row.huggingface.removesuffix("weight")
        tensors[f"{stem}lora_A.weight"] = (left[:, :rank] * roots).T.astype("f4")
        tensors[f"{stem}lora_B.weight"] = (right[:rank].T * roots).astype("f4")
    member = _member(base)
    tensors = member.own_tensors(tensors, model.head)
    places = [name.removeprefix(f"{member.prefix}.").split(".") for name in tensors]
    config = {
        "peft_type": "LORA", "task_type": _TASKS.get(model.head), "r": rank, "lora_alpha": rank,
        "target_modules": sorted({".".join(one[-4:-2]) for one in places if one[-2] in _FACTORS}),
        "modules_to_save": sorted({one[0] for one in places if one[-2] not in _FACTORS}),
        "lora_dropout": 0.0, "bias": "none", "inference_mode": True,
        "base_model_name_or_path": base_name,
    }  # fmt: skip
    settings = {**model.settings, _BASE: _checksum(before)}
    settings.pop(integrity.CHECKSUMS, None)
    with atomic_folder(folder, overwrite) as made:
        named = {_PREFIX + name: tensor for name, tensor in tensors.items()}
        safetensors_files.write(made / WEIGHTS_FILE, named, format="pt")
        write_json(made / CONFIG_FILE, config)
        name = model_settings.MODEL_FILE
        write_json(made / name, integrity.with_checksums(made, name, settings))
    size = sum(tensor.nbytes for tensor in tensors.values())
    own = _with_dense(base.config, member, model.head) is not base.config
    note = f"; peft does not read it: its {member.name} has a dense layer before the classifier"
    return f"{folder}: rank {rank}, {size / 1e6:.1f} MB{note if own else ''}"


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
    rank, scale = _rank_and_scale(config, path)
    member = _member(base)
    tensors = _tensors(folder / WEIGHTS_FILE, member)
    before, bert = named_arrays(base.encoder), base.config
    if (folder / model_settings.MODEL_FILE).exists():
        settings = model_settings.read_settings(folder)
        integrity.check_folder(folder, model_settings.MODEL_FILE, settings)
        settings.pop(integrity.CHECKSUMS, None)
        if settings.pop(_BASE, None) != _checksum(before):
            raise UserError(f"{folder} was made from another checkpoint than this base")
    else:
        settings = _settings(config, tensors, path)
        bert = _with_dense(base.config, member, settings["head"])
        drawn = base.report.initial if base.report else ()
        before = {name: array for name, array in before.items() if name not in drawn}
    _, model = model_folder.build(bert, settings, seed=0)
    arrays = {**named_arrays(model), **before}
    for row in rows_of(model, settings["head"]):
        stem = row.huggingface.removesuffix("weight")
        new = tensors.pop(row.huggingface, None)
        a, b = (tensors.pop(f"{stem}{one}.weight", None) for one in _FACTORS)
        shape = arrays[row.ours].shape
        try:
            if new is not None:
                arrays[row.ours] = to_ours("huggingface", row, new, shape)
            elif row.part == settings["head"]:
                raise ValueError("is missing")
            elif row.ours not in before:
                raise ValueError(
                    "is missing, and the checkpoint has none; name its layer in modules_to_save "
                    "when the adapter is trained"
                )
            if a is not None or b is not None:
                wanted, has = [(rank, shape[0]), (shape[-1], rank)], list(map(np.shape, (a, b)))
                if len(shape) != 2 or has != wanted:
                    raise ValueError(f"has updates A and B of shapes {has}, expected {wanted}")
                arrays[row.ours] = arrays[row.ours] + scale * (b @ a).T
        except ValueError as error:
            [name] = member.own_tensors({row.huggingface: arrays[row.ours]}, settings["head"])
            raise UserError(f"{folder / WEIGHTS_FILE}: {name} {error}") from error
    if tensors:
        raise UserError(f"{folder / WEIGHTS_FILE}: {first_of(tensors, 3)}: not known in this model")
    for name, variable in named_variables(model).items():
        variable.assign(arrays[name])
    return model, settings


def _member(base) -> Member:
    """Return the member of the family whose names `transformers`, and so peft, has for a base."""
    algorithm = base.tokenizer.algorithm if base.tokenizer else ""
    found = members.member_of(base.config, algorithm)
    if type(found).own_tensors is not Member.own_tensors:
        raise UserError(f"the products of {found.name} are not BERT's: it has no adapter here")
    return found


def _with_dense(config, member: Member, head: str):
    """Return a shape with the dense layer that a member's classifier has in `transformers`, where
    its encoder alone has none."""
    missing = config.value("pooler_activation", "tanh") == "none" and member.dense != "tanh"
    if head == "classification" and missing:
        return config.replaced(pooler_activation=member.dense)
    return config


def _rank_and_scale(config, path) -> tuple[int, float]:
    """Return the rank and the factor of the updates; raise UserError where peft does more."""
    odd = [name for name in _UNKNOWN if config.get(name)]
    odd += [] if config.get("peft_type") == "LORA" else ["peft_type"]
    odd += [] if config.get("bias") in ("none", None) else ["bias"]
    begin = "init_lora_weights"
    odd += [] if config.get(begin) in _BEGINNINGS else [begin]
    if odd:
        value = shorten(config.get(odd[0]))
        raise UserError(f"{path}: {odd[0]}={value}: no more than LoRA's own formula is read")
    rank, alpha = field(config, "r", int, path), field(config, "lora_alpha", (int, float), path)
    if not (1 <= rank < 1 << 20 and abs(alpha) < 1e9):
        raise UserError(f"{path}: r={shorten(rank)}, lora_alpha={shorten(alpha)}: out of range")
    return rank, alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)


def _tensors(path, member) -> dict[str, np.ndarray]:
    """Return the tensors of an adapter, float32, by BERT's names."""
    with contextlib.ExitStack() as stack:
        shapes, read_one = safetensors_files.open_all([path], stack)
        stored = {name.removeprefix(_PREFIX): read_one(name) for name in shapes}
    for name, tensor in stored.items():
        integrity.check_type(tensor.dtype.name, name, path)
        integrity.check_finite(tensor, name, path)
    names = member.table_names(stored)
    return {berts: stored[name].astype("float32") for berts, name in names.items()}


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
    check_choice("task_type", config.get("task_type"), heads, str(path))
    head = heads[config["task_type"]]
    settings = {"head": head}
    if head != "span":
        name = f"{FINE_TUNED[head].huggingface}.weight"
        if name not in tensors:
            raise UserError(f"{path.with_name(WEIGHTS_FILE)}: {name} is missing")
        count = math.prod(tensors[name].shape[:1]) or 1
        settings["num_labels"] = count
        if head == "classification" and count == 1:  # as `transformers` takes it
            return {**settings, "problem": "regression"}
        settings["labels"] = [str(i) for i in range(count)]
    return settings | ({"problem": "single_label"} if head == "classification" else {})


def main(_) -> None:
    print(run(**command_flags.values(run)))


def _define_flags() -> None:
    command_flags.define(run)


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
