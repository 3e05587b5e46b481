"""Classification and regression of a text or a pair of texts."""

import tensorflow as tf

from official_bert.export.packed_encoder import Dense
from official_bert.export.served_model import ServedModel


class ServedClassifier(ServedModel):
    """Outputs, B texts and C labels:

    single_label: `labels` string [B], `probabilities` float32 [B, C], `logits` float32 [B, C].
    multi_label: the same, but `labels` [B, C'] lists those with a probability above one half, the
    shorter rows filled with "".
    regression: `values` float32 [B].
    """

    kind = "classification"

    def __init__(self, loaded, tokenizer, settings):
        super().__init__(loaded, tokenizer, settings)
        self.problem = loaded.model.problem
        self.text_inputs = {name: [None] for name in settings.input_fields or ("text",)}
        self.head = Dense(loaded.model.head, tf.float32)
        if self.problem != "regression":
            self.labels = tf.constant(settings.labels, tf.string)

    def _answer_texts(self, **texts):
        ids = [self.tokenize(texts[name]) for name in self.text_inputs]
        return self.answer_ids(self.pack_single(*ids) if len(ids) == 1 else self.pack_pair(*ids))

    def answer_ids(self, packed):
        logits = self.head(self.summary(packed))
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
