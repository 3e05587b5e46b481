"""OpenAI GPT (Radford et al. 2018), which BERT is compared with: its shape and its tensors.

In a Hugging Face folder (`OpenAIGPTModel`) its matrices lie as [inputs, outputs], those of query,
key and value in one. The published table has no rows for what begins, divides and ends the texts of
a task: they are drawn here, N(0, 0.02), as in the paper. Folders that are written here have them;
n_special in config.json says so.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from experiments.beyond.gpt.word_ends import ADDED
from official_bert.checkpoints.member import POSITIONS, Member

# Fields that make a `BertConfig` OpenAI GPT; sizes and rates apart.
OPENAI_GPT = {
    "attention_direction": "left_to_right",
    "type_vocab_size": 0,
    "embedding_norm": False,
    "prediction_transform": False,
    "pooler_activation": "none",
    "layer_norm_eps": 1e-5,
    "gelu_form": "tanh",
}

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
# Fields of config.json: theirs, those of BERT; of two for one the last is read.
_SIZES = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_positions": "max_position_embeddings",
    "embd_pdrop": "hidden_dropout_prob",
    "resid_pdrop": "hidden_dropout_prob",
    "attn_pdrop": "attention_probs_dropout_prob",
    "layer_norm_epsilon": "layer_norm_eps",
}
_DEFAULTS = {
    **dict.fromkeys(("embd_pdrop", "resid_pdrop", "attn_pdrop"), 0.1),
    "layer_norm_epsilon": 1e-5,
}


class OpenAIGPT(Member):
    name = "openai-gpt"
    classes = "OpenAIGPT"
    prefix = "transformer"
    dense = "none"
    tokenizer = "word_end_byte_pair"
    sign = r"tokens_embed\."
    anchor = "tokens_embed.weight"
    backbone = None
    rank = 1
    own_words = own_heads = False
    shape = OPENAI_GPT  # what makes a `BertConfig` one
    names = _NAMES  # of tensors outside the blocks

    def read(self, fields):
        values, act = {**_DEFAULTS, **fields}, fields.get("afn", "gelu")
        if act not in _ACTIVATIONS:
            raise ValueError(f"afn {act!r}, only {', '.join(_ACTIVATIONS)} are read")
        return {
            **self.shape,
            "vocab_size": fields["vocab_size"] + self._added(fields),
            **{ours: values[theirs] for theirs, ours in _SIZES.items()},
            "intermediate_size": 4 * fields["n_embd"],
            "hidden_act": _ACTIVATIONS[act],
            "is_decoder": True,
            "pad_token_id": -1,
        }

    def their_config(self, fields, config):
        kept = ("architectures", "vocab_size", "initializer_range", "tie_word_embeddings", "dtype")
        return {
            "model_type": self.name,
            **{name: fields[name] for name in kept},
            **{theirs: getattr(config, ours) for theirs, ours in _SIZES.items()},
            "afn": config.hidden_act,
            "n_special": len(ADDED),
        }

    def fits(self, config, algorithm):
        return not (config.value("embedding_norm") and config.value("prediction_transform"))

    def needed(self, config, objectives):
        free = ("layer_norm_eps", "pooler_activation", "gelu_form")
        # `gelu_form` says nothing where the activation is another one.
        form = config.gelu_form if config.hidden_act == "relu" else self.shape["gelu_form"]
        return {
            **{name: value for name, value in self.shape.items() if name not in free},
            "hidden_act": "relu" if config.hidden_act == "relu" else "gelu",
            "gelu_form": form,
            "embedding_size": 0,
            "num_hidden_groups": 0,
            "intermediate_size": 4 * config.hidden_size,
        }

    def pretraining_class(self, objectives):
        if objectives == ["next_token"]:
            return "LMHeadModel"
        return super().pretraining_class(objectives)

    def table_names(self, stored) -> dict[str, str]:
        """Return the name of each tensor; a part of one is written NAME#PART."""
        names = {}
        for name in stored:
            inner = name.removeprefix("transformer.")
            found = re.fullmatch(r"h\.(\d+)\.(.+)\.(weight|bias)", inner)
            parts = _BLOCK.get(found[2], ()) if found else ()
            for number, part in enumerate(parts):
                names[f"bert.encoder.layer.{found[1]}.{part}.{found[3]}"] = f"{name}#{number}"
            if not parts:
                names[self.names.get(inner, name)] = name
        return names

    def reader(self, read: Callable, stored: Mapping[str, str], fields: dict) -> Callable:
        tables = {stored.get(name) for name in _TABLES.values()} if self._added(fields) else ()

        def read_part(name):
            if name in tables:
                return _with_added_rows(read(name))
            whole, _, part = name.partition("#")
            if not part:
                return read(name)
            count = 3 if ".c_attn." in whole else 1
            return np.split(read(whole), count, axis=-1)[int(part)].T

        return read_part

    def own_tensors(self, found, head):
        prefix = "" if head == "none" else f"{self.prefix}."
        own = {berts: theirs for theirs, berts in self.names.items()}
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

    def _added(self, fields: Mapping[str, Any]) -> int:
        """Return the rows that the stored table lacks."""
        return 0 if fields.get("n_special") else len(ADDED)


def _with_added_rows(table: np.ndarray) -> np.ndarray:
    numbers = np.random.Generator(np.random.Philox(2018))
    draws = numbers.standard_normal((len(ADDED), table.shape[1]))
    return np.concatenate([table, (0.02 * draws).astype(table.dtype)])


MEMBER = OpenAIGPT()
