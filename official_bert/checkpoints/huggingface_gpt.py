"""OpenAI GPT as Hugging Face stores it (`OpenAIGPTModel`), told in BERT's names.

Its matrices lie as [inputs, outputs], those of query, key and value in one. The published table has
no rows for what begins, divides and ends the texts of a task: they are drawn here, N(0, 0.02), as
in Radford et al. 2018.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from official_bert.checkpoints.huggingface_family import POSITIONS, Member
from official_bert.tokenization.word_end_byte_pair import ADDED

_TABLES = {
    "tokens_embed.weight": "bert.embeddings.word_embeddings.weight",
    "lm_head.weight": "cls.predictions.decoder.weight",
}
_NAMES = {**_TABLES, "positions_embed.weight": POSITIONS}
_BLOCK = {
    "attn.c_attn": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attn.c_proj": ("attention.output.dense",),
    "ln_1": ("attention.output.LayerNorm",),
    "mlp.c_fc": ("intermediate.dense",),
    "mlp.c_proj": ("output.dense",),
    "ln_2": ("output.LayerNorm",),
}
_ACTIVATIONS = {"gelu": "gelu_new", "relu": "relu"}


class _OpenAIGPT(Member):
    def table_names(self, stored) -> dict[str, str]:
        """A part of a tensor is written NAME#PART."""
        names = {}
        for name in stored:
            inner = name.removeprefix("transformer.")
            found = re.fullmatch(r"h\.(\d+)\.(.+)\.(weight|bias)", inner)
            parts = _BLOCK.get(found[2], ()) if found else ()
            for number, part in enumerate(parts):
                names[f"bert.encoder.layer.{found[1]}.{part}.{found[3]}"] = f"{name}#{number}"
            if not parts:
                names[_NAMES.get(inner, name)] = name
        return names

    def reader(self, read: Callable, stored: Mapping[str, str]) -> Callable:
        tables = {stored.get(name) for name in _TABLES.values()}

        def read_part(name):
            if name in tables:
                return _with_added_rows(read(name))
            whole, _, part = name.partition("#")
            if not part:
                return read(name)
            count = 3 if ".c_attn." in whole else 1
            return np.split(read(whole), count, axis=-1)[int(part)].T

        return read_part


def _with_added_rows(table: np.ndarray) -> np.ndarray:
    numbers = np.random.Generator(np.random.Philox(2018))
    draws = numbers.standard_normal((len(ADDED), table.shape[1]))
    return np.concatenate([table, (0.02 * draws).astype(table.dtype)])


def _fields(f: dict[str, Any]) -> dict[str, Any]:
    act = f.get("afn", "gelu")
    if act not in _ACTIVATIONS:
        raise ValueError(f"afn {act!r}, only {', '.join(_ACTIVATIONS)} are read")
    return {
        "vocab_size": f["vocab_size"] + len(ADDED),
        "hidden_size": f["n_embd"],
        "num_hidden_layers": f["n_layer"],
        "num_attention_heads": f["n_head"],
        "intermediate_size": 4 * f["n_embd"],
        "max_position_embeddings": f["n_positions"],
        "hidden_act": _ACTIVATIONS[act],
        "hidden_dropout_prob": f.get("resid_pdrop", 0.1),
        "attention_probs_dropout_prob": f.get("attn_pdrop", 0.1),
        "layer_norm_eps": f.get("layer_norm_epsilon", 1e-5),
        "type_vocab_size": 0,
        "pooler_activation": "none",
        "embedding_norm": False,
        "prediction_transform": False,
        "is_decoder": True,
    }


GPT = _OpenAIGPT("transformer", "OpenAIGPT", (), _fields, tokenizer="word_end_byte_pair")
