"""`BertEncoder`: the bidirectional Transformer encoder of section 3, with its pooler."""

import functools

import keras
from keras import ops

from official_bert.config import BertConfig
from official_bert.layers import Embeddings, TransformerBlock, attention_bias
from official_bert.randomness import fold_in, next_seed


@keras.saving.register_keras_serializable("official_bert")
class BertEncoder(keras.Model):
    """Embeddings, L Transformer blocks, and the pooler.

    Example:
      encoder = BertEncoder(named_config("tiny"))
      outputs = encoder({"input_ids": ids, "input_mask": mask, "segment_ids": segments})
      outputs["pooled_output"]  # [batch, 128]

    Args:
      config: sizes and rates.
      remat: recompute the activations of each block in the backward pass instead of keeping them.
        Memory for activations falls from all blocks' to one block's, for about a third more work.
      seed: seed of the initial weights and, where a call gives none, of dropout; None draws one.
    """

    def __init__(self, config: BertConfig, remat: bool = False, seed: int | None = None, **kwargs):
        super().__init__(**{"name": "encoder", **kwargs})
        self.config = config
        self.remat = remat
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        initializer = keras.initializers.TruncatedNormal(
            stddev=config.initializer_range, seed=keras.random.SeedGenerator(seed)
        )
        policy = self.dtype_policy
        with keras.name_scope(self.name):
            self.embeddings = Embeddings(config, initializer, dtype=policy, name="embeddings")
            self.blocks = [
                TransformerBlock(config, initializer, dtype=policy, name=f"layer_{i}")
                for i in range(config.num_hidden_layers)
            ]
            self.pooler = keras.layers.Dense(
                config.hidden_size,
                activation="tanh",
                kernel_initializer=initializer,
                dtype=policy,
                name="pooler",
            )
            self.pooler.build((None, config.hidden_size))
        self.built = True

    def call(self, inputs, training=False, seed=None):
        """Encodes a batch of sequences.

        Args:
          inputs: {"input_ids", "input_mask", "segment_ids"}, each int32 [B, L]; other entries are
            ignored.
          training: whether to apply dropout.
          seed: int32 [2] that determines the dropout masks (see `official_bert.randomness`); None
            draws the next one of the model's own generator.

        Returns:
          {"sequence_output": [B, L, H], "pooled_output": [B, H],
           "hidden_states": [num_hidden_layers + 1 tensors of [B, L, H]; the embedding output first,
           the sequence output last]}
        """
        if not training:
            seed = None
        elif seed is None:
            seed = next_seed(self.seed_generator)
        input_ids = ops.cast(inputs["input_ids"], "int32")
        input_mask = ops.cast(inputs["input_mask"], "int32")
        segment_ids = ops.cast(inputs["segment_ids"], "int32")

        x = self.embeddings(input_ids, segment_ids, seed=fold_in(seed, 0))
        bias = attention_bias(input_mask, self.config.attention_direction, x.dtype)
        hidden_states = [x]
        for i, block in enumerate(self.blocks):
            # Three numbers a block: its attention, and its two sub-layer outputs.
            run = functools.partial(block, attention_bias=bias, seed=fold_in(seed, 1 + 3 * i))
            x = keras.remat(run)(x) if self.remat and training else run(x)
            hidden_states.append(x)
        pooled = self.pooler(self.summary_token(x, input_mask))
        return {"sequence_output": x, "pooled_output": pooled, "hidden_states": hidden_states}

    def summary_token(self, sequence, input_mask):
        """The token whose vector stands for the whole input: [B, L, H] -> [B, H].

        That is [CLS], the first. In a left-to-right model [CLS] has seen only itself, so it is the
        last real token there, the final [SEP].
        """
        if self.config.attention_direction == "bidirectional":
            return sequence[:, 0]
        last = ops.maximum(ops.sum(ops.cast(input_mask, "int32"), axis=-1) - 1, 0)  # [B]
        return gather_positions(sequence, last[:, None])[:, 0]

    @property
    def parts(self) -> dict[str, keras.layers.Layer]:
        """The layers that can be frozen one by one: embeddings, layer_0, ..., pooler."""
        return {part.name: part for part in (self.embeddings, *self.blocks, self.pooler)}

    def get_config(self):
        return {
            **super().get_config(),
            "config": self.config.to_dict(),
            "remat": self.remat,
            "seed": self.seed,
            "frozen": [name for name, part in self.parts.items() if not part.trainable],
        }

    @classmethod
    def from_config(cls, config):
        config = {**config, "config": BertConfig.from_dict(config["config"])}
        frozen = config.pop("frozen", [])
        encoder = cls(**config)
        for name in frozen:
            encoder.parts[name].trainable = False
        return encoder


def gather_positions(sequence, positions):
    """The vectors at some positions of each row: [B, L, H], int32 [B, P] -> [B, P, H]."""
    batch, length, width = ops.shape(sequence)
    rows = ops.cast(ops.arange(batch), "int32")[:, None] * length
    return ops.take(ops.reshape(sequence, (-1, width)), positions + rows, axis=0)
