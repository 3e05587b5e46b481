"""The parts of an encoder in which BERT's successors differ from it, and their head."""

import keras

from experiments.beyond.common.shape import SuccessorConfig
from official_bert.layers import Embeddings, LayerNorm, Transformer, TransformerBlock, dense
from official_bert.objectives.masked_lm import MaskedLMHead
from official_bert.randomness import dropout, fold_in


class Successor(Transformer):
    """The parts that a `SuccessorConfig` asks for."""

    config: SuccessorConfig
    # fmt: off
    names = (
        ("embeddings/projection/kernel", "bert/encoder/embedding_hidden_mapping_in/kernel",
         "bert.embeddings_project.weight", "embeddings_projection/kernel"),
        ("embeddings/projection/bias", "bert/encoder/embedding_hidden_mapping_in/bias",
         "bert.embeddings_project.bias", "embeddings_projection/bias"),
        ("last_norm/gamma", None, "bert.encoder.LayerNorm.weight", None),
        ("last_norm/beta", None, "bert.encoder.LayerNorm.bias", None),
    )
    # fmt: on

    def embeddings(self, initializer, **kwargs):
        return SuccessorEmbeddings(self.config, initializer, **kwargs)

    def block(self, number, initializer, **kwargs):
        kind = NormFirstBlock if self.config.norm_first else TransformerBlock
        return kind(self.config, initializer, **kwargs)

    def last_norm(self, **kwargs):
        return LayerNorm(self.config, **kwargs) if self.config.norm_first else None

    def pooler(self, initializer, **kwargs):
        activation = self.config.pooler_activation
        if activation == "none":
            return None
        return super().pooler(initializer, **kwargs, activation=activation)


class SuccessorEmbeddings(Embeddings):
    """Embeddings without the normalisation where `embedding_norm` is false (OpenAI GPT), and with a
    dense layer to the width of the blocks where `embedding_size` is the tables' own."""

    def __init__(self, config: SuccessorConfig, initializer, **kwargs):
        super().__init__(config, initializer, **kwargs)
        if config.embedding_size:
            width, policy = config.embedding_width, self.dtype_policy
            with keras.name_scope(self.name):
                self.projection = dense(
                    width, config.hidden_size, initializer, policy, "projection"
                )

    def normalization(self, config, width):
        return super().normalization(config, width) if config.embedding_norm else None

    def call(self, input_ids, segment_ids, seed=None, places=None):
        x = self.of_tables(input_ids, segment_ids, seed, places)
        return self.projection(x) if self.projection else x


class NormFirstBlock(TransformerBlock):
    """A block that normalises the input of each sub-layer, and not the sums (GPT-2)."""

    def __init__(self, config: SuccessorConfig, initializer, **kwargs):
        # Weights of the 2 L sums into the residual begin smaller.
        deviation = config.initializer_range * (2 * config.num_hidden_layers) ** -0.5
        last = keras.initializers.TruncatedNormal(stddev=deviation, seed=initializer.seed)
        super().__init__(config, initializer, last, **kwargs)

    def attend(self, x, attention_bias, seed=None, return_attention=False):
        read, seed_of_attention = self.attention_norm(x), fold_in(seed, 0)
        attended = self.attention(
            read, attention_bias, seed_of_attention, return_attention=return_attention
        )
        attended, scores = attended if return_attention else (attended, None)
        return x + dropout(attended, self.dropout_rate, fold_in(seed, 1)), scores

    def feed_forward(self, x, seed=None):
        fed = self.output_dense(self.activation(self.intermediate(self.output_norm(x))))
        return x + dropout(fed, self.dropout_rate, fold_in(seed, 2))


# A `.keras` file finds the weights of blocks by the name of their class.
NormFirstBlock.__name__ = TransformerBlock.__name__


def attend(block: TransformerBlock, x, attention_bias, kept, seed=None):
    """Return the first sub-layer of a block whose tokens see others beside themselves.

    Args:
      block: whose sub-layer it is.
      x: [B, L, H].
      attention_bias: broadcasts to [B, A, L, K].
      kept: its `with_those_before` takes the keys and values of x and returns those of the K
        tokens that x attends to.
    """
    norm, first = block.attention_norm, isinstance(block, NormFirstBlock)
    read = norm(x) if first else x
    query = block.attention.queries(read)
    key, value = kept.with_those_before(*block.attention.keys_values(read))
    attended, _ = block.attention.attend(query, key, value, attention_bias, fold_in(seed, 0))
    x = x + dropout(attended, block.dropout_rate, fold_in(seed, 1))
    return x if first else norm(x)


def head_of(config: SuccessorConfig, initializer, **kwargs) -> MaskedLMHead:
    """Return the language-model head of a shape: as wide as its tables, or the table alone."""
    if not config.prediction_transform:
        return TableHead(**kwargs)
    one = config.one_direction
    return MaskedLMHead(one, initializer, config.embedding_width, **kwargs)


class TableHead(MaskedLMHead):
    """A head that is the token table alone (OpenAI GPT)."""

    bias = None

    def __init__(self, **kwargs):
        keras.layers.Layer.__init__(self, **kwargs)
        self.built = True

    def transformed(self, x):
        return x
