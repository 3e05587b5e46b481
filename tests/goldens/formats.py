"""Models in every format that is written, in one archive."""

import dataclasses
import io
import json
import tarfile
import tempfile
from pathlib import Path

import keras
import successor_tokenizers
from tiny import CONFIG, VOCAB

import official_bert as ob
from experiments.beyond.gpt.gpt2_names import GPT2
from experiments.beyond.gpt.names import OPENAI_GPT
from official_bert.backend.variables import named_variables
from official_bert.checkpoints.finding.resolve import EXPORTERS
from official_bert.config import BertConfig
from official_bert.export import exports
from official_bert.heads import build_head
from official_bert.tokenization import SentencePieceTokenizer
from tests.goldens.steps import summary

ARCHIVE = Path(__file__).with_name("formats.tar.xz")
PIECES = {
    "word_piece": lambda: ob.BertTokenizer(VOCAB),
    "byte_pair": lambda: successor_tokenizers.byte_pairs(["Ġdog", "the"], add_prefix_space=True),
    "word_end_byte_pair": lambda: successor_tokenizers.word_ends(["dog"], "abc"),
    "sentence_piece": lambda: SentencePieceTokenizer(successor_tokenizers.sentence_piece_model()),
}
ROBERTA = {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1}
ALBERT = {"embedding_size": 4, "num_hidden_groups": 1, "gelu_form": "tanh", "num_hidden_layers": 2}
DISTILBERT = {"type_vocab_size": 0, "pooler_activation": "none"}
ELECTRA = {"embedding_size": 4, "pooler_activation": "none", "gelu_form": "tanh"}
GPT = {**OPENAI_GPT, "intermediate_size": 32, "pad_token_id": -1}
GPT_2 = {**GPT2, "intermediate_size": 32, "pad_token_id": -1}
LEFT = {"attention_direction": "left_to_right"}
LSTMS = {"recurrent": True, "num_attention_heads": 1}
BOTH = {"attention_direction": "shallow_concatenation"}
LM, NSP = "masked_lm", "next_sentence"
TEXT = {"head": "text", "longest": 6, "beams": 2, "length_penalty": 0.5}
LABELS = {"labels": ["no", "yes"], "num_labels": 2}
CLASSES = {"head": "classification", "problem": "single_label", **LABELS}
# Name of the format and the case -> (fields of the encoder, head or objectives, tokeniser).
CASES = {
    "model/encoder": ({}, None, "word_piece"),
    "model/bert": ({}, (LM, NSP), "word_piece"),
    "model/left": (LEFT, ({"name": "next_token", "fraction": 0.3},), "word_piece"),
    "model/shallow": (BOTH, ("adjacent_tokens",), "word_piece"),
    "model/albert": (ALBERT, (LM, "sentence_order"), "sentence_piece"),
    "model/spanbert": ({}, (LM, "span_boundary"), "word_piece"),
    "model/electra": (ELECTRA, ("replaced_token",), "word_piece"),
    "model/roberta": (ROBERTA, (LM,), "byte_pair"),
    "model/gpt": (GPT, ("next_token",), "word_end_byte_pair"),
    "model/gpt2": (GPT_2, ("next_token",), None),
    "model/lstm": (LSTMS, ("next_token",), "word_piece"),
    "model/classification": ({}, CLASSES, "word_piece"),
    "model/regression": (
        {}, {"head": "classification", "problem": "regression", "num_labels": 1}, "word_piece",
    ),
    "model/windows": ({}, {**CLASSES, "windows": "mean"}, "word_piece"),
    "model/concat_pooling": ({}, {**CLASSES, "concat_pooling": True}, "word_piece"),
    "model/ulmfit": (LSTMS, {**CLASSES, "concat_pooling": True}, "word_piece"),
    "model/span": ({}, {"head": "span"}, "word_piece"),
    "model/multiple_choice": ({}, {"head": "multiple_choice"}, "word_piece"),
    "model/tagging": ({}, {"head": "tagging", **LABELS, "bilstm": True}, "word_piece"),
    "model/separate": ({}, {**TEXT, "decoder": "separate"}, "word_piece"),
    "model/shared": ({}, {**TEXT, "decoder": "shared"}, "word_piece"),
    "model/prefix": ({}, {**TEXT, "decoder": "prefix"}, "word_piece"),
    "huggingface/bert": ({}, (LM, NSP), "word_piece"),
    "huggingface/left": (LEFT, ("next_token",), "word_piece"),
    "huggingface/tagging": ({}, {"head": "tagging", **LABELS}, "word_piece"),
    "huggingface/roberta": (ROBERTA, CLASSES, "byte_pair"),
    "huggingface/albert": (ALBERT, (LM, "sentence_order"), "sentence_piece"),
    "huggingface/distilbert": ({**DISTILBERT, "pooler_activation": "relu"}, CLASSES, "word_piece"),
    "huggingface/electra": ({**ELECTRA, "gelu_form": "erf"}, ("replaced_token",), "word_piece"),
    "huggingface/openai-gpt": (GPT, ("next_token",), "word_end_byte_pair"),
    "huggingface/gpt2": (GPT_2, ("next_token",), None),
    "keras_hub/bert": ({"gelu_form": "tanh"}, None, "word_piece"),
    "keras_hub/roberta": ({**DISTILBERT, "layer_norm_eps": 1e-5, "pad_token_id": 1}, None,
                          "byte_pair"),
    "keras_hub/albert": (ALBERT, None, "sentence_piece"),
    "keras_hub/distilbert": (DISTILBERT, None, "word_piece"),
    "keras_hub/electra": (ELECTRA, None, "word_piece"),
    "google/bert": ({}, (LM, NSP), "word_piece"),
    "keras/bert": ({}, (LM, NSP), None),
    "keras/spanbert": ({}, (LM, "span_boundary"), None),
    "keras/albert": (ALBERT, (LM, "sentence_order"), None),
    "keras/electra": (ELECTRA, ("replaced_token",), None),
    "keras/gpt2": (GPT_2, ("next_token",), None),
    "keras/classification": ({}, CLASSES, None),
    "keras/ulmfit": (LSTMS, {**CLASSES, "concat_pooling": True}, None),
    "keras/separate": ({}, {**TEXT, "decoder": "separate"}, None),
}  # fmt: skip


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
        model = keras.models.load_model(folder / f"{name}.keras")
        return {"weights": _weights(model)}
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
        head, settings = exports.plan(loaded, "the model", "saved_model")
        return json.dumps(exports.description(loaded, head, ["text"], settings), sort_keys=True)
    except ob.UserError as error:
        return str(error)


_SIZES = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"),
    *("intermediate_size", "max_position_embeddings", "initializer_range"),
)
