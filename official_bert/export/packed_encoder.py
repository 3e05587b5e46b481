"""The encoder and its heads for inference: the same numbers as `BertEncoder`, without padding.

Dense layers and normalisation, nine tenths of the work at BERT's lengths, do not care where one
text ends and the next begins: they run over the tokens of several rows together, [N, H]. Only
attention looks at rows, so only there tokens are spread to [B, L], L being the longest row rounded
up to a multiple of eight. Large batches go through in groups of rows of similar length. On batches
of mixed length this takes a fraction of the time of padding everything (benchmarks/serving.py); on
one text it costs nothing. Variables are plain `tf.Variable`s, so that a SavedModel holds no trace
of Keras.
"""

import tensorflow as tf

from official_bert.backend.variables import array, query_key_value
from official_bert.export.answers import Answers
from official_bert.layers import attention_bias
from official_bert.tokenization.graph.in_graph_packing import (
    Packed,
    PackedRows,
    longest,
    positions_in_rows,
)

# Tokens that run through the blocks together. With more, every operation allocates and fills tens
# of megabytes; with fewer, the products lose speed.
_GROUP_TOKENS = 768


class PackedEncoder(tf.Module):
    """Embeddings, blocks and pooler of a `BertEncoder`, as a function of `Packed` tokens.

    Args:
      encoder: the trained encoder; its weights are copied.
      precision: "float32", or "bfloat16" to keep tables and matrices in half the bytes and multiply
        in bfloat16. Normalisation and the residual sum are float32 in both.
      transpose: how tensors are transposed; by default as TensorFlow does it fastest on CPUs.
    """

    def __init__(self, encoder, precision: str = "float32", transpose=None):
        super().__init__(name="encoder")
        self.config = encoder.config
        self.dtype = tf.as_dtype(precision)
        embeddings = encoder.embeddings
        self.word_embeddings = self._table(embeddings.word_embeddings, "word_embeddings")
        segments = embeddings.token_type_embeddings
        self.segment_embeddings = None if segments is None else self._table(segments, "token_type")
        self.projection = embeddings.projection and PackedDense(embeddings.projection, self.dtype)
        self.position_embeddings = self._table(embeddings.position_embeddings, "position")
        self.embedding_norm = embeddings.norm and Norm(embeddings.norm)
        transpose = transpose or _transpose
        self.blocks = [
            _Block(block, encoder.config, self.dtype, transpose) for block in encoder.blocks
        ]
        self.pooler = encoder.pooler and PackedDense(encoder.pooler, self.dtype)
        self._pooler_activation = self.pooler and encoder.pooler.activation.__name__

    def encode(self, packed: Packed, read=None, parts: int = 1) -> tf.Tensor:
        """Run the blocks; return the last layer, or what `read` makes of the hidden states.

        Rows go through in groups of similar length (see `_groups`), so that tensors stay within the
        caches and attention has little padding.

        Args:
          packed: tokens of all rows.
          read: function from the `num_hidden_layers` + 1 hidden states [n, H] of a group of n
            tokens (the embedding output first) to the [n, parts * H] that are wanted.
          parts: see `read`.

        Returns:
          float32 [N, parts * H], in the order of `packed`.
        """
        read = read or (lambda states: states[-1])
        count, group, places = _groups(packed)
        width = parts * self.config.hidden_size
        done = tf.TensorArray(
            tf.float32, size=count, infer_shape=False, element_shape=[None, width]
        )

        def step(i, done):
            tokens = group(i)
            return i + 1, done.write(i, read(self.hidden_states(tokens, PackedRows(tokens))))

        _, done = tf.while_loop(
            lambda i, _: i < count, step, [tf.constant(0), done], parallel_iterations=1
        )
        return tf.gather(done.concat(), places)

    def hidden_states(self, packed: Packed, rows: PackedRows) -> list[tf.Tensor]:
        """Return the `num_hidden_layers` + 1 states of all tokens at once, float32 [N, H] each."""
        x = tf.cast(tf.gather(self.word_embeddings, packed.ids), tf.float32)
        if self.segment_embeddings is not None:
            segments = tf.minimum(packed.segments, self.config.type_vocab_size - 1)
            x += tf.cast(tf.gather(self.segment_embeddings, segments), tf.float32)
        x += tf.cast(tf.gather(self.position_embeddings, packed.positions), tf.float32)
        x = self.embedding_norm(x) if self.embedding_norm else x
        states = [self.projection(x) if self.projection else x]
        bias = attention_bias(rows.mask, self.config.attention_direction, self.dtype.name)
        for layer in range(self.config.num_hidden_layers):
            states.append(self.blocks[self.config.block_of(layer)](states[-1], rows, bias))
        return states

    def summary_token(self, sequence, packed: Packed):
        """Map [N, H] -> [B, H]: the vector of [CLS]; in a left-to-right model of the last token."""
        if self.config.attention_direction == "left_to_right":
            return tf.gather(sequence, packed.row_starts + packed.row_lengths - 1)
        return tf.gather(sequence, packed.row_starts)

    def pooled(self, sequence, packed: Packed):
        """Map [N, H] -> [B, H], through the pooler."""
        return self.pool(self.summary_token(sequence, packed))

    def pool(self, summary):
        """Apply the pooler: [B, H] -> [B, H]."""
        if self.pooler is None:
            return summary
        functions = {"tanh": tf.tanh, "relu": tf.nn.relu, "gelu": tf.nn.gelu}
        return functions[self._pooler_activation](self.pooler(summary))

    def _table(self, weights, name):
        return variable(weights, self.dtype, name)


def _groups(packed: Packed):
    """Divide rows, the longest first, into groups of about `_GROUP_TOKENS` tokens.

    Returns:
      count: int32, number of groups.
      group: function from a number below count to the group's tokens, `Packed`.
      places: int32 [N], where the tokens of `packed` stand in the groups one after another.
    """
    order = tf.argsort(packed.row_lengths, direction="DESCENDING")
    lengths = tf.gather(packed.row_lengths, order)
    starts = tf.gather(packed.row_starts, order)
    before = tf.cumsum(lengths, exclusive=True)  # tokens in the rows before, in the new order
    # No row is longer than a group, so in each group some row begins.
    size = tf.maximum(_GROUP_TOKENS, longest(lengths))
    count = longest(before // size + 1)

    def group(i):
        first, last = tf.unstack(tf.searchsorted(before, tf.stack([i * size, (i + 1) * size])))
        taken = lengths[first:last]
        tokens = tf.repeat(starts[first:last], taken) + positions_in_rows(taken)
        columns = (packed.ids, packed.segments, packed.positions)
        return Packed(*(tf.gather(column, tokens) for column in columns), taken)

    begin = tf.scatter_nd(order[:, None], before, tf.shape(before))  # [B], in the old order
    places = tf.repeat(begin, packed.row_lengths) + positions_in_rows(packed.row_lengths)
    return count, group, places


class PackedDense(tf.Module):
    """A dense layer's kernel and bias; the result has the dtype of the kernel."""

    def __init__(self, layer, dtype, name="dense"):
        super().__init__(name=name)
        self.kernel = variable(layer.kernel, dtype, "kernel")
        self.bias = variable(layer.bias, dtype, "bias")

    def __call__(self, x):
        return tf.nn.bias_add(tf.matmul(tf.cast(x, self.kernel.dtype), self.kernel), self.bias)


class Norm(tf.Module):
    """Layer normalisation over the last axis, in float32."""

    def __init__(self, layer):
        super().__init__(name="norm")
        self.gamma = variable(layer.gamma, tf.float32, "gamma")
        self.beta = variable(layer.beta, tf.float32, "beta")
        self.epsilon = layer.epsilon

    def __call__(self, x):
        mean = tf.reduce_mean(x, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(x, mean), axis=-1, keepdims=True)
        scale = tf.math.rsqrt(variance + self.epsilon) * self.gamma
        return x * scale + (self.beta - mean * scale)


class _Block(tf.Module):
    """Self-attention and feed-forward, each followed by residual and normalisation."""

    def __init__(self, block, config, dtype, transpose):
        super().__init__(name="block")
        self._transpose = transpose
        attention = block.attention
        self.heads = config.num_attention_heads
        self.head_width = config.hidden_size // config.num_attention_heads
        self.dtype = dtype
        kernel, bias = query_key_value(attention)
        self.qkv_kernel = variable(kernel, dtype, "qkv_kernel")
        self.qkv_bias = variable(bias, dtype, "qkv_bias")
        self.attention_output = PackedDense(attention.output_dense, dtype, "attention_output")
        self.attention_norm = Norm(block.attention_norm)
        self.intermediate = PackedDense(block.intermediate, dtype, "intermediate")
        self.activation = activation(config)
        self.output = PackedDense(block.output_dense, dtype, "output")
        self.output_norm = Norm(block.output_norm)

    def __call__(self, x, rows: PackedRows, bias):
        """Map [N, H] -> [N, H]; `bias` broadcasts to [B, A, L, L]."""
        x = self.attention_norm(x + tf.cast(self._attend(x, rows, bias), tf.float32))
        inner = self.activation(self.intermediate(x))
        return self.output_norm(x + tf.cast(self.output(inner), tf.float32))

    def _attend(self, x, rows, bias):
        qkv = tf.nn.bias_add(tf.matmul(tf.cast(x, self.dtype), self.qkv_kernel), self.qkv_bias)
        qkv = rows.spread(qkv)  # [B, L, 3H]
        batch, length = tf.shape(qkv)[0], tf.shape(qkv)[1]
        qkv = tf.reshape(qkv, [batch, length, 3, self.heads, self.head_width])
        query, key, value = tf.unstack(self._transpose(qkv, [2, 0, 3, 1, 4]))  # [B, A, L, D] each
        probabilities = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) + bias)
        context = self._transpose(tf.matmul(probabilities, value), [0, 2, 1, 3])  # [B, L, A, D]
        context = tf.reshape(context, [-1, self.heads * self.head_width])
        return self.attention_output(rows.collect(context))


def _transpose(x, order):
    """Transpose a tensor as integers of the same bits.

    For floats TensorFlow calls oneDNN, which takes 50 microseconds before it begins.
    """
    bits = {2: tf.int16, 4: tf.int32}[x.dtype.size]
    return tf.bitcast(tf.transpose(tf.bitcast(x, bits), order), x.dtype)


def activation(config):
    """Return the function that `hidden_act` and `gelu_form` name.

    GELU is written so that TensorFlow's graph optimiser finds it and runs it inside the product.
    """
    if config.hidden_act != "gelu":
        return {"relu": tf.nn.relu, "tanh": tf.tanh, "linear": tf.identity}[config.hidden_act]
    if config.gelu_form == "tanh":
        return lambda x: tf.nn.gelu(x, approximate=True)
    return lambda x: (0.5 * x) * (1.0 + tf.math.erf(x * 0.5**0.5))


def variable(weights, dtype, name) -> tf.Variable:
    return tf.Variable(tf.cast(array(weights), dtype), trainable=False, name=name)


class PackedAnswers(Answers):
    """`Answers` from packed tokens, computed with copies of the weights in TensorFlow variables.

    Args:
      loaded, head, settings: as for `Answers`.
      precision, transpose: as for `PackedEncoder`.

    Attributes:
      encoder: the `PackedEncoder`.
      parts: modules and variables that a SavedModel has to keep.
    """

    def __init__(self, loaded, head, settings, precision="float32", transpose=None):
        super().__init__(loaded, head, settings)
        self.encoder = PackedEncoder(loaded.encoder, precision, transpose)
        self.parts = [self.encoder]
        if head == "masked_words":
            words = self.model.masked_lm
            self._transform = PackedDense(words.transform, self.encoder.dtype)
            self._norm, self._bias = Norm(words.norm), variable(words.bias, tf.float32, "bias")
            self.parts += [self._transform, self._norm, self._bias]
        elif not self.reads_layers:
            self._scores = PackedDense(self.model.head, tf.float32)
            # Tracing a tracked Keras layer again would fail; the variables it reads are kept here.
            bilstm = self.model.bilstm.variables if self.model.bilstm else []
            self.parts += [self._scores, *(weight.value for weight in bilstm)]

    def answer_packed(self, packed: Packed, **more) -> tuple[dict, PackedRows]:
        """Return the outputs, and the `PackedRows` of the tokens.

        `more` holds further entries of `answer`'s `rows`.
        """
        rows = PackedRows(packed)
        encoded = self._encode_packed(packed, rows)
        return self.answer({"input_mask": tf.cast(rows.mask, tf.int32), **more}, encoded), rows

    def _encode_packed(self, packed, rows):
        more = {}
        if self.reads_layers:
            parts = 4 if self.settings.layers.startswith("concat") else 1
            width = self.config.hidden_size
            both = self.encoder.encode(
                packed, lambda s: tf.concat([self.joined(s), s[-1]], axis=1), parts + 1
            )
            vectors, sequence = tf.split(both, [parts * width, width], axis=1)
            more["vectors"] = rows.spread(vectors)
        else:
            sequence = self.encoder.encode(packed)
        pooled = tf.cast(self.encoder.pooled(sequence, packed), tf.float32)
        return {"sequence_output": rows.spread(sequence), "pooled_output": pooled, **more}

    def scores(self, vectors):
        rows, scores = self._scores.kernel.shape
        written = self._scores(tf.reshape(vectors, [-1, rows]))
        return tf.reshape(written, tf.concat([tf.shape(vectors)[:-1], [scores]], axis=0))

    def word_scores(self, vectors):
        # Keras' layer is not used, since LiteRT's converter does not recognise its GELU.
        x = self._transform(tf.reshape(vectors, [-1, self.config.hidden_size]))
        x = self._norm(tf.cast(activation(self.config)(x), tf.float32))
        table = self.encoder.word_embeddings
        scores = tf.matmul(tf.cast(x, table.dtype), table, transpose_b=True)
        scores = tf.cast(scores, tf.float32) + self._bias
        return tf.reshape(scores, [tf.shape(vectors)[0], tf.shape(vectors)[1], scores.shape[-1]])
