"""Sentence vectors: how `embed` makes one vector of a text from those of its tokens.

Pooling and what follows are those of Sentence-BERT (Reimers and Gurevych 2019) and of the library
sentence-transformers, whose folders say which of them a model was trained with. Needs Keras only
when it computes.
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from official_bert.common.errors import UserError
from official_bert.common.json_files import field, fields_of, list_of, shorten

POOLINGS = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
# Activations of the dense layer behind the pooling: class in torch.nn -> name in Keras.
ACTIVATIONS = {
    "Identity": "linear",
    "Tanh": "tanh",
    "ReLU": "relu",
    "GELU": "gelu",
    "Sigmoid": "sigmoid",
    "SiLU": "silu",
}
NORMALIZE = "normalize"
_LEAST = 1e-9  # smallest divisor


@dataclasses.dataclass(frozen=True)
class DenseStep:
    """A dense layer behind the pooling: activation(x @ kernel + bias)."""

    kernel: np.ndarray
    bias: np.ndarray | None
    activation: str

    def __call__(self, x):
        import keras
        from keras import ops

        x = ops.matmul(x, self.kernel)
        x = x if self.bias is None else x + self.bias
        if self.activation == "gelu":  # the exact form, as PyTorch's
            return ops.gelu(x, approximate=False)
        return keras.activations.get(self.activation)(x)

    def __str__(self) -> str:
        return f"a dense layer to {self.kernel.shape[1]} ({self.activation})"


@dataclasses.dataclass(frozen=True)
class SentenceVectors:
    """The way in which the vector of a text is made.

    Attributes:
      poolings: names of `POOLINGS`; the vectors of several are concatenated.
      steps: further steps in order: `NORMALIZE` (to length 1) or a `DenseStep`.
      lower_case: texts are lower-cased before they are tokenised, letter by letter.
      prompts: {name: text that is put before each text}.
      prompt: name of the default prompt.
      include_prompt: whether the prompt's tokens are pooled too.
      refused: why the folder's own way cannot be computed here; "" where it can.
    """

    poolings: tuple[str, ...] = ("mean",)
    steps: tuple[Any, ...] = ()
    lower_case: bool = False
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    prompt: str = ""
    include_prompt: bool = True
    refused: str = ""

    def __str__(self) -> str:
        parts = [" and ".join(self.poolings), *map(str, self.steps)]
        parts += ["of lower-cased texts"] * self.lower_case
        parts += [
            f"with {text!r} before each text" for text in [self.prompts.get(self.prompt)] if text
        ]
        return ", ".join(parts)

    def prepared(self, text: str, prompt: str) -> str:
        """Return the text that the tokeniser gets: with the prompt, lower-cased where asked."""
        text = prompt + text
        # Letter by letter as the library does: a word's last sigma is not a special case.
        return "".join(map(str.lower, text)) if self.lower_case else text

    def pooled(self, states, input_mask, of_prompt: int = 0):
        """Return the vectors of texts.

        Args:
          states: float32 [B, L, H], the tokens' vectors.
          input_mask: int32 [B, L].
          of_prompt: how many tokens of each row belong to the prompt and are not pooled.

        Returns:
          float32 [B, D].
        """
        from keras import ops

        length = ops.shape(input_mask)[1]
        counted = ops.logical_and(input_mask > 0, ops.arange(length) >= of_prompt)
        vectors = [_pool(states, counted, pooling) for pooling in self.poolings]
        x = ops.concatenate(vectors, axis=-1)
        for step in self.steps:
            x = normalized(x) if step == NORMALIZE else step(x)
        return x

    def settings(self) -> dict[str, Any]:
        """Return the field "embedding" of `model.json`: all but the weights of dense layers."""
        steps = [step if step == NORMALIZE else str(step) for step in self.steps]
        alone = dataclasses.replace(self, steps=(), poolings=())
        return {**dataclasses.asdict(alone), "poolings": list(self.poolings), "steps": steps}

    def export_settings(self) -> dict[str, Any]:
        """Return the fields of `ServingSettings` by which an exported model makes the same vectors.

        Raises:
          UserError: it cannot.
        """
        pooling = self.poolings[0] if len(self.poolings) == 1 else ""
        others = self.lower_case or self.prompts.get(self.prompt) or self.refused
        if pooling not in ("cls", "mean") or self.steps not in ((), (NORMALIZE,)) or others:
            raise UserError(
                f"the vectors of this model are {self.refused or self}; an export has cls or mean, "
                "and the length of 1, of texts as they are: embed() makes the others. To export "
                'those all the same, remove "embedding" from its model.json'
            )
        return {"pooling": pooling, "normalize": bool(self.steps)}

    @classmethod
    def from_settings(cls, fields: dict[str, Any], where: str) -> "SentenceVectors":
        """Return the `SentenceVectors` that `settings` described.

        Raises:
          UserError: a field is wrong.
        """
        for name in ("poolings", "steps"):
            list_of(fields, name, str, where)
        vectors = cls(**fields_of(cls, fields, where))
        if not set(vectors.poolings) <= {*POOLINGS} or not vectors.poolings:
            raise UserError(f"{where}: poolings: each is one of {', '.join(POOLINGS)}")
        check_prompts(vectors.prompts, vectors.prompt, where)
        if lost := [step for step in vectors.steps if step != NORMALIZE]:
            reason = f"{', '.join(lost)} is not kept in a model folder; load the original one"
            vectors = dataclasses.replace(vectors, refused=vectors.refused or reason)
        return vectors


def check_prompts(prompts: dict[str, Any], default: Any, where: str | os.PathLike) -> None:
    """Raise UserError where a prompt is not a text, or the default's name is none of theirs."""
    for name in prompts:
        field(prompts, name, str, f"{where}: prompts")
    if default not in ["", *prompts]:
        raise UserError(f"{where}: the default {shorten(default)} is none of its prompts")


def normalized(x):
    """Return vectors [..., D] of length 1."""
    from keras import ops

    return x / ops.maximum(ops.norm(x, axis=-1, keepdims=True), 1e-12)


def _pool(states, counted, pooling: str):
    """Map [B, L, H], bool [B, L] -> [B, H]."""
    from keras import ops

    mask = ops.expand_dims(ops.cast(counted, states.dtype), -1)
    match pooling:
        case "cls":  # the first that counts
            first = ops.argmax(ops.cast(counted, "int32"), axis=1)
            return _at(states, first)
        case "lasttoken":
            length = ops.shape(counted)[1]
            last = length - 1 - ops.argmax(ops.flip(ops.cast(counted, "int32"), axis=1), axis=1)
            return _at(states * mask, last)
        case "max":
            return ops.max(ops.where(mask > 0, states, -np.inf), axis=1)
        case "weightedmean":
            places = ops.arange(1, ops.shape(counted)[1] + 1, dtype=states.dtype)
            mask = mask * ops.reshape(places, (1, -1, 1))
    count = ops.maximum(ops.sum(mask, axis=1), _LEAST)
    if pooling == "mean_sqrt_len_tokens":
        count = ops.sqrt(count)
    return ops.sum(states * mask, axis=1) / count


def _at(states, places):
    """Map [B, L, H], int [B] -> [B, H]."""
    from keras import ops

    return ops.take_along_axis(states, ops.reshape(places, (-1, 1, 1)), axis=1)[:, 0]
