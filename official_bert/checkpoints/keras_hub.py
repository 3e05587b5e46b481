"""KerasHub's backbones of BERT and its successors in and out, and presets by name or by folder.

`BertBackbone`, `ElectraBackbone` and `AlbertBackbone` compute GELU in the tanh form,
`RobertaBackbone` and `DistilBertBackbone` in the erf form, and that is the default of an import.
None has a place for a head of ours, for left-to-right attention or for other epsilons.
"""

import ast
import importlib.util
import os
import re
from pathlib import Path

import numpy as np

from official_bert.checkpoints import integrity, members, model_folder, transfer
from official_bert.checkpoints.files import hdf5_files
from official_bert.checkpoints.google import find_tokenizer
from official_bert.checkpoints.member import Backbone
from official_bert.checkpoints.model_folder import LoadedModel
from official_bert.common.errors import UserError, check_choice, first_line
from official_bert.common.files import atomic_folder
from official_bert.common.json_files import MOST_BYTES, field, is_json_object, read_json, shorten
from official_bert.common.outside_files import check_below
from official_bert.config import BertConfig
from official_bert.tokenization import SPECIAL_TOKENS, BertTokenizer, Tokenizer, load_tokenizer
from official_bert.tokenization.library.own_json import as_own

_TOKENIZER = "tokenizer.json"


def import_keras_hub(
    preset, /, head=None, gelu_form=None, vocab=None, do_lower_case=None, **encoder_options
) -> LoadedModel:
    """Import a preset of KerasHub, as a `resolve.Importer`.

    A preset is a folder that `save_to_preset` wrote, or a name such as "bert_tiny_en_uncased",
    which KerasHub downloads. It has no head. GELU is what KerasHub computes; "erf" is for a BERT
    that came from Google's 2018 checkpoints. Texts are cut as the preset's tokenizer does.
    """
    import keras_hub

    preset = str(preset)
    arrays = _arrays(Path(preset)) if Path(preset).is_dir() else None
    try:
        backbone = keras_hub.models.Backbone.from_preset(preset, load_weights=arrays is None)
        if arrays is not None:
            with hdf5_files.written(arrays, preset) as copy:
                backbone.load_weights(copy)
    except Exception as error:  # Kaggle, Hugging Face and file errors, each of their own kind
        raise UserError(f"{preset}: KerasHub cannot load this preset ({error})") from error
    name = type(backbone).__name__
    check_choice("backbone", name, members.backbones(), preset)
    tokenizer = _our_tokenizer(preset, members.backbones()[name], vocab, do_lower_case)
    return from_backbone(backbone, tokenizer, head, gelu_form, where=preset, **encoder_options)


def from_backbone(
    backbone,
    tokenizer: Tokenizer | None = None,
    head: str | None = None,
    gelu_form: str | None = None,
    where: str = "backbone",
    **encoder_options,
) -> LoadedModel:
    """Import a backbone of `keras_hub.models` in memory, as `import_keras_hub` does a preset."""
    import keras

    check_choice("head", head or "none", ("none", "pretraining"))
    entry = members.backbones()[type(backbone).__name__]
    rates = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), backbone.dropout)
    fields = entry.config(lambda name: getattr(backbone, name), gelu_form)
    config = BertConfig.from_dict({**fields, **rates})
    if getattr(backbone, "num_inner_repetitions", 1) != 1:
        raise UserError(f"{where}: num_inner_repetitions {backbone.num_inner_repetitions}, not 1")
    variables = _backbone_variables(backbone, entry)
    source = transfer.TensorSource(
        where,
        "keras_hub",
        {name: name for name in variables},
        lambda name: keras.ops.convert_to_numpy(variables[name]),
    )
    computed, settings = entry.computes["gelu_form"], {"head": head or "none"}
    if head == "pretraining":
        settings["objectives"] = [config.language_model, "next_sentence"]
    notes = [f"GELU in the {config.gelu_form} form (KerasHub computes {computed})"]
    return transfer.assembled(config, settings, source, tokenizer, notes, **encoder_options)


def to_backbone(model):
    """Return the backbone of `keras_hub.models` that computes a model's encoder, with weights.

    Raises:
      UserError: KerasHub's backbone cannot compute what this encoder computes.
    """
    import keras_hub

    encoder = getattr(model, "encoder", model)
    config = encoder.config
    entry = members.backbone_of(config)
    make = getattr(keras_hub.models, entry.name)
    backbone = make(**entry.arguments(config), dropout=config.hidden_dropout_prob)
    tensors = transfer.extract(encoder, "none", "keras_hub")
    if entry.one_segment and config.type_vocab_size:
        position = "position_embedding/embeddings"
        tensors[position] = tensors[position] + tensors["segment_embedding/embeddings"]
    for name, variable in _backbone_variables(backbone, entry).items():
        if name in tensors:
            variable.assign(tensors[name].reshape(variable.shape))
        elif not name.startswith("pooled_dense/"):  # a pooler may keep random values
            raise UserError(f"KerasHub's {entry.name} has {name}, which this encoder has not")
    return backbone


def export_keras_hub(folder, model, tokenizer, settings=None, overwrite=False) -> list[str]:
    """Write a preset, as a `resolve.Exporter`.

    `Backbone.from_preset(folder)` and `Tokenizer.from_preset(folder)` read it.
    """
    model = model_folder.kept(model)
    backbone = to_backbone(model)
    name = type(backbone).__name__
    entry = members.backbones()[name]
    notes = members.remarks(entry, getattr(model, "encoder", model).config)
    try:
        tokenizer = as_own(tokenizer, entry.pieces, f"KerasHub's {name}")
    except UserError as error:
        notes.append(f"no tokeniser was written: {error}")
        tokenizer = None
    # HDF5 ends the process where the disk is full, so its space is reserved before.
    size = model_folder.size_of(model) + 4096 * len(model.weights) + (1 << 20)
    with atomic_folder(folder, overwrite, size) as temporary:
        backbone.save_to_preset(str(temporary))
        if tokenizer is not None:
            theirs = _their_tokenizer(tokenizer, entry)
            theirs.save_to_preset(str(temporary))
    if tokenizer is not None and entry.note:
        notes.append(entry.note)
    head, _ = model_folder.describe(model)
    if head != "none":
        notes.append(f"left out, a backbone has no head: the {head} head")
    return notes


def is_preset_folder(folder: str | os.PathLike) -> bool:
    """Return whether `folder` is a preset that KerasHub saved."""
    return is_json_object(Path(folder) / "config.json", "registered_name", "class_name")


def preset_names() -> list[str]:
    """Return presets of BERT and its successors that the installed KerasHub can download.

    The names are read from KerasHub's sources, since importing it takes many seconds.
    """
    spec = importlib.util.find_spec("keras_hub")
    names: set[str] = set()
    for place in (spec and spec.submodule_search_locations) or ():
        for name in members.backbones():
            package = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removesuffix("Backbone")).lower()
            path = Path(place, "src", "models", package, f"{package}_presets.py")
            for node in ast.parse(path.read_text("utf-8")).body if path.is_file() else ():
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
                    names |= {ast.literal_eval(key) for key in node.value.keys if key}
    return sorted(names)


def _arrays(folder: Path) -> dict[str, np.ndarray]:
    """Return the weights in a folder, once its class and its size are checked.

    KerasHub would believe both.
    """
    path, weights = folder / "config.json", folder / "model.weights.h5"
    fields = _object_of(path, *members.backbones())
    entry, shape = members.backbones()[fields["class_name"]], field(fields, "config", dict, path)
    tokenizer = folder / _TOKENIZER
    if tokenizer.exists():
        _object_of(tokenizer, entry.tokenizer)
    numbers = entry.config(lambda name: field(shape, name, int, f"{path}: config"))
    config = BertConfig.from_dict(numbers, source=str(path))
    if not weights.is_file():
        raise UserError(f"{weights}: missing; a preset needs its weights")
    arrays = hdf5_files.read(weights)
    integrity.check_size(config, {}, sum(array.size for array in arrays.values()), weights)
    return arrays


def _object_of(path: Path, *expected: str) -> dict:
    """Read Keras' JSON description of an object of one of the expected classes of KerasHub."""
    fields = read_json(path)
    name = field(fields, "class_name", str, path)
    module = field(fields, "module", str, path) if fields.get("module") is not None else ""
    if name not in expected or not f"{module}.".startswith(("keras_hub.", "keras_nlp.", ".")):
        known = " or ".join(expected)
        raise UserError(f"{path}: a {shorten(f'{module} {name}')}, not KerasHub's {known}")
    return fields


def _backbone_variables(backbone, entry: Backbone) -> dict:
    # A name scope around the backbone's construction shows in the paths: keep what the table knows.
    starts = (
        "token_embedding/",
        "segment_embedding/",
        "position_embedding/",
        "embeddings_layer_norm/",
        "embeddings_projection/",
        "transformer_layer_",
        "pooled_dense/",
    )
    named = {}
    for variable in backbone.weights:
        path = variable.path
        for theirs, ours in entry.renames:
            path = re.sub(theirs, ours, path)
        start = max((path.rindex(start) for start in starts if start in path), default=0)
        named[path[start:]] = variable
    return named


def _their_tokenizer(tokenizer: Tokenizer, entry: Backbone):
    """Return KerasHub's tokeniser of that kind, with our tokeniser's vocabulary."""
    import keras_hub

    make = getattr(keras_hub.models, entry.tokenizer)
    if entry.tokenizer_to:
        return entry.tokenizer_to(make, tokenizer)
    return make(
        vocabulary=tokenizer.vocab,
        lowercase=tokenizer.do_lower_case,
        strip_accents=tokenizer.rules.accents_go,
        split_on_cjk=tokenizer.rules.tokenize_chinese_chars,
    )


def _our_tokenizer(
    preset: str,
    backbone: Backbone,
    vocab: str | os.PathLike | None = None,
    do_lower_case: bool | None = None,
) -> Tokenizer | None:
    """Return the tokeniser of a preset's folder or name; None where it has none.

    Args:
      backbone: whose tokeniser it is.
      vocab: another vocabulary file.
      do_lower_case: None as the preset says. ALBERT's says nothing: there, text is lower-cased
        where the vocabulary has no capital letter.

    Raises:
      UserError: the tokeniser is damaged, of another kind, or lacks a special token.
    """
    import keras_hub

    kind, class_name = backbone.pieces, backbone.tokenizer
    if vocab and (do_lower_case is not None or kind != "word_piece"):
        found = load_tokenizer(vocab, do_lower_case is not False)
        if found.kind != kind:
            raise UserError(f"{vocab}: a {found.kind} vocabulary; this model has {kind}")
        return found
    check_below(Path(preset, "assets"), MOST_BYTES)  # KerasHub opens whatever is there
    backbone.check_preset(Path(preset))
    try:
        theirs = getattr(keras_hub.models, class_name).from_preset(preset)
    except Exception as error:  # a preset of a backbone alone has no tokenizer
        if (Path(preset) / _TOKENIZER).exists():
            reason = first_line(error)
            raise UserError(f"{preset}: its tokenizer cannot be read ({reason})") from error
        return None if vocab is None else find_tokenizer(vocab, Path(preset), do_lower_case)
    if backbone.tokenizer_from:
        return backbone.tokenizer_from(theirs, preset, do_lower_case)
    pieces = theirs.get_vocabulary()
    if not all(token in pieces for token in SPECIAL_TOKENS):
        raise UserError(f"{preset}: its vocabulary lacks one of {', '.join(SPECIAL_TOKENS)}")
    lower = theirs.lowercase if do_lower_case is None else do_lower_case
    lower, strips = bool(lower), bool(theirs.strip_accents)
    return BertTokenizer(
        vocab or pieces, lower, None if strips == lower else strips, bool(theirs.split_on_cjk)
    )
