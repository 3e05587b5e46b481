"""Transfer of tensors between a foreign checkpoint and a model, with a report on each.

No tensor is dropped or made up in silence: an import ends with an `ImportReport`, and a tensor that
is missing, has another shape, or belongs to an encoder of another depth is an error that names it.
"""

import dataclasses
import os
import re
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from official_bert.backend.variables import named_variables
from official_bert.checkpoints import model_folder
from official_bert.checkpoints.integrity import check_finite, check_size, check_type
from official_bert.checkpoints.model_folder import LoadedModel
from official_bert.checkpoints.names import FINE_TUNED, from_ours, rows_of, to_ours
from official_bert.common.errors import UserError, first_of
from official_bert.config import BertConfig

# Begins the names of the encoder's tensors.
_OF_ENCODER = {
    "google": r"^bert/(embeddings|encoder)/",
    "huggingface": r"^bert\.(embeddings|encoder)\.",
    "keras_hub": r"^transformer_layer_\d",
}


@dataclasses.dataclass
class TensorSource:
    """A foreign checkpoint.

    Attributes:
      where: path of the checkpoint, for messages.
      format_name: "google", "huggingface" or "keras_hub".
      stored_names: name in the table of `names` -> name in the file (equal but for prefixes).
      read: returns the array with a stored name.
    """

    where: str
    format_name: str
    stored_names: Mapping[str, str]
    read: Callable[[str], np.ndarray]


@dataclasses.dataclass
class ImportReport:
    """The tensors that an import loaded, left out, and kept at their initial values.

    Attributes:
      source: where the tensors came from.
      loaded: (our variable, their tensor) pairs.
      left_out: (their tensor, reason) pairs.
      initial: our variables that the source does not have: they keep their random initial values.
      notes: further remarks, such as an assumed GELU form.
    """

    source: str
    loaded: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    left_out: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    initial: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.source}: {len(self.loaded)} tensors loaded"]
        reasons: dict[str, list[str]] = {}
        for name, reason in self.left_out:
            reasons.setdefault(reason, []).append(name)
        for reason, names in reasons.items():
            lines.append(f"left out, {reason}: {first_of(names, 6)}")
        if self.initial:
            lines.append(f"not in the source, initial values kept: {first_of(self.initial, 6)}")
        return "\n".join(lines + [f"note: {note}" for note in self.notes])


def fill(
    model, head: str, source: TensorSource, reasons: Iterable[tuple[str, str]] = ()
) -> ImportReport:
    """Assign every variable of `model` that the source has.

    The encoder must be complete. Another part (pooler, masked-LM head, ...) may be absent as a
    whole, and then keeps its initial values; a part that is incomplete is an error.

    Args:
      head: the model's, as in `model_settings.HEADS`.
      reasons: (regular expression of table names, why such tensors are left out) pairs.

    Raises:
      UserError: a tensor is missing, mis-shaped, or belongs to more layers than the model has.
    """
    variables = named_variables(model)
    table = rows_of(model, head)
    report = ImportReport(source.where)
    present_parts = {row.part for row in table if _stored(source, row)}
    for row in table:
        stored = _stored(source, row)
        if stored is None:
            if row.part == "encoder" or row.part in present_parts:
                name = getattr(row, source.format_name)
                raise UserError(
                    f"{source.where}: tensor {name} is missing (for {row.ours}); the checkpoint "
                    f"has {len(source.stored_names)} tensors; does the configuration beside it "
                    "describe it?"
                )
            continue
        variable = variables[row.ours]
        array = np.asarray(source.read(stored))
        check_type(array.dtype.name, f"tensor {stored}", source.where)
        try:
            array = to_ours(source.format_name, row, array, tuple(variable.shape))
        except ValueError as error:
            raise UserError(f"{source.where}: tensor {stored} {error} (for {row.ours})") from None
        check_finite(array, f"tensor {stored}", source.where)
        variable.assign(array)
        report.loaded.append((row.ours, stored))
    filled = {ours for ours, _ in report.loaded}
    report.initial = [name for name in variables if name not in filled]
    used = {stored for _, stored in report.loaded}
    for name, stored in source.stored_names.items():
        if stored not in used:
            report.left_out.append((stored, _reason(name, source, reasons)))
    return report


def assembled(
    config: BertConfig,
    settings: dict,
    source: TensorSource,
    tokenizer,
    notes: list[str],
    reasons: Iterable[tuple[str, str]] = (),
    numbers: int | None = None,
    **encoder_options,
) -> LoadedModel:
    """Return the model of a foreign checkpoint.

    `numbers` is how many numbers its weights have; None: the size was checked before. The other
    arguments are those of `model_folder.build` and `fill`.

    Raises:
      UserError: as `fill`; the model is larger than its weights, or smaller than its vocabulary.
    """
    if tokenizer is not None:
        model_folder.check_vocabulary(config, len(tokenizer.vocab), source.where)
        config = config.padded_by(tokenizer)
    if numbers is not None:
        check_size(config, settings, numbers, source.where)
    encoder, model = model_folder.build(config, settings, **encoder_options)
    report = fill(model, settings["head"], source, reasons)
    report.notes += notes
    settings["do_lower_case"] = None if tokenizer is None else tokenizer.do_lower_case
    return LoadedModel(config, encoder, model, settings["head"], tokenizer, settings, report)


def rooted(
    names: Iterable[str], anchor: str, root: str, where: str | os.PathLike
) -> dict[str, str]:
    """Return {name as the format has it: stored name}, for an encoder saved inside something else.

    DataParallel writes "module." before every name, a user's class the name of its attribute, a
    scope of TensorFlow its own name. The token table shows the prefix of the encoder's names.
    `root` takes its place; where an encoder stands alone nothing does.

    Args:
      names: the stored names.
      anchor: end of the token table's name, from the encoder's first part on.
      root: the format's prefix before the anchor.
      where: the checkpoint, for the message.

    Raises:
      UserError: there are several encoders.
    """
    names = list(names)
    separator = root[-1]
    found = {name.removesuffix(anchor) for name in names if name.endswith(anchor)}
    found = {before for before in found if before[-1:] in ("", separator)}
    if not found or root in found or "" in found:
        return {name: name for name in names}
    before = min(found, key=len)
    if not all(other.endswith(before) for other in found):  # slots of an optimiser do
        raise UserError(
            f"{where}: several encoders, {', '.join(sorted(found))}; save the one to read alone"
        )
    if before.endswith(root):
        outer = before.removesuffix(root)
        return {name.removeprefix(outer): name for name in names}
    return {
        f"{root}{name.removeprefix(before)}" if name.startswith(before) else name: name
        for name in names
    }


def extract(model, head: str, format_name: str) -> dict[str, np.ndarray]:
    """Return the model's tensors, by the names and in the layouts of another format.

    Tensors that the format has no place for are left out.

    Raises:
      UserError: no other format has the encoder's blocks, or the head.
    """
    import keras

    encoder = getattr(model, "encoder", model)
    if head not in ("none", "pretraining", *FINE_TUNED) or not hasattr(encoder, "blocks"):
        raise UserError(f"no other format has a {type(model).__name__}; a model folder has")
    if unknown := {block.name for block in encoder.blocks} & {*nameless(model, head, format_name)}:
        raise UserError(
            f"no other format has {encoder.config.unserved or 'such an encoder'} "
            f"({min(unknown)}); a model folder has"
        )
    variables = named_variables(model)
    tensors = {}
    for row in rows_of(model, head):
        name = getattr(row, format_name)
        if name is not None:
            array = keras.ops.convert_to_numpy(variables[row.ours])
            tensors[name] = from_ours(format_name, row, array)
    return tensors


def nameless(model, head: str, format_name: str) -> list[str]:
    """Return the parts of a model that another format has no names for, such as "span_boundary"."""
    named = {row.ours for row in rows_of(model, head) if getattr(row, format_name)}
    return sorted({name.partition("/")[0] for name in named_variables(model).keys() - named})


def _stored(source: TensorSource, row) -> str | None:
    return source.stored_names.get(getattr(row, source.format_name))


def _reason(name: str, source: TensorSource, reasons) -> str:
    for pattern, reason in reasons:
        if re.search(pattern, name):
            return reason
    parts = name.split("/")
    if any("/".join(parts[:i]) in source.stored_names for i in range(1, len(parts))):
        return "optimiser slots"  # only slots have names below a variable's
    if re.search(_OF_ENCODER[source.format_name], name):
        raise UserError(
            f"{source.where}: tensor {name} is of the encoder, but no variable of this model: is "
            "num_hidden_layers in the configuration beside it right? If it is, the encoder "
            "computes what BERT does not"
        )
    return "no part of this model"
