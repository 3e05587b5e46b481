"""Multiple choice (section 4.4): one input an ending, a softmax over their scores."""

import tensorflow as tf

from official_bert.export import packing
from official_bert.export.packed_encoder import Dense
from official_bert.export.served_model import ServedModel


class ServedMultipleChoice(ServedModel):
    """Inputs `context` [B] and `choices` [B, C]; outputs `choice` int32 [B], `probabilities` and
    `logits` float32 [B, C], and for texts `truncated` bool [B], whether a choice was cut. A choice
    is the whole second text, such as a started sentence with one of its endings.
    """

    kind = "multiple_choice"
    text_inputs = {"context": [None], "choices": [None, None]}

    def __init__(self, loaded, tokenizer, settings):
        super().__init__(loaded, tokenizer, settings)
        self.head = Dense(loaded.model.head, tf.float32)

    @property
    def ids_rank(self):
        return 3  # [B, C, L]

    def _answer_texts(self, context, choices):
        shape = tf.shape(choices)
        each = tf.repeat(context, tf.fill([shape[0]], shape[1]))  # [B * C]
        first, second = self.tokenize(each), self.tokenize(tf.reshape(choices, [-1]))
        packed, cut = self.pack_texts([first, second])
        answer = self._answer(packed, shape[0], shape[1])
        return {**answer, "truncated": tf.reduce_any(tf.reshape(cut, shape), axis=1)}

    def answer_padded_ids(self, input_ids, input_mask, segment_ids):
        shape = tf.shape(input_ids)
        flat = [tf.reshape(x, [-1, shape[2]]) for x in (input_ids, input_mask, segment_ids)]
        return self._answer(self._checked(packing.from_padded(*flat)), shape[0], shape[1])

    def _answer(self, packed, batch, choices):
        logits = tf.reshape(self.head(self.summary(packed)), [batch, choices])
        return {
            "choice": tf.argmax(logits, axis=1, output_type=tf.int32),
            "probabilities": tf.nn.softmax(logits),
            "logits": logits,
        }
