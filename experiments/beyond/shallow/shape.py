"""The shape of a shallow concatenation, which BERT is only compared with; needs no Keras."""

import dataclasses
from typing import ClassVar

from experiments.beyond.common.shape import SuccessorConfig
from official_bert.common.errors import UserError
from official_bert.config import BertConfig

SHALLOW = "shallow_concatenation"
# Parts that a shallow concatenation has twice.
_SPLIT = ("hidden_size", "num_attention_heads", "intermediate_size")


@dataclasses.dataclass(frozen=True)
class ShallowConfig(SuccessorConfig):
    """Two Transformers on the same embeddings, which section 5.1 argues against, as in ELMo: one
    half of every vector reads left to right, the other right to left, in blocks that never meet.
    Sizes are those of both together.

    Raises:
      UserError: as `BertConfig`, or a size is odd.
    """

    attention_direction: str = SHALLOW

    language_models: ClassVar = {SHALLOW: "adjacent_tokens"}
    transformer: ClassVar = "experiments.beyond.shallow.layers:Shallow"
    compared: ClassVar = "a shallow concatenation"

    def __post_init__(self):
        super().__post_init__()
        for name in _SPLIT:
            if getattr(self, name) % 2:
                raise UserError(
                    f"BertConfig.{name} ({getattr(self, name)}) must be even: one half of it "
                    "reads left to right, the other right to left"
                )

    @classmethod
    def of_two(cls, one: BertConfig) -> "ShallowConfig":
        """Return two encoders of a shape."""
        both = {name: 2 * getattr(one, name) for name in _SPLIT}
        return cls(**dataclasses.asdict(one) | both | {"attention_direction": SHALLOW})

    @property
    def one_direction(self) -> BertConfig:
        half = {name: getattr(self, name) // 2 for name in _SPLIT}
        direction = {"attention_direction": "left_to_right"}
        return BertConfig.from_dict(dataclasses.asdict(self) | half | direction)
