"""Bidirectional LSTMs: on the encoder in Tables 5 and 7, on word vectors in GLUE's baseline."""

import keras
from keras import ops


class BiLSTM(keras.layers.Layer):
    """A bidirectional LSTM over the real tokens, as wide as the encoder.

    Each direction is H / 2 wide, so that the concatenation has the width that heads expect.
    """

    def __init__(self, width: int, seed: int | None = None, **kwargs):
        super().__init__(**{"name": "bilstm", **kwargs})
        with keras.name_scope(self.name):
            # It has both directions. The name is a path in model.weights.h5, so it stays.
            self.layers_both = BidirectionalLSTM(width, _plus(seed, 10), self.dtype_policy)
            self.layers_both.build((None, None, width))
        self.built = True

    def call(self, sequence, input_mask):
        """Map [B, L, H], int32 [B, L] -> [B, L, H]."""
        return self.layers_both(sequence, mask=ops.cast(input_mask, "bool"))


class BidirectionalLSTM(keras.layers.Bidirectional):
    """Two LSTMs of width / 2 each, one read from either end: [B, L, any] -> [B, L, width].

    The ones of a mask stand together in every row; where the mask is 0, the output is 0. Training
    with TensorFlow on CPUs goes through `tensorflow_lstm`.

    Args:
      width: of the output, both directions together.
      seed: of the initial weights.
      dtype: policy.
    """

    def __init__(self, width: int, seed: int | None, dtype):
        def lstm(backwards):
            offset = 2 * int(backwards)
            return keras.layers.LSTM(
                width // 2,
                return_sequences=True,
                go_backwards=backwards,
                kernel_initializer=keras.initializers.GlorotUniform(_plus(seed, offset)),
                recurrent_initializer=keras.initializers.Orthogonal(seed=_plus(seed, offset + 1)),
                dtype=dtype,
                name="backward" if backwards else "forward",
            )

        super().__init__(lstm(False), backward_layer=lstm(True), name="bidirectional")

    def call(self, sequences, initial_state=None, mask=None, training=None):
        if training and mask is not None and keras.backend.backend() == "tensorflow":
            from official_bert.backend import tensorflow_lstm

            if tensorflow_lstm.on_processors():
                cells = self.forward_layer.cell, self.backward_layer.cell
                return tensorflow_lstm.bidirectional_lstm(sequences, mask, *cells)
        return super().call(sequences, initial_state, mask, training)


def _plus(seed, number):
    return None if seed is None else seed + number
