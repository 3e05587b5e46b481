"""KerasHub's `BertBackbone` in and out, and its presets by name or by folder.

KerasHub computes GELU in the tanh form, so that is the default of an import. Its backbone has no
place for a head of ours, for left-to-right attention or for other epsilons.
"""

import math
import os
from pathlib import Path

from official_bert.checkpoints import integrity, model_folder, transfer
from official_bert.checkpoints.model_folder import LoadedModel
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.files import atomic_folder
from official_bert.json_files import field, is_json_object, read_json, shorten
from official_bert.tokenization import SPECIAL_TOKENS, BertTokenizer

_TOKENIZER = "tokenizer.json"


def import_keras_hub(
    preset: str | os.PathLike,
    head: str | None = None,
    gelu_form: str = "tanh",
    vocab: str | os.PathLike | None = None,
    do_lower_case: bool | None = None,
    **encoder_options,
) -> LoadedModel:
    """Reads a KerasHub preset.

    Args:
      preset: a folder that `save_to_preset` wrote, or a preset's name, such as
        "bert_tiny_en_uncased", which KerasHub downloads.
      head: None or "none"; or "pretraining" for new pre-training heads.
      gelu_form: "tanh", which KerasHub computes, or "erf", with which the weights were trained
        where they came from Google's 2018 checkpoints.
      vocab, do_lower_case: by default as the preset's tokenizer has them.
      **encoder_options: passed to `BertEncoder`.

    Raises:
      UserError: there is no such preset, it is no BERT, or it cannot be read.
    """
    import keras_hub

    preset = str(preset)
    if Path(preset).is_dir():
        _check_files(Path(preset))
    try:
        backbone = keras_hub.models.Backbone.from_preset(preset)
    except Exception as error:  # Kaggle, Hugging Face and file errors, each of their own kind
        raise UserError(f"{preset}: KerasHub cannot load this preset ({error})") from error
    if not isinstance(backbone, keras_hub.models.BertBackbone):
        raise UserError(f"{preset}: a {type(backbone).__name__}, not a BertBackbone")
    tokenizer = _read_tokenizer(preset, vocab, do_lower_case)
    return from_backbone(backbone, tokenizer, head, gelu_form, where=preset, **encoder_options)


def from_backbone(
    backbone,
    tokenizer: BertTokenizer | None = None,
    head: str | None = None,
    gelu_form: str = "tanh",
    where: str = "BertBackbone",
    **encoder_options,
) -> LoadedModel:
    """The same as `import_keras_hub` from a `keras_hub.models.BertBackbone` in memory."""
    import keras

    if head not in (None, "none", "pretraining"):
        raise UserError(f"head must be none or pretraining, not {head!r}")
    config = BertConfig(
        vocab_size=backbone.vocabulary_size,
        hidden_size=backbone.hidden_dim,
        num_hidden_layers=backbone.num_layers,
        num_attention_heads=backbone.num_heads,
        intermediate_size=backbone.intermediate_dim,
        hidden_dropout_prob=backbone.dropout,
        attention_probs_dropout_prob=backbone.dropout,
        max_position_embeddings=backbone.max_sequence_length,
        type_vocab_size=backbone.num_segments,
        gelu_form=gelu_form,
    )
    if tokenizer is not None:
        model_folder.check_vocabulary(config, len(tokenizer.vocab), where)
    settings = {"head": head or "none"}
    encoder, model = model_folder.build(config, settings, **encoder_options)
    variables = _backbone_variables(backbone)
    source = transfer.TensorSource(
        where,
        "keras_hub",
        {name: name for name in variables},
        lambda name: keras.ops.convert_to_numpy(variables[name]),
    )
    report = transfer.fill(model, settings["head"], source)
    report.notes.append(f"GELU in the {gelu_form} form (KerasHub computes tanh)")
    settings["do_lower_case"] = None if tokenizer is None else tokenizer.do_lower_case
    return LoadedModel(config, encoder, model, settings["head"], tokenizer, settings, report)


def to_backbone(model):
    """A `keras_hub.models.BertBackbone` with the weights of the model's encoder.

    Raises:
      UserError: KerasHub's backbone cannot compute what this encoder computes.
    """
    import keras_hub

    encoder = getattr(model, "encoder", model)
    config = encoder.config
    _check_representable(config)
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        dropout=config.hidden_dropout_prob,
        max_sequence_length=config.max_position_embeddings,
        num_segments=config.type_vocab_size,
    )
    tensors = transfer.extract(encoder, "none", "keras_hub")
    for name, variable in _backbone_variables(backbone).items():
        variable.assign(tensors[name].reshape(variable.shape))
    return backbone


def export_keras_hub(
    folder: str | os.PathLike, model, tokenizer, settings=None, overwrite: bool = False
) -> list[str]:
    """Writes a preset: `BertBackbone.from_preset(folder)` and `BertTokenizer.from_preset(folder)`.

    Returns:
      remarks on what the preset cannot hold.

    Raises:
      UserError: KerasHub cannot compute what this encoder computes; the folder exists.
    """
    import keras_hub

    backbone = to_backbone(model)
    model_folder.check_word_piece(tokenizer, "KerasHub")
    with atomic_folder(folder, overwrite=overwrite) as temporary:
        backbone.save_to_preset(str(temporary))
        if tokenizer is not None:
            keras_hub.models.BertTokenizer(
                vocabulary=tokenizer.vocab,
                lowercase=tokenizer.do_lower_case,
                strip_accents=tokenizer.rules.accents_go,
                split_on_cjk=tokenizer.rules.tokenize_chinese_chars,
            ).save_to_preset(str(temporary))
    notes = []
    config = getattr(model, "encoder", model).config
    if config.hidden_act == "gelu" and config.gelu_form == "erf":
        notes.append("KerasHub computes GELU in the tanh form, this model erf: outputs differ")
    if config.attention_probs_dropout_prob != config.hidden_dropout_prob:
        notes.append("KerasHub has one dropout rate: hidden_dropout_prob was written")
    head, _ = model_folder.describe(model)
    if head != "none":
        notes.append(f"left out, a backbone has no head: the {head} head")
    return notes


def is_preset_folder(folder: str | os.PathLike) -> bool:
    """Whether `folder` is a preset that KerasHub saved."""
    return is_json_object(Path(folder) / "config.json", "registered_name", "class_name")


def is_preset_name(name: str) -> bool:
    """Whether KerasHub lists a BERT preset of this name, or it names one of Kaggle's or a hub's."""
    if "://" in name:
        return name.startswith(("kaggle://", "hf://", "gs://"))
    return name in preset_names()


def preset_names() -> list[str]:
    """The BERT presets that the installed KerasHub can download."""
    import keras_hub

    return sorted(keras_hub.models.BertBackbone.presets)


def _check_files(folder: Path) -> None:
    """What KerasHub would believe: the class to make, its size, and where its weights lie."""
    path, weights = folder / "config.json", folder / "model.weights.h5"
    shape = field(_object_of(path, "BertBackbone"), "config", dict, path)
    if (folder / _TOKENIZER).exists():
        _object_of(folder / _TOKENIZER, "BertTokenizer")
    numbers = {
        ours: field(shape, theirs, int, f"{path}: config")
        for ours, theirs in (
            ("vocab_size", "vocabulary_size"),
            ("hidden_size", "hidden_dim"),
            ("num_hidden_layers", "num_layers"),
            ("num_attention_heads", "num_heads"),
            ("intermediate_size", "intermediate_dim"),
            ("max_position_embeddings", "max_sequence_length"),
            ("type_vocab_size", "num_segments"),
        )
    }
    config = BertConfig.from_dict(numbers, source=str(path))
    if not weights.is_file():
        raise UserError(f"{weights}: missing; a preset needs its weights")
    held = sum(map(math.prod, integrity.check_hdf5(weights).values()))
    integrity.check_size(config, {}, held, weights)


def _object_of(path: Path, expected: str) -> dict:
    """What a JSON file of Keras says of an object, which must be of KerasHub's class `expected`."""
    fields = read_json(path)
    name = field(fields, "class_name", str, path)
    module = field(fields, "module", str, path) if fields.get("module") is not None else ""
    if name != expected or not f"{module}.".startswith(("keras_hub.", "keras_nlp.", ".")):
        raise UserError(f"{path}: a {shorten(f'{module} {name}')}, not KerasHub's {expected}")
    return fields


def _check_representable(config: BertConfig) -> None:
    config.check_is_bert("KerasHub")
    for name, expected in (
        ("attention_direction", "bidirectional"),
        ("hidden_act", "gelu"),
        ("layer_norm_eps", 1e-12),
    ):
        value = getattr(config, name)
        if value != expected:
            raise UserError(f"KerasHub's BertBackbone has {name} {expected!r} only, not {value!r}")


def _backbone_variables(backbone) -> dict:
    # A name scope around the backbone's construction shows in the paths: keep what the table knows.
    starts = (
        "token_embedding/",
        "segment_embedding/",
        "position_embedding/",
        "embeddings_layer_norm/",
        "transformer_layer_",
        "pooled_dense/",
    )
    named = {}
    for variable in backbone.weights:
        path = variable.path
        start = min((path.index(start) for start in starts if start in path), default=0)
        named[path[start:]] = variable
    return named


def _read_tokenizer(preset: str, vocab, do_lower_case: bool | None) -> BertTokenizer | None:
    import keras_hub

    if vocab and do_lower_case is not None:
        return BertTokenizer(vocab, do_lower_case=do_lower_case)
    try:
        theirs = keras_hub.models.BertTokenizer.from_preset(preset)
    except Exception as error:  # a preset of a backbone alone has no tokenizer
        if (Path(preset) / _TOKENIZER).exists():
            raise UserError(f"{preset}: its tokenizer cannot be read ({error})") from error
        if vocab is None:
            return None
        from official_bert.checkpoints.google import find_tokenizer

        return find_tokenizer(vocab, Path(preset), do_lower_case)
    pieces = theirs.get_vocabulary()
    if not all(token in pieces for token in SPECIAL_TOKENS):
        raise UserError(f"{preset}: its vocabulary lacks one of {', '.join(SPECIAL_TOKENS)}")
    lower = theirs.lowercase if do_lower_case is None else do_lower_case
    lower, strips = bool(lower), bool(theirs.strip_accents)
    return BertTokenizer(
        vocab or pieces, lower, None if strips == lower else strips, bool(theirs.split_on_cjk)
    )
