"""Checkpoints in the original TensorFlow 1 format: `bert_model.ckpt.*` beside `bert_config.json`.

The published models of google-research/bert (base, large, whole-word masking, multilingual,
Chinese) and the 24 miniatures are of this kind, and so is what its training scripts write.
"""

import dataclasses
import os
from pathlib import Path

from official_bert.checkpoints import model_folder, transfer
from official_bert.checkpoints.files.tensor_bundle import TensorBundle
from official_bert.checkpoints.model_folder import LoadedModel
from official_bert.checkpoints.names import FINE_TUNED
from official_bert.common.errors import UserError, check_choice
from official_bert.common.files import atomic_folder
from official_bert.common.json_files import field, read_json, shorten
from official_bert.config import BertConfig
from official_bert.extension import names
from official_bert.window_pooling import token_pooling_fields

_LEFT_OUT = ((r"(^|/)beta[12]_power", "optimiser slots"), (r"^global_step$", "the step counter"))

# Fields in which other code says what its encoder computes -> their values for BERT's encoder.
_COMPUTES = {
    "add_cross_attention": False,
    "is_decoder": False,
    "ln_type": "postln",
    "position_embedding_type": "absolute",
    "use_relative_position": False,
}
CONFIG = "bert_config.json"
_OF_TENSORFLOW_2 = ".ATTRIBUTES/VARIABLE_VALUE"
_NEEDED = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
_TABLE = "embeddings/word_embeddings"

# BLEURT's last layer: made by Keras beside the encoder, so its kernel is [H, outputs], where the
# original's `output_weights` is [outputs, H].
_KERAS_KERNEL = "dense/kernel"


def import_google(
    path, /, head=None, gelu_form=None, vocab=None, do_lower_case=None, **encoder_options
) -> LoadedModel:
    """Import a TensorFlow 1 checkpoint without TensorFlow, as a `resolve.Importer`.

    The path is the folder, or the checkpoint's prefix (`.../bert_model.ckpt`). GELU is what the
    configuration says, else "erf", which the 2018 models were trained with. The vocabulary is
    `vocab.txt` beside it, if there is one, and lower-cased unless many pieces have capital letters;
    a warning says which it is.
    """
    prefix = find_prefix(path)
    config, notes = read_config(config_path(prefix.parent), gelu_form)
    bundle = TensorBundle(prefix)
    if any(name.endswith(_OF_TENSORFLOW_2) for name in bundle.shapes):
        raise UserError(
            f"{prefix}: its tensors are called as in TensorFlow 2 (.../{_OF_TENSORFLOW_2}), by the "
            "objects of the code that wrote them (the Model Garden's?); the published models are "
            "there in TensorFlow 1's format and on the Hugging Face hub, and transformers 4 has "
            "a script for your own (convert_bert_original_tf2_checkpoint_to_pytorch.py)"
        )
    tokenizer = find_tokenizer(vocab, prefix.parent, do_lower_case)
    own = transfer.rooted(sorted(bundle.shapes), _TABLE, "bert/", prefix)
    shapes = {name: bundle.shapes[there] for name, there in own.items()}
    stored = {name: name for name in own}
    settings = _settings(shapes, stored, head, config)

    def read(name):
        array = bundle.read(own[name])
        return array.T if name == _KERAS_KERNEL else array

    source = transfer.TensorSource(str(prefix), "google", stored, read)
    return transfer.assembled(
        config, settings, source, tokenizer, notes, _LEFT_OUT, bundle.numbers, **encoder_options
    )


def peek(path: Path):
    """Return (BertConfig, BertTokenizer or None) from the small files beside a checkpoint."""
    folder = find_prefix(path).parent
    config, _ = read_config(config_path(folder))
    tokenizer = find_tokenizer(None, folder, None)
    return config.padded_by(tokenizer), tokenizer


def export_google(folder, model, tokenizer, settings=None, overwrite=False) -> list[str]:
    """Write `bert_model.ckpt`, `bert_config.json` and `vocab.txt`, as a `resolve.Exporter`.

    The original's scripts read them.
    """
    import tensorflow as tf

    from official_bert.tokenization.library.own_json import as_own

    model = model_folder.kept(model)
    head, own = model_folder.describe(model)
    config = getattr(model, "encoder", model).config
    more = any(own.get(name) for name in ("bilstm", "windows", *token_pooling_fields()))
    if head in FINE_TUNED and FINE_TUNED[head].google is None or more:
        raise UserError(f"the original has no checkpoint of a {head} head; export the encoder")
    config.check_is_bert("Google")
    tokenizer = as_own(tokenizer, "word_piece", "Google")
    if config.attention_direction != "bidirectional":
        raise UserError("the original has no left-to-right models; it would read both directions")
    tensors = transfer.extract(model, head, "google")
    with atomic_folder(folder, overwrite, model_folder.size_of(model)) as temporary:
        # The original's scripts read the fields they know and ignore the others.
        config.to_json_file(temporary / CONFIG)
        tf.raw_ops.SaveV2(
            prefix=str(temporary / "bert_model.ckpt"),
            tensor_names=list(tensors),
            shape_and_slices=[""] * len(tensors),
            tensors=[tf.convert_to_tensor(array) for array in tensors.values()],
        )
        if tokenizer is not None:
            from official_bert.tokenization import write_vocab

            write_vocab(temporary / "vocab.txt", tokenizer.vocab)
    left_out = transfer.nameless(model, head, "google")
    left_out += ["problem multi_label"] * (own.get("problem") == "multi_label")
    if tokenizer is not None:
        rules = tokenizer.rules
        left_out += ["strip_accents"] * (rules.accents_go != rules.do_lower_case)
        left_out += ["tokenize_chinese_chars"] * (not rules.tokenize_chinese_chars)
    names = ", ".join(left_out)
    return [f"left out, the original has no place for it: {names}"] if left_out else []


def is_google_checkpoint(path: str | os.PathLike) -> bool:
    """Return whether a checkpoint of this kind is at `path`, a folder or a prefix."""
    try:
        return config_path(find_prefix(path).parent).is_file()
    except UserError:
        return False


def config_path(folder: Path) -> Path:
    """Return the configuration beside a checkpoint; some were given Hugging Face's name for it."""
    other = folder / "config.json"
    return other if other.is_file() and not (folder / CONFIG).is_file() else folder / CONFIG


def read_config(path: Path, gelu_form: str | None = None) -> tuple[BertConfig, list[str]]:
    """Read the encoder's configuration, and a remark on fields that belong to scripts.

    Raises:
      UserError: a field is missing or wrong, or the encoder computes what BERT's does not.
    """
    fields = read_json(path)
    known = {field.name for field in dataclasses.fields(BertConfig)} | {*names("configs")}
    for name in _NEEDED:
        field(fields, name, int, path)
    for name, value in _COMPUTES.items():
        if fields.get(name, value) not in (value, None):
            raise UserError(f"{path}: {name} is {shorten(fields[name])}; BERT's is {value!r}")
    ours = {name: value for name, value in fields.items() if name in known}
    ours = BertConfig.config_class(ours).of_google(ours)
    if gelu_form:
        ours["gelu_form"] = gelu_form
    others = ", ".join(sorted(fields.keys() - known))
    notes = [f"fields of {path.name} that say nothing of the encoder: {others}"] if others else []
    return BertConfig.from_dict(ours, source=str(path)), notes


def find_prefix(path: str | os.PathLike) -> Path:
    """Return the prefix of the one checkpoint at `path`, itself a prefix or a folder.

    Raises:
      UserError: there is none, or there are several.
    """
    path = Path(path)
    if not path.is_dir():
        prefix = Path(str(path).removesuffix(".index"))
        if os.path.isfile(f"{prefix}.index"):
            return prefix
        raise UserError(f"{path}: no such checkpoint (expected {prefix.name}.index)")
    found = sorted(path.glob("*.index"))
    if (path / "bert_model.ckpt.index").is_file():
        return path / "bert_model.ckpt"
    if len(found) == 1:
        return found[0].with_suffix("")
    if not found:
        raise UserError(f"{path}: no TensorFlow checkpoint here (no file ends in .index)")
    names = ", ".join(file.stem for file in found)
    raise UserError(f"{path}: several checkpoints ({names}); name the prefix of one of them")


def find_tokenizer(vocab, folder: Path, do_lower_case: bool | None):
    """Return the tokeniser of `vocab`, or of `folder/vocab.txt`, or None where neither is there."""
    from official_bert.tokenization import BertTokenizer, load_vocab
    from official_bert.tokenization.vocabulary import lower_case_of

    path = Path(vocab) if vocab else folder / "vocab.txt"
    if not vocab and not path.is_file():
        return None
    pieces = load_vocab(path)
    if do_lower_case is None:
        do_lower_case = lower_case_of(pieces, str(path))
    return BertTokenizer(pieces, do_lower_case)


def _settings(shapes, stored: dict[str, str], head: str | None, config: BertConfig) -> dict:
    if _KERAS_KERNEL in shapes and "output_weights" not in shapes:
        stored["output_weights"] = stored.pop(_KERAS_KERNEL)
        if "dense/bias" in stored:
            stored["output_bias"] = stored.pop("dense/bias")
    check_choice("head", head or "none", ("none", "pretraining"))
    has_words = any(name.startswith("cls/predictions/") for name in stored)
    has_pairs = "cls/seq_relationship/output_weights" in stored
    if head == "pretraining" or (head is None and (has_words or has_pairs)):
        words = ["masked_lm"] * (head is not None or has_words)
        return {"head": "pretraining", "objectives": words + ["next_sentence"] * has_pairs}
    if head == "none":
        return {"head": head}
    if shapes.get("cls/squad/output_weights") == (2, config.hidden_size):
        return {"head": "span"}
    weights = list(shapes.get(stored.get("output_weights"), ()))
    weights = weights[::-1] if stored.get("output_weights") == _KERAS_KERNEL else weights
    # A layer that reads something else than the pooled vector is not a head of ours.
    if weights != [*shapes.get(stored.get("output_bias"), ()), config.hidden_size]:
        return {"head": "none"}
    problem = "regression" if weights[0] == 1 else "single_label"
    return {"head": "classification", "num_labels": int(weights[0]), "problem": problem}
