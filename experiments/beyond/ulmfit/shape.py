"""The shape of an AWD-LSTM, ULMFiT's encoder; needs no Keras."""

import dataclasses
import itertools
from typing import ClassVar

from experiments.beyond.common.shape import SuccessorConfig
from official_bert.common.errors import UserError


@dataclasses.dataclass(frozen=True)
class AwdLstmConfig(SuccessorConfig):
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
    # A BERT is none where the field is absent.
    recurrent: bool = dataclasses.field(default=True, metadata={"absent": False})

    transformer: ClassVar = "experiments.beyond.ulmfit.layers:AWDLSTM"
    compared: ClassVar = "an AWD-LSTM"

    def __post_init__(self):
        for name in (*vars(type(self))["__annotations__"], "num_hidden_groups"):
            if getattr(self, name) != getattr(type(self), name):
                fixed = getattr(type(self), name)
                raise UserError(f"BertConfig.{name} is {fixed!r} in {self.compared}")
        super().__post_init__()

    @property
    def widths(self) -> list[int]:
        """Widths of what the first LSTM reads, and of what each writes."""
        inner = [self.intermediate_size] * (self.num_hidden_layers - 1)
        return [self.hidden_size, *inner, self.hidden_size]

    @property
    def num_parameters(self) -> int:
        pairs = itertools.pairwise(self.widths)
        return self.vocab_size * self.hidden_size + sum(4 * b * (a + b + 1) for a, b in pairs)

    def encoder_flops(self, sequences: int, length: int) -> float:
        pairs = itertools.pairwise(self.widths)
        return 2.0 * sequences * length * sum(4 * b * (a + b) for a, b in pairs)
