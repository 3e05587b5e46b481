"""The parts of the encoder: embeddings, self-attention, the Transformer block, dropout.

Every layer creates its weights when it is constructed, since all widths are known from the
`BertConfig`. B is the batch size, L the sequence length, H the hidden size, A the number of
attention heads and D = H / A the width of a head.
"""

import functools

import keras
from keras import ops

from official_bert.backend import fused_attention
from official_bert.config import BertConfig
from official_bert.randomness import dropout, fold_in

# Added to the attention scores of forbidden positions: exp(-10000) is 0 in every float format.
MASKED_SCORE = -10000.0


class Embeddings(keras.layers.Layer):
    """Token + segment + position embeddings, layer normalisation, dropout (paper, Figure 2).

    Args:
      config, initializer: of the encoder.
      positions: whether there are position embeddings.
      dropout: a function like `randomness.dropout`.
    """

    projection = None  # successors project to the width of the blocks

    def __init__(self, config, initializer, positions=True, dropout=dropout, **kwargs):
        super().__init__(**kwargs)
        self.dropout_rate = config.hidden_dropout_prob
        self.dropout = dropout
        self.type_vocab_size = config.type_vocab_size
        width = config.embedding_width

        def table(name, rows):
            # Rows are looked up in float32 and cast afterwards: casting whole tables would cost
            # more than the lookup, and their gradients would be summed in half precision.
            return self.add_weight(
                name=name, shape=(rows, width), initializer=initializer, autocast=False
            )

        self.word_embeddings = table("word_embeddings", config.vocab_size)
        self.token_type_embeddings = None
        if config.type_vocab_size:
            self.token_type_embeddings = table("token_type_embeddings", config.type_vocab_size)
        self.position_embeddings = None
        if positions:
            self.position_embeddings = table("position_embeddings", config.max_position_embeddings)
        with keras.name_scope(self.name):
            self.norm = self.normalization(config, width)
        self.built = True

    def normalization(self, config, width):
        return LayerNorm(config, width, dtype=self.dtype_policy, name="norm")

    def call(self, input_ids, segment_ids, seed=None, places=None):
        """Map int32 [B, L], int32 [B, L] -> [B, L, H]. A seed means training, None inference.

        `places`, int32 [L] or [B, L], are the tokens' positions; None: from 0.
        """
        return self.of_tables(input_ids, segment_ids, seed, places)

    def of_tables(self, input_ids, segment_ids, seed=None, places=None):
        """Return [B, L, E], as wide as the tables."""
        x = ops.take(self.word_embeddings, input_ids, axis=0)  # [B, L, H]
        if self.type_vocab_size == 1:
            # The ids do not matter: the one-hot vector of segment 1 would be zero and add no row.
            x = x + self.token_type_embeddings[0]
        elif self.type_vocab_size:
            # A matrix product, since the gradient of a lookup in a table of two rows is slow.
            segments = ops.one_hot(segment_ids, self.type_vocab_size, dtype=x.dtype)
            x = x + ops.matmul(segments, self.token_type_embeddings)
        if self.position_embeddings is not None and places is not None:
            x = x + ops.take(self.position_embeddings, places, axis=0)
        elif self.position_embeddings is not None:
            x = x + self.position_embeddings[: ops.shape(input_ids)[1]]
        x = ops.cast(x, self.compute_dtype)
        if keras.backend.backend() == "jax":
            from official_bert.backend.jax_kernels import rows_first

            x = rows_first(x)
        return self.dropout(self.norm(x) if self.norm else x, self.dropout_rate, seed)


class SelfAttention(keras.layers.Layer):
    """Multi-head self-attention with its output projection."""

    def __init__(self, config: BertConfig, initializer, last=None, **kwargs):
        super().__init__(**kwargs)
        self.heads = config.num_attention_heads
        self.head_width = config.hidden_size // config.num_attention_heads
        self.dropout_rate = config.attention_probs_dropout_prob
        width = config.hidden_size
        with keras.name_scope(self.name):
            self.query = dense(width, width, initializer, self.dtype_policy, "query")
            self.key = dense(width, width, initializer, self.dtype_policy, "key")
            self.value = dense(width, width, initializer, self.dtype_policy, "value")
            self.output_dense = dense(
                width, width, last or initializer, self.dtype_policy, "output"
            )
        self.built = True

    def call(self, x, attention_bias, seed=None, return_attention=False):
        """Map [B, L, H] and a bias that broadcasts to [B, A, L, L] -> [B, L, H].

        With `return_attention`, return that and the scores before the softmax, [B, A, L, L].
        """
        if not return_attention:
            # Where there is a kernel for the whole, it is used: it stores no scores.
            context = fused_attention.context(self, x, attention_bias, seed)
            if context is not None:
                return self.output_dense(context)
        attended = self.attend(self.queries(x), *self.keys_values(x), attention_bias, seed)
        return attended if return_attention else attended[0]

    def attend(self, query, key, value, attention_bias, seed=None):
        """Let L tokens attend to the K tokens of keys and values, which may be another text's.

        Args:
          query, key, value: the results of `queries` and `keys_values`.
          attention_bias: broadcasts to [B, A, L, K].

        Returns: ([B, L, H], scores before the softmax [B, A, L, K]).
        """
        # The query is scaled instead of the scores: it is the smaller tensor.
        scores = ops.matmul(query * self.head_width**-0.5, key) + attention_bias  # [B, A, L, K]
        weights = dropout(softmax(scores), self.dropout_rate, seed)
        context = ops.matmul(weights, value)  # [B, A, L, D]
        rows, heads, length, width = ops.shape(context)
        context = ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (rows, length, heads * width))
        return self.output_dense(context), scores

    def queries(self, x):
        """Map [B, L, H] -> [B, A, L, D]."""
        return self._split_heads(self.query(x), (0, 2, 1, 3))

    def keys_values(self, x):
        """Map [B, L, H] -> [B, A, D, L], [B, A, L, D]."""
        return (
            self._split_heads(self.key(x), (0, 2, 3, 1)),
            self._split_heads(self.value(x), (0, 2, 1, 3)),
        )

    def _split_heads(self, x, order):
        batch, length = ops.shape(x)[:2]
        return ops.transpose(ops.reshape(x, (batch, length, self.heads, self.head_width)), order)


class TransformerBlock(keras.layers.Layer):
    """Self-attention and feed-forward, each followed by dropout, residual and normalisation.

    Normalising after the addition ("post-LN") is the original Transformer's order, and BERT's.

    Args:
      config, initializer: of the encoder.
      last: initializer of the dense layers that end a sub-layer; None: `initializer`.
    """

    def __init__(self, config: BertConfig, initializer, last=None, **kwargs):
        super().__init__(**kwargs)
        self.dropout_rate = config.hidden_dropout_prob
        self.activation = activation(config)
        width, inner = config.hidden_size, config.intermediate_size
        policy, last = self.dtype_policy, last or initializer
        with keras.name_scope(self.name):
            self.attention = SelfAttention(
                config, initializer, last, dtype=policy, name="attention"
            )
            self.attention_norm = LayerNorm(config, dtype=policy, name="attention_norm")
            self.intermediate = dense(width, inner, initializer, policy, "intermediate")
            self.output_dense = dense(inner, width, last, policy, "output")
            self.output_norm = LayerNorm(config, dtype=policy, name="output_norm")
        self.built = True

    def call(self, x, attention_bias, seed=None, return_attention=False):
        """Map [B, L, H] -> [B, L, H]; a pure function of its arguments, so it may be recomputed.

        With `return_attention`, return that and the attention scores, [B, A, L, L].
        """
        x, scores = self.attend(x, attention_bias, seed, return_attention)
        x = self.feed_forward(x, seed)
        return (x, scores) if return_attention else x

    def attend(self, x, attention_bias, seed=None, return_attention=False):
        """Return the output of the attention sub-layer, and the scores or None."""
        attended = self.attention(
            x, attention_bias, fold_in(seed, 0), return_attention=return_attention
        )
        attended, scores = attended if return_attention else (attended, None)
        x = x + dropout(attended, self.dropout_rate, fold_in(seed, 1))
        return self.attention_norm(x), scores

    def feed_forward(self, x, seed=None):
        """Return the output of the feed-forward sub-layer."""
        fed_forward = self.output_dense(self.activation(self.intermediate(x)))
        return self.output_norm(x + dropout(fed_forward, self.dropout_rate, fold_in(seed, 2)))


class Transformer:
    """Makes the parts of an encoder; a subclass makes a successor's.

    `BertConfig.transformer` names the class.

    Attributes:
      names: rows of `checkpoints.names` for variables that BERT has not.
    """

    names: tuple = ()

    def __init__(self, config: BertConfig):
        self.config = config

    def embeddings(self, initializer, **kwargs):
        return Embeddings(self.config, initializer, **kwargs)

    def block(self, number: int, initializer, **kwargs):
        """Return block `number`, counted from 0; it is called as `TransformerBlock` is."""
        return TransformerBlock(self.config, initializer, **kwargs)

    def last_norm(self, **kwargs):
        """Return the normalisation behind the last block, or None as in BERT."""
        return None

    def pooler(self, initializer, activation="tanh", **kwargs):
        """Return the dense layer on the summary token's vector, or None."""
        width, policy = self.config.hidden_size, kwargs["dtype"]
        options = {"cls": keras.layers.Dense, "activation": activation}
        return dense(width, width, initializer, policy, kwargs["name"], **options)

    def widened(self, x):
        """Return the embeddings as the first block reads them."""
        return x

    def attention_bias(self, input_mask, dtype: str):
        """Return the blocks' `attention_bias`."""
        return attention_bias(input_mask, self.config.attention_direction, dtype)

    def summary(self, sequence, input_mask):
        """Map [B, L, H], int32 [B, L] -> [B, H]: see `BertEncoder.summary_token`."""
        if self.config.attention_direction == "bidirectional":
            return sequence[:, 0]
        last = ops.maximum(ops.sum(ops.cast(input_mask, "int32"), axis=-1) - 1, 0)  # [B]
        return gather_positions(sequence, last[:, None])[:, 0]


class Dense(keras.layers.Dense):
    """Keras' dense layer as a product of two matrices: [..., N] -> [..., M]; no activation.

    TensorFlow adds the bias inside a product of matrices, but not inside one of tensors.
    """

    def call(self, x):
        *rows, width = ops.shape(x)
        x = ops.reshape(x, (-1, width))
        if keras.backend.backend() == "tensorflow":
            from official_bert.backend.tensorflow_kernels import dense

            x = dense(x, self.kernel, self.bias)
        else:
            x = super().call(x)
        return ops.reshape(x, (*rows, self.units))


class LayerNorm(keras.layers.Layer):
    """Layer normalisation over the last axis, in float32 whatever the compute dtype."""

    def __init__(self, config: BertConfig, width: int | None = None, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = config.layer_norm_eps
        shape = (width or config.hidden_size,)
        self.gamma = self.add_weight(name="gamma", shape=shape, initializer="ones", autocast=False)
        self.beta = self.add_weight(name="beta", shape=shape, initializer="zeros", autocast=False)
        self.built = True

    def call(self, x):
        """Map [..., H] -> [..., H]."""
        if keras.backend.backend() == "tensorflow":
            from official_bert.backend.tensorflow_kernels import layer_norm

            return layer_norm(x, self.gamma, self.beta, self.epsilon)
        if keras.backend.backend() == "jax":
            from official_bert.backend.jax_kernels import layer_norm

            return layer_norm(x, self.gamma.value, self.beta.value, self.epsilon)
        dtype, x = x.dtype, ops.cast(x, "float32")
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        normal = centred * ops.rsqrt(variance + self.epsilon)
        return ops.cast(normal * self.gamma + self.beta, dtype)


def softmax(scores):
    """Return the weights of attention, over the last axis, in the scores' dtype.

    XLA would take exponentials and sums in bfloat16; in float32 they are nearer to the truth. On an
    H200, attention forward and backward then took 12% less to 3% more time at seven of eight
    shapes, and 42% more at 2/128 and length 512 (benchmarks/results/gpu).
    """
    if keras.backend.backend() == "tensorflow":  # has a kernel of its own
        return ops.softmax(scores, axis=-1)
    return ops.cast(ops.softmax(ops.cast(scores, "float32"), axis=-1), scores.dtype)


def attention_bias(input_mask, attention_direction: str, dtype: str):
    """Return what is added to attention scores: 0 where a token may look, -10000 where it may not.

    Args:
      input_mask: int32 or bool [B, L], 1 for tokens and 0 for padding.
      attention_direction: of the `BertConfig`.
      dtype: float dtype of the result.

    Returns:
      [B, 1, 1, L]; [B, 1, L, L] for "left_to_right".
    """
    allowed = ops.expand_dims(ops.cast(input_mask, "bool"), (1, 2))  # LiteRT slices no new axes
    if attention_direction != "bidirectional":
        position = ops.arange(ops.shape(input_mask)[1])
        allowed = ops.logical_and(allowed, position <= ops.expand_dims(position, 1))
    return bias_of(allowed, dtype)


def bias_of(allowed, dtype: str):
    """Return the bias of attention scores: 0 where `allowed`, `MASKED_SCORE` elsewhere."""
    return ops.where(allowed, ops.cast(0.0, dtype), ops.cast(MASKED_SCORE, dtype))


def gather_positions(sequence, positions):
    """Return the vectors at some positions of each row: [B, L, H], int32 [B, P] -> [B, P, H]."""
    if keras.backend.backend() == "jax":
        # XLA sees that each row reads its own vectors, so devices that share a batch send none.
        return ops.take_along_axis(sequence, positions[:, :, None], axis=1)
    batch, length, width = ops.shape(sequence)
    positions = ops.convert_to_tensor(positions, "int32")  # PyTorch adds no array to a tensor
    rows = ops.cast(ops.arange(batch), "int32")[:, None] * length
    return ops.take(ops.reshape(sequence, (-1, width)), positions + rows, axis=0)


def activation(config: BertConfig):
    """Return the function that `hidden_act` and `gelu_form` name."""
    if config.hidden_act != "gelu":
        return keras.activations.get(config.hidden_act)
    if config.gelu_form == "erf" and keras.backend.backend() == "tensorflow":
        from official_bert.backend.tensorflow_kernels import gelu

        return gelu
    if config.gelu_form == "erf" and keras.backend.backend() == "jax":
        from official_bert.backend.jax_kernels import gelu

        return gelu
    return functools.partial(ops.gelu, approximate=config.gelu_form == "tanh")


def dense(inputs, outputs, initializer, policy, name, cls=Dense, **options):
    """Return a dense layer with its weights; `cls` is this project's class, or Keras'."""
    layer = cls(outputs, kernel_initializer=initializer, dtype=policy, name=name, **options)
    layer.build((None, inputs))
    return layer
