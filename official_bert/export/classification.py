"""Classification and regression of a text or a pair of texts."""

import tensorflow as tf

from official_bert.export import packing, windows
from official_bert.export.packed_encoder import Dense
from official_bert.export.served_model import ServedModel


class ServedClassifier(ServedModel):
    """Outputs, B texts and C labels:

    single_label: `labels` string [B], `probabilities` float32 [B, C], `logits` float32 [B, C].
    multi_label: the same, but `labels` [B, C'] lists those with a probability above one half, the
    shorter rows filled with "".
    regression: `values` float32 [B].

    And for texts `truncated` bool [B]. A model that pools windows reads texts in windows, and takes
    token ids [B, W, L]; a window whose mask is zero does not count.
    """

    kind = "classification"

    def __init__(self, loaded, tokenizer, settings):
        super().__init__(loaded, tokenizer, settings)
        self.problem, self.pooling = loaded.model.problem, getattr(loaded.model, "windows", "")
        self.text_inputs = {name: [None] for name in settings.input_fields or ("text",)}
        self.head = Dense(loaded.model.head, tf.float32)
        if self.problem != "regression":
            self.labels = tf.constant(settings.labels, tf.string)

    def _answer_texts(self, **texts):
        ids = [self.tokenize(texts[name]) for name in self.text_inputs]
        if not self.pooling:
            packed, cut = self.pack_texts(ids)
            return {**self.answer_ids(packed), "truncated": cut}
        settings, between = self.settings, self.between if len(ids) == 2 else ()
        rows, text, cut = windows.of_texts(
            ids,
            settings.max_seq_length - 2 - len(between),
            settings.windows,
            settings.window_overlap,
            settings.truncation,
        )
        packed = packing.assemble(rows, self.cls_id, self.sep_id, between)
        return {**self.answer_ids(packed, text), "truncated": cut}

    @property
    def ids_rank(self):
        return 3 if self.pooling else 2

    def answer_padded_ids(self, input_ids, input_mask, segment_ids):
        if not self.pooling:
            return super().answer_padded_ids(input_ids, input_mask, segment_ids)
        real = tf.reduce_any(input_mask > 0, axis=2)  # [B, W]
        filled = tf.reduce_all(tf.reduce_any(real, axis=1))
        tf.debugging.Assert(filled, ["input_mask: a text must be of one window or more"])
        rows = [tf.boolean_mask(x, real) for x in (input_ids, input_mask, segment_ids)]
        packed = self._checked(packing.from_padded(*rows))
        return self.answer_ids(packed, tf.cast(tf.where(real)[:, 0], tf.int32))

    def answer_ids(self, packed, text=None):
        """`text`, int32 [rows]: of windows, the text that each belongs to."""
        vectors = self.summary(packed)
        if text is not None:
            vectors = windows.pooled(vectors, text, self.pooling)
        logits = self.head(vectors)
        if self.problem == "regression":
            return {"values": tf.squeeze(logits, axis=1)}
        if self.problem == "single_label":
            probabilities = tf.nn.softmax(logits)
            labels = tf.gather(self.labels, tf.argmax(logits, axis=1))
        else:
            probabilities = tf.sigmoid(logits)
            chosen = tf.where(probabilities > 0.5)
            labels = tf.RaggedTensor.from_value_rowids(
                tf.gather(self.labels, chosen[:, 1]), chosen[:, 0], tf.shape(logits, tf.int64)[0]
            ).to_tensor("")
        return {"labels": labels, "probabilities": probabilities, "logits": logits}
