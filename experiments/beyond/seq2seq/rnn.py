"""GRUs that read and write (Cho et al. 2014), which the Transformer was compared with, and the
attention that was added to them (Bahdanau, Cho, Bengio 2015).

One bidirectional GRU reads; one GRU writes, from its own state, the token before, and a context.
"rnn": the context is the encoder's last states, the same for every token. "rnn_attention": it is
the mean of the states of all tokens, weighed anew for each token that is written.
"""

import functools

import keras
from keras import ops

from experiments.beyond.seq2seq.text_to_text import TextToText
from official_bert import layers
from official_bert.layers import bias_of, softmax
from official_bert.objectives.masked_lm import language_model_head
from official_bert.randomness import SECOND_ENCODER, dropout, fold_in


class GRUEncoder(keras.layers.Layer):
    """A table of tokens and a bidirectional GRU.

    Args:
      config: BertConfig; its vocab_size, hidden_size (of either direction), hidden_dropout_prob and
        initializer_range count.
      seed: of the weights.
    """

    def __init__(self, config, seed=None, **kwargs):
        super().__init__(**{"name": "encoder", **kwargs})
        # One layer, whatever number of blocks a BERT of this configuration has.
        self.config, self.seed = config.replaced(num_hidden_layers=1), seed
        width = config.hidden_size
        with keras.name_scope(self.name):
            self.word_embeddings = table(self, config, seed)
            gru = keras.layers.GRU(
                width, return_sequences=True, dtype=self.dtype_policy, name="gru",
                kernel_initializer=keras.initializers.GlorotUniform(seed=seed),
                recurrent_initializer=keras.initializers.Orthogonal(seed=seed),
            )  # fmt: skip
            self.gru = keras.layers.Bidirectional(gru, dtype=self.dtype_policy, name="gru")
            self.gru.build((None, None, width))
        self.built = True

    def call(self, input_ids, input_mask, seed=None):
        """Map int32 [B, L] both -> states [B, L, 2 H], and the last of either direction [B, 2
        H]."""
        x = ops.cast(ops.take(self.word_embeddings, input_ids, axis=0), self.compute_dtype)
        x = dropout(x, self.config.hidden_dropout_prob, fold_in(seed, 0))
        states = self.gru(x, mask=input_mask > 0)
        last = ops.sum(ops.cast(input_mask, "int32"), axis=1)[:, None, None] - 1
        forward = ops.take_along_axis(states, last, axis=1)[:, 0, : self.config.hidden_size]
        return states, ops.concatenate([forward, states[:, 0, self.config.hidden_size :]], axis=-1)


class RNNSeq2Seq(TextToText):
    """GRUs that read and write.

    Args:
      encoder: a BertEncoder, whose configuration and dtype it takes, and nothing else.
      decoder: of `head.RNN_DECODERS`.
      **options: of `TextToText`.
    """

    def __init__(self, encoder, decoder="rnn_attention", **options):
        reader = GRUEncoder(encoder.config, options.get("seed"), dtype=encoder.dtype_policy)
        super().__init__(reader, decoder, **options)
        config, seed, policy = encoder.config, self.seed, self.dtype_policy
        width = config.hidden_size

        def dense(inputs, outputs, name):
            kernel = keras.initializers.GlorotUniform(seed=seed)
            return layers.dense(inputs, outputs, kernel, policy, name)

        with keras.name_scope(self.name):
            with keras.name_scope("decoder"):  # the reader has a table of that name too
                self.word_embeddings = table(self, config, None if seed is None else seed + 1)
            self.first_state = dense(2 * width, width, "first_state")
            self.cell = keras.layers.GRUCell(
                width, dtype=policy, name="cell",
                kernel_initializer=keras.initializers.GlorotUniform(seed=seed),
                recurrent_initializer=keras.initializers.Orthogonal(seed=seed),
            )  # fmt: skip
            with keras.name_scope("cell"):
                self.cell.build((None, 3 * width))
            self.query = None
            if decoder == "rnn_attention":
                self.query = dense(width, width, "query")
                self.key = dense(2 * width, width, "key")
                self.score = dense(width, 1, "score")
            self.readout = dense(4 * width, width, "readout")
            initializer = keras.initializers.TruncatedNormal(
                stddev=config.initializer_range, seed=seed
            )
            self.masked_lm = language_model_head(
                config, initializer, dtype=policy, name="masked_lm"
            )
        self.built = True

    def read(self, batch, seed=None):
        mask = ops.cast(batch["input_mask"], "int32")
        states, last = self.encoder(batch["input_ids"], mask, seed=seed)
        memory = {"last": last}
        if self.query:
            bias = bias_of(mask > 0, self.compute_dtype)
            memory |= {"states": states, "keys": self.key(states), "bias": bias}
        return memory

    def scores(self, memory, ids, seed=None):
        tokens = self._tokens(ids, seed)
        by_time = ops.transpose(tokens, (1, 0, 2))
        written = _scan(functools.partial(self._next, memory), self._first(memory), by_time)
        return self._scores(ops.transpose(written, (1, 0, 2)), tokens, seed)

    def begin(self, memory, rows, longest):
        return [self._first(memory)]

    def step(self, memory, tokens, place, state):
        token = self._tokens(tokens)
        state = self._next(memory, state[0], token)
        return self._scores(state[:, None], token[:, None])[:, 0], [state]

    def _tokens(self, ids, seed=None):
        x = ops.cast(ops.take(self.word_embeddings, ids, axis=0), self.compute_dtype)
        return dropout(x, self.encoder.config.hidden_dropout_prob, fold_in(seed, SECOND_ENCODER))

    def _first(self, memory):
        state = ops.tanh(self.first_state(memory["last"]))
        return ops.concatenate([state, ops.zeros_like(memory["last"])], axis=-1)

    def _next(self, memory, state, token):
        """Return the state after a token, [B, 3 H]: the GRU's, and the context that its state
        before asked for."""
        state, context = state[:, : token.shape[-1]], memory["last"]
        if self.query:
            alike = ops.tanh(memory["keys"] + self.query(state)[:, None])
            weights = softmax(self.score(alike)[..., 0] + memory["bias"])
            context = ops.matmul(weights[:, None], memory["states"])[:, 0]
        state, _ = self.cell(ops.concatenate([token, context], axis=-1), [state])
        return ops.concatenate([state, context], axis=-1)

    def _scores(self, written, tokens, seed=None):
        read = ops.tanh(self.readout(ops.concatenate([written, tokens], axis=-1)))
        rate = self.encoder.config.hidden_dropout_prob
        read = dropout(read, rate, fold_in(seed, SECOND_ENCODER + 1))
        return self.masked_lm(read, self.word_embeddings)


def _scan(step, state, rows):
    """Return the states after each row of [T, ...], [T, ...]; Keras' own scan has no fixed number
    of steps on TensorFlow, which XLA asks for."""
    if keras.backend.backend() != "tensorflow":
        return ops.scan(lambda state, row: (step(state, row),) * 2, state, rows)[1]
    import tensorflow as tf

    return tf.scan(step, rows, state)


def table(layer, config, seed):
    """Return the embedding table of a layer."""
    return layer.add_weight(
        name="word_embeddings",
        shape=(config.vocab_size, config.hidden_size),
        initializer=keras.initializers.TruncatedNormal(stddev=config.initializer_range, seed=seed),
        autocast=False,
    )
