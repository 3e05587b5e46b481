"""Checkpoints in the original TensorFlow 1 format: `bert_model.ckpt.*` beside `bert_config.json`.

The published models of google-research/bert (base, large, whole-word masking, multilingual,
Chinese) and the 24 miniatures are of this kind, and so is what its training scripts write.
"""

import math
import os
from pathlib import Path

from official_bert.checkpoints import integrity, model_folder, transfer
from official_bert.checkpoints.model_folder import LoadedModel
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.files import atomic_folder
from official_bert.objectives import of_bert

_LEFT_OUT = (
    (r"/adam_[mv]$|/(Adam|Adam_1)$|^beta[12]_power", "optimiser slots"),
    (r"^global_step$", "the step counter"),
)

# BLEURT's last layer: made by Keras beside the encoder, so its kernel is [H, outputs], where the
# original's `output_weights` is [outputs, H].
_KERAS_KERNEL = "dense/kernel"


def import_google(
    path: str | os.PathLike,
    head: str | None = None,
    gelu_form: str = "erf",
    vocab: str | os.PathLike | None = None,
    do_lower_case: bool | None = None,
    **encoder_options,
) -> LoadedModel:
    """Reads a TensorFlow 1 checkpoint. Reading needs TensorFlow; using the result does not.

    Args:
      path: the folder, or the checkpoint's prefix (`.../bert_model.ckpt`).
      head: "none" to take the encoder alone, "pretraining" for both pre-training heads even where
        the checkpoint lacks them; None for the head that the checkpoint has.
      gelu_form: "erf", the form that the 2018 models were trained with, or "tanh".
      vocab: the vocabulary file; by default `vocab.txt` beside the checkpoint, if there is one.
      do_lower_case: by default, whether no WordPiece of the vocabulary has a capital letter.
      **encoder_options: passed to `BertEncoder`.

    Raises:
      UserError: there is no readable checkpoint, or a tensor is missing or mis-shaped.
    """
    import tensorflow as tf

    prefix = find_prefix(path)
    config = BertConfig.from_json_file(prefix.parent / "bert_config.json")
    config = BertConfig.from_dict({**config.to_dict(), "gelu_form": gelu_form})
    try:
        reader = tf.train.load_checkpoint(str(prefix))
    except Exception as error:  # of damage TensorFlow makes many kinds
        raise UserError(f"{prefix}: not a readable TensorFlow checkpoint ({error})") from error
    shapes = reader.get_variable_to_shape_map()
    numbers = _check_stored(reader, shapes, prefix)
    tokenizer = find_tokenizer(vocab, prefix.parent, do_lower_case)
    if tokenizer is not None:
        model_folder.check_vocabulary(config, len(tokenizer.vocab), str(prefix.parent))
    stored = {name: name for name in sorted(shapes)}
    settings = _settings(shapes, stored, head, prefix)
    integrity.check_size(config, settings, numbers, prefix)
    encoder, model = model_folder.build(config, settings, **encoder_options)

    def read(name):
        try:
            array = reader.get_tensor(name)
        except (tf.errors.OpError, ValueError, RuntimeError, IndexError) as error:
            raise UserError(f"{prefix}: tensor {name} cannot be read ({error})") from error
        return array.T if name == _KERAS_KERNEL else array

    source = transfer.TensorSource(str(prefix), "google", stored, read)
    report = transfer.fill(model, settings["head"], source, _LEFT_OUT)
    settings["do_lower_case"] = None if tokenizer is None else tokenizer.do_lower_case
    head = settings["head"]
    return LoadedModel(config, encoder, model, head, tokenizer, settings, report)


def peek(path: Path):
    """(BertConfig, BertTokenizer or None) from the small files beside a checkpoint."""
    folder = find_prefix(path).parent
    config = BertConfig.from_json_file(folder / "bert_config.json")
    return config, find_tokenizer(None, folder, None)


def export_google(
    folder: str | os.PathLike, model, tokenizer, settings=None, overwrite: bool = False
) -> list[str]:
    """Writes `bert_model.ckpt`, `bert_config.json` and `vocab.txt` for the original's scripts.

    Returns:
      remarks on what the format cannot hold.

    Raises:
      UserError: the format has no place for this head, or the folder exists.
    """
    import tensorflow as tf

    head, own = model_folder.describe(model)
    config = getattr(model, "encoder", model).config
    more = any(own.get(name) for name in ("bilstm", "windows", "concat_pooling"))
    if head in ("multiple_choice", "tagging") or more:
        raise UserError(f"the original has no checkpoint of a {head} head; export the encoder")
    config.check_is_bert("Google")
    model_folder.check_word_piece(tokenizer, "Google")
    if config.attention_direction != "bidirectional":
        raise UserError("the original has no left-to-right models; it would read both directions")
    tensors = transfer.extract(model, head, "google")
    with atomic_folder(folder, overwrite=overwrite) as temporary:
        # The original's scripts read the fields they know and ignore the others.
        config.to_json_file(temporary / "bert_config.json")
        tf.raw_ops.SaveV2(
            prefix=str(temporary / "bert_model.ckpt"),
            tensor_names=list(tensors),
            shape_and_slices=[""] * len(tensors),
            tensors=[tf.convert_to_tensor(array) for array in tensors.values()],
        )
        if tokenizer is not None:
            from official_bert.tokenization import write_vocab

            write_vocab(temporary / "vocab.txt", tokenizer.vocab)
    return []


def is_google_checkpoint(path: str | os.PathLike) -> bool:
    """Whether a checkpoint of this kind is at `path`, a folder or a prefix."""
    try:
        return (find_prefix(path).parent / "bert_config.json").is_file()
    except UserError:
        return False


def find_prefix(path: str | os.PathLike) -> Path:
    """The prefix of the one checkpoint at `path`, itself a prefix or a folder.

    Raises:
      UserError: there is none, or there are several.
    """
    path = Path(path)
    if not path.is_dir():
        prefix = path.with_name(path.name.removesuffix(".index"))
        if prefix.with_name(prefix.name + ".index").is_file():
            return prefix
        raise UserError(f"{path}: no such checkpoint (expected {prefix.name}.index)")
    found = sorted(path.glob("*.index"))
    if (path / "bert_model.ckpt.index").is_file():
        return path / "bert_model.ckpt"
    if len(found) == 1:
        return found[0].with_suffix("")
    if not found:
        raise UserError(f"{path}: no TensorFlow checkpoint here (no file ends in .ckpt.index)")
    names = ", ".join(file.stem for file in found)
    raise UserError(f"{path}: several checkpoints ({names}); name the prefix of one of them")


def find_tokenizer(vocab, folder: Path, do_lower_case: bool | None, **rules):
    """The tokeniser of `vocab`, or of `folder/vocab.txt`, or None where neither is there.

    `rules`: strip_accents and tokenize_chinese_chars of `BertTokenizer`.
    """
    from official_bert.tokenization import BertTokenizer, load_vocab

    path = Path(vocab) if vocab else folder / "vocab.txt"
    if not vocab and not path.is_file():
        return None
    pieces = load_vocab(path)
    if do_lower_case is None:
        do_lower_case = is_lower_case(pieces)
    return BertTokenizer(pieces, do_lower_case, **rules)


def is_lower_case(vocab: list[str]) -> bool:
    """Whether no WordPiece but the special ones has a capital letter."""
    # Chinese BERT's vocabulary has <S> and <T> beside the usual special pieces in brackets.
    words = (piece for piece in vocab if piece[:1] + piece[-1:] not in ("[]", "<>"))
    return all(word == word.lower() for word in words)


def _check_stored(reader, shapes, prefix: Path) -> int:
    """How many numbers the checkpoint has; its index must not promise more than its data hold."""
    types = reader.get_variable_to_dtype_map()
    promised = sum(math.prod(shape) * (types[name].size or 1) for name, shape in shapes.items())
    held = sum(path.stat().st_size for path in prefix.parent.glob(f"{prefix.name}.data-*"))
    if promised > held:
        raise UserError(
            f"{prefix}: its index promises {promised:,} bytes of tensors, its data files have "
            f"{held:,}; a file is damaged or missing"
        )
    return sum(map(math.prod, shapes.values()))


def _settings(shapes, stored: dict[str, str], head: str | None, prefix: Path) -> dict:
    if _KERAS_KERNEL in shapes and "output_weights" not in shapes:
        stored["output_weights"] = stored.pop(_KERAS_KERNEL)
        if "dense/bias" in stored:
            stored["output_bias"] = stored.pop("dense/bias")
    if head is None:
        if any(name.startswith("cls/predictions/") for name in stored):
            head = "pretraining"
        elif "cls/squad/output_weights" in stored:
            head = "span"
        elif "output_weights" in stored:
            head = "classification"
        else:
            head = "none"
    if head not in ("none", "pretraining", "span", "classification"):
        raise UserError(f"head must be none or pretraining, not {head!r}")
    settings = {"head": head}
    if head == "pretraining":
        has_pairs = "cls/seq_relationship/output_weights" in stored
        settings["objectives"] = list(of_bert("bidirectional", has_pairs))
    if head == "classification":
        if len(shapes.get(stored.get("output_weights"), ())) != 2:
            raise UserError(f"{prefix}: no classification layer (output_weights) in it")
        outputs_axis = 1 if stored["output_weights"] == _KERAS_KERNEL else 0
        count = int(shapes[stored["output_weights"]][outputs_axis])
        settings["num_labels"] = count
        settings["problem"] = "regression" if count == 1 else "single_label"
    return settings
