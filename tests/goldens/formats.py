"""Models in every format that is written, in one archive."""

import dataclasses
import io
import json
import tarfile
import tempfile
from pathlib import Path

import keras
from tiny import CONFIG, VOCAB

import official_bert as ob
from official_bert.backend.variables import named_variables
from official_bert.checkpoints.finding.resolve import EXPORTERS
from official_bert.config import BertConfig
from official_bert.export import exports
from official_bert.heads import build_head
from tests import guests
from tests.goldens.steps import summary

ARCHIVE = Path(__file__).with_name("formats.tar.xz")
PIECES = {"word_piece": lambda: ob.BertTokenizer(VOCAB)}
LEFT = {"attention_direction": "left_to_right"}
LM, NSP = "masked_lm", "next_sentence"
LABELS = {"labels": ["no", "yes"], "num_labels": 2}
CLASSES = {"head": "classification", "problem": "single_label", **LABELS}
NUMBER = {"problem": "regression", "num_labels": 1}
# Name of the format and the case -> (fields of the encoder, head or objectives, tokeniser).
OWN = {
    "model/encoder": ({}, None, "word_piece"),
    "model/bert": ({}, (LM, NSP), "word_piece"),
    "model/left": (LEFT, ({"name": "next_token", "fraction": 0.3},), "word_piece"),
    "model/classification": ({}, CLASSES, "word_piece"),
    "model/regression": ({}, {"head": "classification", **NUMBER}, "word_piece"),
    "model/windows": ({}, {**CLASSES, "windows": "mean"}, "word_piece"),
    "model/span": ({}, {"head": "span"}, "word_piece"),
    "model/multiple_choice": ({}, {"head": "multiple_choice"}, "word_piece"),
    "model/tagging": ({}, {"head": "tagging", **LABELS, "bilstm": True}, "word_piece"),
    "huggingface/bert": ({}, (LM, NSP), "word_piece"),
    "huggingface/left": (LEFT, ("next_token",), "word_piece"),
    "huggingface/tagging": ({}, {"head": "tagging", **LABELS}, "word_piece"),
    "keras_hub/bert": ({"gelu_form": "tanh"}, None, "word_piece"),
    "google/bert": ({}, (LM, NSP), "word_piece"),
    "keras/bert": ({}, (LM, NSP), None),
    "keras/classification": ({}, CLASSES, None),
}  # fmt: skip
CASES = {**OWN, **guests.added("formats", "CASES", {})}
NAMES = guests.names(OWN, CASES)
PIECES |= guests.added("formats", "PIECES", {})


def write(archive: Path) -> None:
    """Write every case, and what was written of it, into an archive."""
    with tempfile.TemporaryDirectory() as temporary, tarfile.open(archive, "w:xz") as packed:
        known = {name: written(Path(temporary), name) for name in CASES}
        Path(temporary, "known.json").write_text(json.dumps(known, indent=1, sort_keys=True))
        for path in sorted(Path(temporary).rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                entry = tarfile.TarInfo(str(path.relative_to(temporary)))
                entry.size = path.stat().st_size
                packed.addfile(entry, io.BytesIO(path.read_bytes()))


def written(folder: Path, name: str) -> dict:
    """Write a case as folder/NAME; return a description of it and of its `serving.json`."""
    fields, head, pieces = CASES[name]
    tokenizer = PIECES[pieces]() if pieces else None
    vocab_size = tokenizer.vocab_size if tokenizer else 300
    sizes = dataclasses.asdict(CONFIG) | {"vocab_size": vocab_size, "initializer_range": 0.5}
    sizes = {n: v for n, v in sizes.items() if n in _SIZES}
    model = ob.BertEncoder(BertConfig.from_dict({**sizes, **fields}), seed=0)
    if isinstance(head, dict):
        model = build_head(model, head, bilstm=head.get("bilstm", False), seed=1)
    elif head:
        model = ob.BertPretrainer(model, head, seed=1)
    settings = {"labels": head["labels"]} if isinstance(head, dict) and "labels" in head else {}
    put(folder, name, model, tokenizer, settings)
    return described(folder, name)


def put(folder: Path, name: str, model, tokenizer, settings: dict) -> None:
    """Write a model as folder/NAME, in the format that the name begins with."""
    kind = name.partition("/")[0]
    (folder / kind).mkdir(exist_ok=True)
    if kind == "keras":
        model.save(folder / f"{name}.keras")
    elif kind == "model":
        ob.save(folder / name, model, tokenizer, settings)
    else:
        EXPORTERS[kind](folder / name, model, tokenizer, settings)


def described(folder: Path, name: str) -> dict:
    """Read a case; return its configuration, head, weights and `serving.json`."""
    if name.startswith("keras/"):
        return {"weights": _weights(keras.models.load_model(folder / f"{name}.keras"))}
    loaded = ob.load(folder / name)
    tokenizer = loaded.tokenizer
    return {
        "config": loaded.config.to_dict(),
        "settings": {n: v for n, v in loaded.settings.items() if n != "checksums"},
        "tokenizer": tokenizer and [tokenizer.kind, tokenizer.digest()],
        "weights": _weights(loaded.model, loaded.report.initial if loaded.report else ()),
        "report": str(loaded.report).replace(str(folder), ""),
        "serving": _serving(loaded) if tokenizer else "",
    }


def _weights(model, initial=()) -> dict:
    variables = named_variables(model)
    stored = sorted(variables.keys() - set(initial))
    return {name: summary([variables[name].numpy()]) for name in stored}


def _serving(loaded) -> str:
    try:
        head, settings = exports.resolve_export(loaded, "the model", "saved_model")
        return json.dumps(exports.description(loaded, head, ["text"], settings), sort_keys=True)
    except ob.UserError as error:
        return str(error)


_SIZES = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"),
    *("intermediate_size", "max_position_embeddings", "initializer_range"),
)
