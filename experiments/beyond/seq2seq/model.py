"""Transformers that read a text and write another, and their first weights.

"separate": encoder and decoder with weights of their own, the Transformer (Vaswani et al. 2017)
where they are random, BERT2BERT where both begin as a BERT. "shared": one set for both, BertShare
(Rothe, Narayan, Severyn 2020). A layer of the decoder has a second attention, new in any case, to
what was read. "prefix": none of it, one encoder reads what it writes as a second segment that sees
the first and what is before it (UniLM, Dong et al. 2019): keys and values of the source are kept.
"""

import keras
from keras import ops

from experiments.beyond.common.generation import Kept, nothing_kept
from experiments.beyond.common.layers import attend
from experiments.beyond.common.shape import not_a_transformer
from experiments.beyond.seq2seq.text_to_text import TextToText
from official_bert.common.errors import UserError
from official_bert.encoder import BertEncoder
from official_bert.layers import LayerNorm, SelfAttention, bias_of
from official_bert.objectives.masked_lm import language_model_head
from official_bert.randomness import SECOND_ENCODER, dropout, fold_in


class CrossAttention(keras.layers.Layer):
    """A decoder's attention to what was read, with dropout, residual and normalisation."""

    def __init__(self, config, initializer, **kwargs):
        super().__init__(**kwargs)
        self.dropout_rate, self.norm_first = (
            config.hidden_dropout_prob,
            config.value("norm_first", False),
        )
        with keras.name_scope(self.name):
            self.attention = SelfAttention(
                config, initializer, dtype=self.dtype_policy, name="attention"
            )
            self.norm = LayerNorm(config, dtype=self.dtype_policy, name="norm")
        self.built = True

    def call(self, x, keys_values, bias, seed=None):
        """Map [B, T, H], what `SelfAttention.keys_values` gave, a bias [B, 1, 1, L] -> [B, T,
        H]."""
        read = self.norm(x) if self.norm_first else x
        query, seed_of_attention = self.attention.queries(read), fold_in(seed, 3)
        attended, _ = self.attention.attend(query, *keys_values, bias, seed_of_attention)
        x = x + dropout(attended, self.dropout_rate, fold_in(seed, 4))
        return x if self.norm_first else self.norm(x)


@keras.saving.register_keras_serializable("official_bert")
class Seq2Seq(TextToText):
    """An encoder and a decoder that writes.

    Args:
      encoder: BertEncoder that reads both ways.
      decoder: of `head.DECODERS`.
      **options: of `TextToText`.
    """

    def __init__(self, encoder, decoder="separate", **options):
        config = encoder.config
        if config.attention_direction != "bidirectional":
            raise UserError(
                f"texts are read by Transformers that see both ways; this encoder is "
                f"{not_a_transformer(config) or config.attention_direction}"
            )
        super().__init__(encoder, decoder, **options)
        if self.longest > config.max_position_embeddings or 2 * self.beams > config.vocab_size:
            raise UserError(
                f"longest={self.longest}, beams={self.beams}: this encoder has "
                f"{config.max_position_embeddings} positions and {config.vocab_size} entries"
            )
        seed = self.seed
        initializer = keras.initializers.TruncatedNormal(
            stddev=config.initializer_range, seed=keras.random.SeedGenerator(seed)
        )
        policy = self.dtype_policy
        with keras.name_scope(self.name):
            self.own_decoder = None
            if decoder == "separate":
                self.own_decoder = BertEncoder(
                    config.replaced(attention_direction="left_to_right", pooler_activation="none"),
                    seed=seed if seed is None else seed + 1,  # not the encoder's draws again
                    dtype=policy,
                    name="decoder",
                )
            self.cross = []
            if decoder != "prefix":
                self.cross = [
                    CrossAttention(config, initializer, dtype=policy, name=f"cross_{i}")
                    for i in range(config.num_hidden_layers)
                ]
            self.masked_lm = language_model_head(
                config, initializer, dtype=policy, name="masked_lm"
            )
        self.built = True

    @property
    def decoder(self) -> BertEncoder:
        return self.own_decoder or self.encoder

    def begin_as(self, head_weights: dict) -> None:
        """Give the decoder the encoder's weights, and the language model's head a checkpoint's.

        Args:
          head_weights: {path of a variable: array}; what is not there stays as it is.
        """
        if self.own_decoder:
            theirs = {v.path.partition("/")[2]: v for v in self.encoder.weights}
            for variable in self.own_decoder.weights:
                variable.assign(theirs[variable.path.partition("decoder/")[2]])
        stored = {path.partition("/")[2]: array for path, array in head_weights.items()}
        for variable in self.masked_lm.weights:
            path = variable.path.partition("/")[2]
            if path in stored:
                variable.assign(stored[path])

    def read(self, batch, seed=None):
        mask = ops.cast(batch["input_mask"], "int32")
        memory = {"bias": bias_of(mask[:, None, None, :] > 0, self.compute_dtype)}
        if self.cross:
            sequence = self.encoder(batch, training=seed is not None, seed=seed)["sequence_output"]
            layers = [cross.attention.keys_values(sequence) for cross in self.cross]
            return {**memory, "layers": layers}
        encoder, seen = self.encoder, []
        segments = ops.zeros_like(batch["input_ids"])
        embedded = encoder.embeddings(batch["input_ids"], segments, fold_in(seed, 0))
        x = encoder.transformer.widened(embedded)
        for layer in range(encoder.config.num_hidden_layers):
            seen.append(_Seen())
            block, part = encoder.block_of(layer), fold_in(seed, 1 + 3 * layer)
            x = block.feed_forward(attend(block, x, memory["bias"], seen[-1], part), part)
        layers = [one.keys_values for one in seen]
        return {**memory, "layers": layers, "count": ops.sum(mask, axis=1, keepdims=True)}

    def scores(self, memory, ids, seed=None):
        places = ops.arange(ops.shape(ids)[1], dtype="int32")
        return self._written(memory, ids, places, places <= places[:, None], seed)

    def begin(self, memory, rows, longest):
        return nothing_kept(self.decoder, rows, longest)

    def step(self, memory, tokens, place, state):
        kept = [Kept(*pair, place) for pair in state]
        seen = ops.arange(self.longest, dtype="int32") <= place
        scores = self._written(memory, tokens[:, None], place[None], seen[None], kept=kept)
        return scores[:, 0], [[one.keys, one.values] for one in kept]

    def _written(self, memory, ids, places, allowed, seed=None, kept=None):
        """Return the scores [B, T, V] of the token after each token.

        Args:
          memory: of `read`.
          ids: int32 [B, T].
          places: int32 [T], theirs in the text that is written.
          allowed: bool [T, K], whether a token sees each of the K of that text.
          kept: a `Kept` a layer, of the tokens before.
        """
        decoder, prefix = self.decoder, not self.cross
        segments, own = ops.zeros_like(ids), bias_of(allowed, self.compute_dtype)[None, None]
        if prefix:
            segments, places = segments + 1, places + memory["count"]
            rows, tokens = ops.shape(ids)
            both = [
                ops.broadcast_to(bias, (rows, 1, tokens, ops.shape(bias)[-1]))
                for bias in (memory["bias"], own)
            ]
            own = ops.concatenate(both, axis=-1)
        x = decoder.embeddings(ids, segments, seed=fold_in(seed, SECOND_ENCODER), places=places)
        x = decoder.transformer.widened(x)
        for layer, source in enumerate(memory["layers"]):
            block, part = decoder.block_of(layer), fold_in(seed, SECOND_ENCODER + 1 + 5 * layer)
            before = kept[layer] if kept else None
            if prefix or before:
                x = attend(block, x, own, _Behind(source, before) if prefix else before, part)
            else:
                x, _ = block.attend(x, own, part)
            if not prefix:
                x = self.cross[layer](x, source, memory["bias"], seed=part)
            x = block.feed_forward(x, part)
        x = decoder.last_norm(x) if decoder.last_norm else x
        return self.masked_lm(x, decoder.embeddings.word_embeddings)

    def get_config(self):
        return {**super().get_config(), "decoder": self.form}


class _Seen:
    """Notes the keys and values that pass."""

    def with_those_before(self, key, value):
        self.keys_values = key, value
        return key, value


class _Behind:
    """Puts keys and values behind a source's; in between those of the tokens before."""

    def __init__(self, source, before=None):
        self.source, self.before = source, before

    def with_those_before(self, key, value):
        if self.before:
            key, value = self.before.with_those_before(key, value)
        keys, values = self.source
        return ops.concatenate([keys, key], axis=-1), ops.concatenate([values, value], axis=-2)
