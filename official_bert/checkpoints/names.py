"""One table: the names of each variable in every format, and its layout there.

The first column is the variable's path below the model in this project; `{i}` is the number of the
block. The others are its names in Google's checkpoints, in Hugging Face's and in KerasHub's
backbone; None where the format has no place for it. All agree on what is computed (kernels multiply
from the right, x @ W + b), so only layouts differ:

- Google's are ours, but for the matrices called `output_weights`, which are [outputs, inputs].
- PyTorch stores every dense kernel as [outputs, inputs].
- KerasHub splits the attention kernels by head: [H, A, D] for query, key and value, [A, D, H] for
  the output; the numbers lie in memory in the same order as ours, so a reshape converts.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from official_bert.backend.variables import named_variables


@dataclasses.dataclass(frozen=True)
class Names:
    """One variable: the part of the model it belongs to, and its name in every format."""

    part: str
    ours: str
    google: str | None
    huggingface: str | None
    keras_hub: str | None


def _rows(part: str, *rows: tuple[str | None, ...]) -> list[Names]:
    return [Names(part, *row) for row in rows]


# fmt: off
_EMBEDDINGS = _rows(
    "encoder",
    ("embeddings/word_embeddings", "bert/embeddings/word_embeddings",
     "bert.embeddings.word_embeddings.weight", "token_embedding/embeddings"),
    ("embeddings/token_type_embeddings", "bert/embeddings/token_type_embeddings",
     "bert.embeddings.token_type_embeddings.weight", "segment_embedding/embeddings"),
    ("embeddings/position_embeddings", "bert/embeddings/position_embeddings",
     "bert.embeddings.position_embeddings.weight", "position_embedding/embeddings"),
    ("embeddings/norm/gamma", "bert/embeddings/LayerNorm/gamma",
     "bert.embeddings.LayerNorm.weight", "embeddings_layer_norm/gamma"),
    ("embeddings/norm/beta", "bert/embeddings/LayerNorm/beta",
     "bert.embeddings.LayerNorm.bias", "embeddings_layer_norm/beta"),
)

# Layers of a block, without the last component of the name.
_BLOCK_LAYERS = (
    ("attention/query", "attention/self/query", "attention.self.query",
     "self_attention_layer/query"),
    ("attention/key", "attention/self/key", "attention.self.key", "self_attention_layer/key"),
    ("attention/value", "attention/self/value", "attention.self.value",
     "self_attention_layer/value"),
    ("attention/output", "attention/output/dense", "attention.output.dense",
     "self_attention_layer/attention_output"),
    ("attention_norm", "attention/output/LayerNorm", "attention.output.LayerNorm",
     "self_attention_layer_norm"),
    ("intermediate", "intermediate/dense", "intermediate.dense", "feedforward_intermediate_dense"),
    ("output", "output/dense", "output.dense", "feedforward_output_dense"),
    ("output_norm", "output/LayerNorm", "output.LayerNorm", "feedforward_layer_norm"),
)

_POOLER = _rows(
    "pooler",
    ("pooler/kernel", "bert/pooler/dense/kernel", "bert.pooler.dense.weight",
     "pooled_dense/kernel"),
    ("pooler/bias", "bert/pooler/dense/bias", "bert.pooler.dense.bias", "pooled_dense/bias"),
)

_MASKED_LM = _rows(
    "masked_lm",
    ("masked_lm/transform/kernel", "cls/predictions/transform/dense/kernel",
     "cls.predictions.transform.dense.weight", None),
    ("masked_lm/transform/bias", "cls/predictions/transform/dense/bias",
     "cls.predictions.transform.dense.bias", None),
    ("masked_lm/norm/gamma", "cls/predictions/transform/LayerNorm/gamma",
     "cls.predictions.transform.LayerNorm.weight", None),
    ("masked_lm/norm/beta", "cls/predictions/transform/LayerNorm/beta",
     "cls.predictions.transform.LayerNorm.bias", None),
    ("masked_lm/bias", "cls/predictions/output_bias", "cls.predictions.bias", None),
)

_NEXT_SENTENCE = _rows(
    "next_sentence",
    ("next_sentence/kernel", "cls/seq_relationship/output_weights",
     "cls.seq_relationship.weight", None),
    ("next_sentence/bias", "cls/seq_relationship/output_bias", "cls.seq_relationship.bias", None),
)
# fmt: on


class HeadNames(NamedTuple):
    """A fine-tuned head in other libraries, in all of them one dense layer."""

    google: str | None  # prefix of its variables; None: the original has no checkpoint of it
    huggingface: str  # name of the layer
    classes: str  # end of the names of Hugging Face's classes that have it
    outputs: int = 0  # width of its output; 0: number of labels


FINE_TUNED = {
    "classification": HeadNames("", "classifier", "ForSequenceClassification"),
    "span": HeadNames("cls/squad/", "qa_outputs", "ForQuestionAnswering", 2),
    "multiple_choice": HeadNames(None, "classifier", "ForMultipleChoice", 1),
    "tagging": HeadNames(None, "classifier", "ForTokenClassification"),
}


def variable_names(num_hidden_layers: int, head: str) -> list[Names]:
    """Return the rows of the table for a model of this depth with this head (see
    `model_settings.HEADS`)."""
    blocks = [row for i in range(num_hidden_layers) for row in _block(i)]
    rows = [*_EMBEDDINGS, *blocks, *_POOLER]
    if head == "pretraining":
        return rows + _MASKED_LM + _NEXT_SENTENCE
    if named := FINE_TUNED.get(head):
        for ours, google, torch in (("kernel", "weights", "weight"), ("bias", "bias", "bias")):
            of_google = None if named.google is None else f"{named.google}output_{google}"
            rows.append(
                Names(head, f"head/{ours}", of_google, f"{named.huggingface}.{torch}", None)
            )
    return rows


def rows_of(model, head: str) -> list[Names]:
    """Return the rows of the table for the variables that a model has.

    Variables that BERT has not are named by the transformer and by each objective.
    """
    encoder = getattr(model, "encoder", model)
    rows = variable_names(encoder.config.num_blocks, head)
    rows += _rows("encoder", *encoder.transformer.names)
    for one in getattr(model, "objectives", ()):
        rows += _rows(one.name, *one.names)
    variables = named_variables(model)
    return [row for row in rows if row.ours in variables]


def to_ours(format_name: str, names: Names, array: np.ndarray, shape) -> np.ndarray:
    """Convert a tensor of another format to the layout of our variable; float32.

    Raises:
      ValueError: its shape cannot be that variable's.
    """
    turned = _is_transposed(format_name, names)
    expected = tuple(shape)[::-1] if turned else tuple(shape)
    # KerasHub's split by heads is not known here, so only the size is checked.
    fits = array.size == np.prod(shape) if format_name == "keras_hub" else array.shape == expected
    if not fits:
        raise ValueError(f"has shape {list(array.shape)}, expected {list(expected)}")
    array = array.T if turned else array.reshape(shape)
    return np.ascontiguousarray(array.astype(np.float32))


def from_ours(format_name: str, names: Names, array: np.ndarray) -> np.ndarray:
    """Convert our variable to the layout of another format (KerasHub's before the split by
    heads)."""
    return np.ascontiguousarray(array.T if _is_transposed(format_name, names) else array)


def _is_transposed(format_name: str, names: Names) -> bool:
    if format_name == "google":
        return names.google.endswith("output_weights")
    return format_name == "huggingface" and names.ours.endswith("/kernel")


def _block(i: int) -> list[Names]:
    rows = []
    for ours, google, huggingface, keras_hub in _BLOCK_LAYERS:
        endings = ("gamma", "beta") if ours.endswith("norm") else ("kernel", "bias")
        for ending, torch_ending in zip(endings, ("weight", "bias"), strict=True):
            rows.append(
                Names(
                    "encoder",
                    f"layer_{i}/{ours}/{ending}",
                    f"bert/encoder/layer_{i}/{google}/{ending}",
                    f"bert.encoder.layer.{i}.{huggingface}.{torch_ending}",
                    f"transformer_layer_{i}/{keras_hub}/{ending}",
                )
            )
    return rows
