"""`BertEncoder`: the bidirectional Transformer encoder of section 3, with its pooler."""

import functools

import keras
from keras import ops

from official_bert.backend import fit_arguments
from official_bert.common.errors import UserError
from official_bert.config import BertConfig, parts_named
from official_bert.extension import load
from official_bert.layers import Transformer, TransformerBlock, softmax
from official_bert.randomness import fold_in, next_seed


@keras.saving.register_keras_serializable("official_bert")
class BertEncoder(keras.Model):
    """Embeddings, L Transformer blocks, and the pooler.

    Examples:
      >>> import numpy as np
      >>> from official_bert import named_config
      >>> encoder = BertEncoder(named_config("tiny", vocab_size=100))
      >>> outputs = encoder({"input_ids": np.array([[2, 17, 5, 3], [2, 8, 3, 0]])})
      >>> tuple(outputs["pooled_output"].shape), tuple(outputs["sequence_output"].shape)
      ((2, 128), (2, 4, 128))

    Args:
      config: sizes and rates.
      remat: recompute the activations of each block in the backward pass instead of keeping them.
        Memory for activations falls from all blocks' to one block's, for about a third more work.
      seed: seed of the initial weights and, where a call gives none, of dropout; None draws one.
      transformer: makes the parts in place of the configuration's `Transformer`; it is not saved.
    """

    def __init__(
        self,
        config: BertConfig,
        remat: bool = False,
        seed: int | None = None,
        transformer: Transformer | None = None,
        **kwargs,
    ):
        super().__init__(**{"name": "encoder", **kwargs})
        self.config = config
        self.remat = remat
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        initializer = keras.initializers.TruncatedNormal(
            stddev=config.initializer_range, seed=keras.random.SeedGenerator(seed)
        )
        self.transformer = transformer or load(config.transformer)(config)
        policy = self.dtype_policy
        with keras.name_scope(self.name):
            made = self.transformer
            self.embeddings = made.embeddings(initializer, dtype=policy, name="embeddings")
            self.blocks = [
                made.block(i, initializer, dtype=policy, name=f"layer_{i}")
                for i in range(config.num_blocks)
            ]
            self.last_norm = made.last_norm(dtype=policy, name="last_norm")
            self.pooler = made.pooler(initializer, dtype=policy, name="pooler")
        self.built = True

    def call(self, inputs, training=False, seed=None, return_attention=False):
        """Encode a batch of sequences.

        Args:
          inputs: {"input_ids", "input_mask", "segment_ids"}, each int32 [B, L]; other entries are
            ignored. See `complete_inputs` for what the last two are by default.
          training: whether to apply dropout.
          seed: int32 [2] that determines the dropout masks (see `official_bert.randomness`); None
            draws the next one of the model's own generator.
          return_attention: whether to return the attention's probabilities and scores too.

        Returns:
          {"sequence_output": [B, L, H], "pooled_output": [B, H],
           "hidden_states": [num_hidden_layers + 1 tensors of [B, L, H]; the embedding output first,
           the sequence output last; in an encoder of LSTMs the inner ones have the LSTMs' width],
           "attention_probabilities" (when asked for): [num_hidden_layers tensors of [B, A, L, L];
           the share that each token (third axis) takes from each token (last axis)],
           "attention_scores" (when asked for): [as many; before the softmax, -10000 and below where
           a token may not look]}

        Raises:
          UserError: the inputs are named as in another library, longer than the model's positions,
            or without a mask where no id is padding alone.
        """
        inputs = complete_inputs(inputs, self.config)
        if not training:
            seed = None
        elif seed is None:
            seed = next_seed(self.seed_generator)
        input_ids = ops.cast(inputs["input_ids"], "int32")
        input_mask = ops.cast(inputs["input_mask"], "int32")
        segment_ids = ops.cast(inputs["segment_ids"], "int32")

        x = self.transformer.widened(self.embeddings(input_ids, segment_ids, seed=fold_in(seed, 0)))
        bias = self.transformer.attention_bias(input_mask, x.dtype)
        hidden_states, attention_scores = [x], []
        for i in range(self.config.num_hidden_layers):
            block = self.block_of(i)
            # Three dropouts a layer: of the attention, and of the two sub-layers' outputs.
            run = functools.partial(block, attention_bias=bias, seed=fold_in(seed, 1 + 3 * i))
            if return_attention:
                x, scores = run(x, return_attention=True)
                attention_scores.append(scores)
            else:
                x = keras.remat(run)(x) if self.remat and training else run(x)
            hidden_states.append(x)
        x = hidden_states[-1] = self.last_norm(x) if self.last_norm else x
        pooled = self.summary_token(x, input_mask)
        pooled = self.pooler(pooled) if self.pooler else pooled
        outputs = {"sequence_output": x, "pooled_output": pooled, "hidden_states": hidden_states}
        if return_attention:
            probabilities = [softmax(scores) for scores in attention_scores]
            outputs["attention_probabilities"] = probabilities
            outputs["attention_scores"] = attention_scores
        return outputs

    def compute_output_spec(self, inputs, *args, **kwargs):
        """Return the outputs of symbolic inputs.

        Where the length is unknown, Keras on PyTorch would call the encoder with rows of 83 tokens,
        and on JAX with a symbol that cannot be compared with the model's positions. So the outputs
        for two known lengths are compared; a size that differs is unknown.
        """
        ids = inputs["input_ids"] if isinstance(inputs, dict) else inputs
        if keras.backend.backend() == "tensorflow" or ids.shape[-1] is not None:
            return super().compute_output_spec(inputs, *args, **kwargs)
        spec_of = super().compute_output_spec

        def outputs(length):
            known = keras.KerasTensor((ids.shape[0], length), "int32")
            return spec_of({"input_ids": known}, *args, **kwargs)

        def where_equal(x, y):
            shape = [n if n == m else None for n, m in zip(x.shape, y.shape, strict=True)]
            return keras.KerasTensor(shape, x.dtype)

        return keras.tree.map_structure(where_equal, outputs(2), outputs(3))

    def block_of(self, layer: int) -> TransformerBlock:
        """Return the block that a layer, counted from 0, uses."""
        return self.blocks[self.config.block_of(layer)]

    def summary_token(self, sequence, input_mask):
        """Return the vector of the token that stands for the whole input: [B, L, H] -> [B, H].

        That is [CLS], the first. In a left-to-right model [CLS] has seen only itself, so it is the
        last real token there, the final [SEP].
        """
        return self.transformer.summary(sequence, input_mask)

    @property
    def parts(self) -> dict[str, keras.layers.Layer]:
        """The layers that can be frozen one by one: embeddings, layer_0, ..., pooler."""
        pooler = [self.pooler] if self.pooler else []
        return {part.name: part for part in (self.embeddings, *self.blocks, *pooler)}

    def freeze(self, what: str) -> None:
        """Exclude parts from training; a `.keras` file remembers them.

        Args:
          what: parts with commas between: "embeddings", "blocks:3", "blocks:0-5", "blocks",
            "pooler".

        Raises:
          UserError: there is no such part.
        """
        parts = list(self.parts.values())
        for index in parts_named(what, len(self.blocks)):
            if index == len(parts):
                raise UserError("freeze: this encoder has no pooler")
            parts[index].trainable = False

    def predict(self, x, *args, **kwargs):
        fit_arguments.check_inputs(x)
        return super().predict(x, *args, **kwargs)

    def export(self, filepath, *args, **kwargs):
        """Export the encoder as any Keras model is exported.

        The export takes the three inputs, int32 [B, L]. It returns "hidden_states_0" and so on,
        since signatures have no lists.
        """
        inputs = {
            name: keras.Input(spec.shape[1:], dtype=spec.dtype, name=name)
            for name, spec in input_specs(2).items()
        }
        outputs = self(inputs)
        states = outputs.pop("hidden_states")
        outputs |= {f"hidden_states_{i}": state for i, state in enumerate(states)}
        return keras.Model(inputs, outputs).export(filepath, *args, **kwargs)

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


def input_specs(rank: int) -> dict[str, keras.InputSpec]:
    """Return the specs of an encoder's or a head's inputs: int32, `rank` axes of any size."""
    names = ("input_ids", "input_mask", "segment_ids")
    shape = (None,) * rank
    return {name: keras.InputSpec(dtype="int32", shape=shape, name=name) for name in names}


def complete_inputs(inputs, config: BertConfig) -> dict:
    """Return a model's inputs, with defaults for those that are left out.

    Args:
      inputs: a dictionary with "input_ids", int32 [..., L], or these ids alone. "input_mask" is by
        default 1 where the id is not the configuration's pad_token_id; "segment_ids" are 0.
      config: of the encoder.

    Raises:
      UserError: see `BertEncoder.call`.
    """
    if not isinstance(inputs, dict):
        inputs = {"input_ids": inputs}
    for theirs, ours in (("attention_mask", "input_mask"), ("token_type_ids", "segment_ids")):
        if theirs in inputs and ours not in inputs:
            raise UserError(f"the inputs name {theirs}; here it is {ours}, as in google-research")
    if "input_ids" not in inputs:
        names = ", ".join(map(str, inputs)) or "nothing"
        raise UserError(
            f"the inputs are {names}; a model reads input_ids, and tokenizer(texts) makes them"
        )
    ids = ops.convert_to_tensor(inputs["input_ids"], dtype="int32")
    length, max_length = ids.shape[-1], config.max_position_embeddings
    if length is not None and length > max_length:
        raise UserError(
            f"input_ids has rows of {length} tokens, but the model has {max_length} positions; "
            f"tokenizer(texts, max_length={max_length}, truncation='head') cuts them"
        )
    complete = {**inputs, "input_ids": ids}
    if "input_mask" not in complete:
        if config.pad_token_id < 0:
            raise UserError(
                "the inputs have no input_mask, and no id of this model's vocabulary is padding "
                "alone; give the mask too, as tokenizer(texts) does"
            )
        complete["input_mask"] = ops.cast(ops.not_equal(ids, config.pad_token_id), "int32")
    if "segment_ids" not in complete:
        complete["segment_ids"] = ops.zeros_like(ids)
    return complete
