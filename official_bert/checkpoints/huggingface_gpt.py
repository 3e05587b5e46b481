"""OpenAI GPT as Hugging Face stores it (`OpenAIGPTModel`), told in BERT's names.

Its matrices lie as [inputs, outputs], those of query, key and value in one. The published table has
no rows for what begins, divides and ends the texts of a task: they are drawn here, N(0, 0.02), as
in Radford et al. 2018. What is written here has them; n_special in its config.json says so.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from official_bert.checkpoints.huggingface_family import POSITIONS, Member
from official_bert.config import OPENAI_GPT, BertConfig
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
_OWN = {part: name for name, parts in _BLOCK.items() for part in parts}
_ACTIVATIONS = {"gelu": "gelu_new", "relu": "relu"}
# Fields of config.json: theirs, those of BERT.
_SIZES = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_positions": "max_position_embeddings",
    "resid_pdrop": "hidden_dropout_prob",
    "embd_pdrop": "hidden_dropout_prob",
    "attn_pdrop": "attention_probs_dropout_prob",
    "layer_norm_epsilon": "layer_norm_eps",
}


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

    def reader(self, read: Callable, stored: Mapping[str, str], fields: dict) -> Callable:
        tables = {stored.get(name) for name in _TABLES.values()} if _added(fields) else ()

        def read_part(name):
            if name in tables:
                return _with_added_rows(read(name))
            whole, _, part = name.partition("#")
            if not part:
                return read(name)
            count = 3 if ".c_attn." in whole else 1
            return np.split(read(whole), count, axis=-1)[int(part)].T

        return read_part


def own_tensors(found: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """GPT's tensors from `found`, a model's by BERT's names; `prefix` begins those of blocks and
    tables."""
    own = {berts: theirs for theirs, berts in _NAMES.items()}
    parts: dict[str, list[np.ndarray]] = {}
    for name, array in found.items():
        block = re.fullmatch(r"bert\.encoder\.layer\.(\d+)\.(.+)\.(weight|bias)", name)
        theirs = f"h.{block[1]}.{_OWN[block[2]]}.{block[3]}" if block else own[name]
        # A block's matrices turn round; query, key and value follow each other.
        parts.setdefault(prefix + theirs, []).append(array.T if block else array)
    return {
        name: np.ascontiguousarray(np.concatenate(arrays, axis=-1))
        for name, arrays in parts.items()
    }


def their_config(fields: dict[str, Any], config: BertConfig) -> dict[str, Any]:
    """GPT's config.json from what it would be for BERT."""
    kept = ("architectures", "vocab_size", "initializer_range", "tie_word_embeddings", "dtype")
    return {
        "model_type": "openai-gpt",
        **{name: fields[name] for name in kept},
        **{theirs: getattr(config, ours) for theirs, ours in _SIZES.items()},
        "afn": config.hidden_act,
        "n_special": len(ADDED),
    }


def needed(config: BertConfig) -> dict[str, Any]:
    """Fields that GPT has with one value only, beside the pooler's."""
    free = ("layer_norm_eps", "pooler_activation")
    shape = {
        **{name: value for name, value in OPENAI_GPT.items() if name not in free},
        "hidden_act": "gelu",
        "embedding_size": 0,
        "num_hidden_groups": 0,
        "intermediate_size": 4 * config.hidden_size,
    }
    if config.hidden_act == "relu":  # gelu_form says nothing then
        shape |= {"hidden_act": "relu", "gelu_form": config.gelu_form}
    return shape


def _added(fields: Mapping[str, Any]) -> int:
    """The rows that the stored table lacks."""
    return 0 if fields.get("n_special") else len(ADDED)


def _with_added_rows(table: np.ndarray) -> np.ndarray:
    numbers = np.random.Generator(np.random.Philox(2018))
    draws = numbers.standard_normal((len(ADDED), table.shape[1]))
    return np.concatenate([table, (0.02 * draws).astype(table.dtype)])


def _fields(f: dict[str, Any]) -> dict[str, Any]:
    act = f.get("afn", "gelu")
    if act not in _ACTIVATIONS:
        raise ValueError(f"afn {act!r}, only {', '.join(_ACTIVATIONS)} are read")
    return {
        **OPENAI_GPT,
        "vocab_size": f["vocab_size"] + _added(f),
        "hidden_size": f["n_embd"],
        "num_hidden_layers": f["n_layer"],
        "num_attention_heads": f["n_head"],
        "intermediate_size": 4 * f["n_embd"],
        "max_position_embeddings": f["n_positions"],
        "hidden_act": _ACTIVATIONS[act],
        "hidden_dropout_prob": f.get("resid_pdrop", 0.1),
        "attention_probs_dropout_prob": f.get("attn_pdrop", 0.1),
        "layer_norm_eps": f.get("layer_norm_epsilon", 1e-5),
        "is_decoder": True,
        "pad_token_id": -1,
    }


GPT = _OpenAIGPT(
    "transformer",
    "OpenAIGPT",
    (),
    _fields,
    dense="none",
    tokenizer="word_end_byte_pair",
    sign=r"tokens_embed\.",
    anchor="tokens_embed.weight",
)
