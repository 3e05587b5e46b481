"""The shape of BERT's successors: six fields that BERT does not have. Needs no Keras."""

import dataclasses
from typing import ClassVar

from official_bert.common.errors import UserError, check_choice
from official_bert.config import BertConfig

POOLER_ACTIVATIONS = ("tanh", "gelu", "relu", "none")


@dataclasses.dataclass(frozen=True)
class SuccessorConfig(BertConfig):
    """A `BertConfig` with six more fields, each with BERT's value as default.

    Attributes:
      embedding_size: width of the embedding tables, of their normalisation and of the
        language-model head, with a dense layer to `hidden_size` (ALBERT, ELECTRA); 0: as wide as
        the blocks, without that layer.
      num_hidden_groups: blocks with weights of their own, each used for as many layers in a row
        (ALBERT: 1); 0: every layer is one. Divides `num_hidden_layers`.
      pooler_activation: of the pooler's dense layer; "none": there is no such layer, the pooled
        output is the summary token's vector (ELECTRA, DistilBERT).
      embedding_norm: whether the sum of the embeddings is normalised; not in OpenAI GPT.
      prediction_transform: whether the language-model head has a dense layer, a normalisation and a
        bias beside the token table; OpenAI GPT's is the table alone.
      norm_first: sub-layers read what is normalised, and one more normalisation follows the last
        block (GPT-2); the layers that end a sub-layer begin smaller by the root of their number.

    Raises:
      UserError: as `BertConfig`, or the fields exclude each other.
    """

    embedding_size: int = 0
    num_hidden_groups: int = 0
    pooler_activation: str = "tanh"
    embedding_norm: bool = True
    prediction_transform: bool = True
    norm_first: bool = False

    transformer: ClassVar[str] = "experiments.beyond.common.layers:Successor"
    language_model_head: ClassVar[str] = "experiments.beyond.common.layers:head_of"
    compared: ClassVar[str] = ""  # which encoder it is where BERT is only compared with it

    @staticmethod
    def of_google(fields):
        if fields.get("embedding_size") != fields["hidden_size"]:
            return fields
        # There is no dense layer between tables and blocks then.
        return {name: value for name, value in fields.items() if name != "embedding_size"}

    def __post_init__(self):
        super().__post_init__()
        for name in ("embedding_size", "num_hidden_groups"):
            if getattr(self, name) < 0:
                raise UserError(f"BertConfig.{name} must not be negative: {getattr(self, name)}")
        if self.num_hidden_layers % self.num_blocks:
            raise UserError(
                f"BertConfig.num_hidden_groups ({self.num_hidden_groups}) must divide "
                f"num_hidden_layers ({self.num_hidden_layers})"
            )
        if not self.prediction_transform and (
            self.embedding_size or self.attention_direction != "left_to_right"
        ):
            raise UserError(
                "BertConfig.prediction_transform=False is for OpenAI GPT: attention_direction "
                '"left_to_right", and tables as wide as the blocks (embedding_size 0)'
            )
        if self.norm_first and self.compared:
            raise UserError(f"BertConfig.norm_first is for Transformers, not for {self.compared}")
        check_choice("BertConfig.pooler_activation", self.pooler_activation, POOLER_ACTIVATIONS)

    @property
    def unserved(self) -> str:
        return self.compared or "an encoder of GPT-2's (norm_first)" * self.norm_first

    @property
    def embedding_width(self) -> int:
        return self.embedding_size or self.one_direction.hidden_size

    @property
    def one_direction(self) -> BertConfig:
        """The encoder of which a shallow concatenation has two; others are one themselves."""
        return self

    @property
    def num_blocks(self) -> int:
        return self.num_hidden_groups or self.num_hidden_layers

    @property
    def num_parameters(self) -> int:
        one, narrow = self.one_direction, self.embedding_width
        width, inner = one.hidden_size, one.intermediate_size
        rows = self.vocab_size + self.type_vocab_size + self.max_position_embeddings
        embeddings = (rows + 2 * self.embedding_norm) * narrow
        embeddings += (narrow + 1) * width if self.embedding_size else 0
        block = 4 * (width * width + width) + 2 * width * inner + inner + width + 4 * width
        blocks = self.num_blocks * (self.hidden_size // width) * block
        width = self.hidden_size
        pooler = 0 if self.pooler_activation == "none" else width * width + width
        return embeddings + blocks + pooler + 2 * width * self.norm_first

    def encoder_flops(self, sequences: int, length: int) -> float:
        one = self.one_direction
        layers = self.num_hidden_layers * (self.hidden_size // one.hidden_size)
        projection = 2 * self.embedding_size * one.hidden_size
        return float(sequences) * length * (one.block_flops(length) * layers + projection)

    def head_flops(self, predictions: int) -> float:
        transform = self.one_direction.hidden_size if self.prediction_transform else 0
        return float(predictions) * 2 * self.embedding_width * (transform + self.vocab_size)


def not_a_transformer(config: BertConfig) -> str:
    """Return the name of an encoder that is not a single Transformer; "" for one that is."""
    return getattr(config, "compared", "")


def check_plain(bert: BertConfig, system: str) -> None:
    """Raise UserError where a shape has fields that a system of BERT's own parts does not read."""
    own = {field.name for field in dataclasses.fields(BertConfig)}
    if others := [name for name in bert.changes() if name not in own]:
        raise UserError(f"--config.bert: {system} has a BERT's parts and no {', '.join(others)}")
