"""Vectors for texts and tokens: sentence embeddings and the feature-based approach (section
5.3)."""

import tensorflow as tf

from official_bert.export import packing
from official_bert.export.served_model import ServedModel
from official_bert.export.settings import LAYERS


class _ServedVectors(ServedModel):
    text_inputs = {"text": [None]}

    def token_vectors(self, packed):
        """float32 [N, D], D = H, or 4H for "concat_last_four"; and the last layer [N, H]."""
        selected, join = LAYERS[self.settings.layers]
        parts = 4 if join == "concat" else 1

        def read(states):
            layers = states[selected]
            joined = layers if join == "concat" else [tf.add_n(layers) / len(layers)]
            return tf.concat([*joined, states[-1]], axis=1)

        width = self.encoder.config.hidden_size
        return tf.split(
            self.encoder.encode(packed, read, parts + 1), [parts * width, width], axis=1
        )


class ServedEmbedding(_ServedVectors):
    """`embedding` float32 [B, D]: the vector of [CLS], or the mean over all tokens of the text.
    For texts also `truncated` bool [B].

    The mean counts [CLS] and [SEP], as sentence-transformers does.
    """

    kind = "embedding"

    def _answer_texts(self, text):
        packed, cut = self.pack_texts([self.tokenize(text)])
        return {**self.answer_ids(packed), "truncated": cut}

    def answer_ids(self, packed):
        vectors, _ = self.token_vectors(packed)
        if self.settings.pooling == "cls":
            vectors = self.encoder.summary_token(vectors, packed)
        else:
            rows = tf.repeat(tf.range(tf.size(packed.row_lengths)), packed.row_lengths)
            vectors = tf.math.segment_mean(vectors, rows)  # every row has a token
        if self.settings.normalize:
            vectors = tf.math.l2_normalize(vectors, axis=1)
        return {"embedding": vectors}


class ServedFeatures(_ServedVectors):
    """A vector for each token, padded to the longest row L:

    `features` float32 [B, L, D], `pooled_output` float32 [B, H], `input_ids` int32 [B, L], and
    for texts `start` and `end` int32 [B, L], the characters of each token, -1 at [CLS], [SEP] and
    padding, and `truncated` bool [B].
    """

    kind = "features"

    def _answer_texts(self, text):
        ids, starts, ends = self.tokenize_with_offsets(text)
        packed, cut = self.pack_texts([ids])
        answer = {**self.answer_ids(packed), "truncated": cut}
        rows = packing.Rows(packed)
        for name, values in (("start", starts), ("end", ends)):
            offsets = packing.single(
                values, -1, -1, self.settings.max_seq_length, self.settings.truncation
            )
            answer[name] = tf.where(rows.mask, rows.spread(offsets.ids), -1)
        return answer

    def answer_ids(self, packed):
        vectors, last = self.token_vectors(packed)
        rows = packing.Rows(packed)
        features = tf.where(rows.mask[..., None], rows.spread(vectors), 0.0)
        return {
            "features": features,
            "pooled_output": tf.cast(self.encoder.pooled(last, packed), tf.float32),
            "input_ids": tf.where(rows.mask, rows.spread(packed.ids), self.pad_id),
        }
