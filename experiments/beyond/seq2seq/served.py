"""A text for a text: encoder, decoder and the search for the best text in one graph."""

import keras
import tensorflow as tf

from official_bert.export.packed_encoder import variable
from official_bert.export.served_model import ServedModel
from official_bert.tokenization.decoding import LEFT_OUT
from official_bert.tokenization.graph import in_graph_packing as packing


class _Weights:
    """A model that computes with copies of its weights, in the place of `PackedAnswers`."""

    def __init__(self, loaded, settings):
        self.config, self._model, self._settings = loaded.config, loaded.model, settings
        self.parts = [variable(v, tf.float32, f"weight_{i}") for i, v in enumerate(self._all)]

    @property
    def _all(self):
        return [v for v in self._model.variables if v.dtype == "float32"]

    def __call__(self, batch):
        copies = zip(self._all, (part.value() for part in self.parts), strict=True)
        with keras.StatelessScope(list(copies)):
            return self._model(
                batch, beams=self._settings.beams, length_penalty=self._settings.length_penalty
            )


class ServedWriter(ServedModel):
    """Outputs `output` string [B], the pieces of what is written, joined to words with a blank
    between words and marks; `token_ids` int32 [B, T], its ids, -1 behind its end; and for texts
    `truncated` bool [B]. How many beams are followed was decided by the export."""

    head = "text"

    def __init__(self, loaded, tokenizer, settings):
        super().__init__(loaded, tokenizer, settings)
        pieces = ["" if piece in LEFT_OUT else piece for piece in loaded.tokenizer.readable]
        self.vocabulary = tf.constant(pieces, tf.string)

    def computed(self, loaded):
        return _Weights(loaded, self.settings)

    def answer_ids(self, packed):
        rows = packing.PackedRows(packed)
        ids = tf.where(rows.mask, rows.spread(packed.ids), 0)
        mask = tf.cast(rows.mask, tf.int32)
        batch = {"input_ids": ids, "input_mask": mask, "segment_ids": tf.zeros_like(ids)}
        written = self.answers(batch)["output_ids"]
        # An id behind the vocabulary, of a row that is not a word, is left out as in Python.
        known = (written >= 0) & (written < tf.size(self.vocabulary))
        pieces = tf.gather(self.vocabulary, tf.where(known, written, 0))
        text = tf.strings.reduce_join(tf.where(known, pieces, ""), axis=1, separator=" ")
        text = tf.strings.regex_replace(text, r" +", " ")
        text = tf.strings.strip(tf.strings.regex_replace(text, " ##", ""))
        return {"output": text, "token_ids": written}
