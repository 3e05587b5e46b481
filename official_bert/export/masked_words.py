"""Filling [MASK]: the masked language model of section 3.1 at work."""

import tensorflow as tf

from official_bert.export.packed_encoder import Dense, Norm, activation, variable
from official_bert.export.packing import token_counts
from official_bert.export.served_model import ServedModel


class ServedMaskedWords(ServedModel):
    """Outputs, M being the most masks of a text of the batch and k `top_k`:

    `words` string [B, M, k], best first; `probabilities` float32 [B, M, k]; `token_ids` int32
    [B, M, k]; and for texts `start` and `end` int32 [B, M], the characters of each "[MASK]" (or of
    what the vocabulary has in its place), and `truncated` bool [B]. Rows with fewer masks are
    filled with "", 0, 0 and -1. A mask that is cut off with the end of a text is not answered. A
    word that starts with "##" continues the one before it.
    """

    kind = "masked_words"
    text_inputs = {"text": [None]}

    def __init__(self, loaded, tokenizer, settings):
        super().__init__(loaded, tokenizer, settings)
        head = loaded.model.masked_lm
        self.transform = Dense(head.transform, self.encoder.dtype)
        self.activation = activation(loaded.config)
        self.norm = Norm(head.norm)
        self.mask, self.mask_id = loaded.tokenizer.special.mask, loaded.tokenizer.mask_id
        self.vocabulary = tf.constant(loaded.tokenizer.readable, tf.string)
        # A padded table has rows that belong to no word; they are never offered.
        self.entries = len(loaded.tokenizer.vocab)
        self.bias = variable(head.bias, tf.float32, "bias")

    def _answer_texts(self, text):
        # The tokeniser takes "[MASK]" for a bracket and a word, as in training; so the text is
        # tokenised in pieces, and the masks are put between them.
        pieces = tf.strings.split(text, self.mask)  # [B, (masks + 1)]
        is_mask = tf.repeat([[False, True]], tf.shape(pieces.values)[0], axis=0)
        last = tf.cast(pieces.row_splits[1:] - 1, tf.int32)  # a row's last piece: no mask after it
        follows = tf.tensor_scatter_nd_update(
            tf.ones_like(pieces.values, tf.int32), last[:, None], tf.zeros_like(last)
        )
        # A blank before a mask belongs to the word that it hides.
        stripped = tf.strings.regex_replace(pieces.values, r"\s+$", "")
        ids = self.tokenize(tf.where(follows > 0, stripped, pieces.values))
        lengths = token_counts(ids)
        both = tf.reshape(
            tf.stack([lengths, follows], axis=1), [-1]
        )  # piece, mask, piece, mask, ...
        masked = tf.repeat(tf.reshape(is_mask, [-1]), both)  # over all tokens
        places = tf.cast(tf.where(~masked), tf.int32)
        values = tf.tensor_scatter_nd_update(
            tf.fill([tf.size(masked)], self.mask_id), places, ids.values
        )
        per_row = tf.math.segment_sum(lengths + follows, tf.cast(pieces.value_rowids(), tf.int32))
        joined = tf.RaggedTensor.from_row_lengths(values, per_row, validate=False)
        packed, cut = self.pack_texts([joined])
        answer = self.answer_ids(packed)
        return {**answer, **self._offsets(pieces, answer["words"]), "truncated": cut}

    def answer_ids(self, packed):
        hidden = self.encoder.encode(packed)
        places = tf.cast(tf.where(packed.ids == self.mask_id)[:, 0], tf.int32)  # [masks]
        row_ids = tf.repeat(tf.range(tf.size(packed.row_lengths)), packed.row_lengths)
        x = self.transform(tf.gather(hidden, places))
        x = self.norm(tf.cast(self.activation(x), tf.float32))
        table = self.encoder.word_embeddings
        logits = tf.matmul(tf.cast(x, table.dtype), table, transpose_b=True)
        logits = (tf.cast(logits, tf.float32) + self.bias)[:, : self.entries]
        count = min(self.settings.top_k, self.entries)
        probabilities, ids = tf.math.top_k(tf.nn.softmax(logits), count)

        def rows(values, filling):
            ragged = tf.RaggedTensor.from_value_rowids(
                values, tf.gather(row_ids, places), tf.size(packed.row_lengths), validate=False
            )
            return ragged.to_tensor(filling, shape=[None, None, count])

        return {
            "words": rows(tf.gather(self.vocabulary, ids), ""),
            "probabilities": rows(probabilities, 0.0),
            "token_ids": rows(ids, 0),
        }

    def _offsets(self, pieces, words):
        """Characters of the masks that have an answer, int32 [B, M]."""
        characters = tf.strings.length(pieces.values, unit="UTF8_CHAR")
        ends = tf.cumsum(pieces.with_values(characters + len(self.mask)).to_tensor(0), axis=1)
        ends = ends[:, : tf.shape(words)[1]]
        answered = words[:, :, 0] != ""
        return {
            "start": tf.where(answered, ends - len(self.mask), -1),
            "end": tf.where(answered, ends, -1),
        }
