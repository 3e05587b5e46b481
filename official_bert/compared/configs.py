"""The sizes of encoders that BERT is only compared with; needs neither Keras nor TensorFlow.

Their files are `bert_config.json` too: what they say that no BERT does tells which it is
(`extension`).
"""

import dataclasses
import itertools
from typing import ClassVar

from official_bert.common.errors import UserError
from official_bert.config import BertConfig

SHALLOW = "shallow_concatenation"
# What a shallow concatenation has twice.
_SPLIT = ("hidden_size", "num_attention_heads", "intermediate_size")


@dataclasses.dataclass(frozen=True)
class ShallowConfig(BertConfig):
    """Two Transformers on the same embeddings, which section 5.1 argues against, as in ELMo: one
    half of every vector reads left to right, the other right to left, in blocks that never meet.
    Sizes are those of both together.

    Raises:
      UserError: as `BertConfig`, or a size is odd.
    """

    attention_direction: str = SHALLOW

    directions: ClassVar = (SHALLOW,)
    parts: ClassVar = "official_bert.compared.shallow_concatenation:Shallow"
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
        """Two encoders of a shape."""
        both = {name: 2 * getattr(one, name) for name in _SPLIT}
        return cls(**dataclasses.asdict(one) | both | {"attention_direction": SHALLOW})

    @property
    def one_direction(self) -> BertConfig:
        half = {name: getattr(self, name) // 2 for name in _SPLIT}
        direction = {"attention_direction": "left_to_right"}
        return BertConfig(**dataclasses.asdict(self) | half | direction)


@dataclasses.dataclass(frozen=True)
class AwdLstmConfig(BertConfig):
    """An AWD-LSTM (Merity et al. 2018), the encoder of ULMFiT: blocks are LSTMs that read left to
    right, `intermediate_size` wide but for the last, which is `hidden_size` wide. There are no
    positions, no heads, no activation.
    """

    attention_direction: str = "left_to_right"
    num_attention_heads: int = 1
    type_vocab_size: int = 0
    embedding_norm: bool = False
    prediction_transform: bool = False
    pooler_activation: str = "none"
    recurrent: bool = True

    parts: ClassVar = "official_bert.compared.awd_lstm:AWDLSTM"
    compared: ClassVar = "an AWD-LSTM"
    equally_wide: ClassVar = False

    def __post_init__(self):
        for name in (*vars(type(self))["__annotations__"], "num_hidden_groups"):
            if getattr(self, name) != getattr(type(self), name):
                fixed = getattr(type(self), name)
                raise UserError(f"BertConfig.{name} is {fixed!r} in {self.compared}")
        super().__post_init__()

    @property
    def widths(self) -> list[int]:
        """What the first LSTM reads, and what each writes."""
        inner = [self.intermediate_size] * (self.num_hidden_layers - 1)
        return [self.hidden_size, *inner, self.hidden_size]

    @property
    def num_parameters(self) -> int:
        pairs = itertools.pairwise(self.widths)
        return self.vocab_size * self.hidden_size + sum(4 * b * (a + b + 1) for a, b in pairs)

    def encoder_flops(self, sequences: int, length: int) -> float:
        pairs = itertools.pairwise(self.widths)
        return 2.0 * sequences * length * sum(4 * b * (a + b) for a, b in pairs)
