"""The blocks of an AWD-LSTM (Merity et al. 2018, "Regularizing and Optimizing LSTM Language
Models"), the encoder of ULMFiT: LSTMs whose recurrent weights are dropped in training, and whose
output is dropped alike at every token."""

import keras
from keras import ops

from experiments.beyond.common.layers import Successor, SuccessorEmbeddings
from experiments.beyond.ulmfit.shape import AwdLstmConfig
from official_bert.common.errors import UserError
from official_bert.layers import LayerNorm, dense
from official_bert.randomness import dropout, fold_in


def locked_dropout(x, rate: float, seed):
    """Return `dropout` that zeroes the same numbers of every token of a row: [B, L, H] -> [B, L, H]
    (Gal and Ghahramani 2016)."""
    if seed is None or rate == 0:
        return x
    return x * dropout(ops.ones_like(x[:, :1]), rate, seed)


class AWDLSTM(Successor):
    """LSTMs from left to right, on tables without positions."""

    def embeddings(self, initializer, **kwargs):
        return SuccessorEmbeddings(
            self.config, initializer, positions=False, dropout=locked_dropout, **kwargs
        )

    def block(self, number, initializer, **kwargs):
        return LSTMBlock(self.config, number, initializer.seed, **kwargs)


class PooledBlock(keras.layers.Layer):
    """The first of the two blocks of ULMFiT's classifier (Howard and Ruder 2018, section 3.3), and
    the normalisation of the second: dense, 50 wide, ReLU.

    The original normalises over the rows of a batch. Then the loss would depend on how a batch is
    divided among devices and micro-batches; here each text is normalised by itself.
    """

    units = 50

    def __init__(self, config: AwdLstmConfig, width: int, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.dropout_rate, policy = config.hidden_dropout_prob, self.dtype_policy
        with keras.name_scope(self.name):
            self.norm = LayerNorm(config, width, dtype=policy, name="norm")
            options = {"cls": keras.layers.Dense, "activation": "relu"}
            initializer = keras.initializers.HeNormal(seed)
            self.dense = dense(width, self.units, initializer, policy, "dense", **options)
            self.last_norm = LayerNorm(config, self.units, dtype=policy, name="last_norm")
        self.built = True

    def call(self, x, seed=None):
        """Map [B, width] -> [B, 50]."""
        return self.last_norm(self.dense(dropout(self.norm(x), self.dropout_rate, seed)))


class LSTMBlock(keras.layers.Layer):
    """An LSTM that reads from left to right; as a block, it stands in `TransformerBlock`'s place.

    A recurrent weight is kept or dropped for a whole step of training, with the rate
    `attention_probs_dropout_prob`: it too is a dropout of what tokens learn from others.

    Args:
      config: its sizes.
      number: of the block, from 0: the last is as wide as the tables.
      seed: `keras.random.SeedGenerator` of the initial weights, uniform in +-1 / sqrt(width).
    """

    def __init__(self, config: AwdLstmConfig, number: int, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.dropout_rate = config.hidden_dropout_prob
        self.weight_dropout_rate = config.attention_probs_dropout_prob
        inputs, self.width = config.widths[number : number + 2]
        bound = self.width**-0.5
        uniform = keras.initializers.RandomUniform(-bound, bound, seed=seed)

        def weights(name, *shape):
            return self.add_weight(name=name, shape=(*shape, 4 * self.width), initializer=uniform)

        self.kernel = weights("kernel", inputs)
        self.recurrent_kernel = weights("recurrent_kernel", self.width)
        self.bias = weights("bias")
        self.built = True

    def call(self, x, attention_bias=None, seed=None, return_attention=False):
        """Map [B, L, inputs] -> [B, L, width]. The bias is not read: padding stands behind the
        text.

        Raises:
          UserError: attention is asked for.
        """
        if return_attention:
            raise UserError("an AWD-LSTM pays no attention; what needs it is for Transformers")
        recurrent = ops.convert_to_tensor(self.recurrent_kernel)
        recurrent = dropout(recurrent, self.weight_dropout_rate, fold_in(seed, 0))
        rows = ops.transpose(x, (1, 0, 2))
        weights = (ops.convert_to_tensor(w) for w in (self.kernel, recurrent, self.bias))
        written = ops.transpose(_lstm()(rows, *weights), (1, 0, 2))
        return locked_dropout(written, self.dropout_rate, fold_in(seed, 1))


def _lstm():
    if keras.backend.backend() != "tensorflow":
        return lstm
    from official_bert.backend import tensorflow_lstm

    return tensorflow_lstm.lstm


def lstm(x, kernel, recurrent_kernel, bias):
    """Map [L, B, I] -> [L, B, U]; gates in Keras' order: what enters, what stays, what is new, what
    leaves."""

    def step(state, read):
        cells, output = state
        gates = read + ops.matmul(output, recurrent_kernel)
        entering, staying, new, leaving = ops.split(gates, 4, axis=-1)
        cells = ops.sigmoid(staying) * cells + ops.sigmoid(entering) * ops.tanh(new)
        output = ops.sigmoid(leaving) * ops.tanh(cells)
        return (cells, output), (cells, output)  # Keras wants the same of both

    read = ops.matmul(x, kernel) + bias  # of all tokens at once
    nothing = ops.zeros((ops.shape(x)[1], recurrent_kernel.shape[0]), dtype=read.dtype)
    _, (_, written) = ops.scan(step, (nothing, nothing), read)
    return written
