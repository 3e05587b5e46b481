"""LiteRT (TensorFlow Lite) files of models, and LiteRT's answers.

TensorFlow's own converter makes them from the served encoder (`packed_encoder`), over padded rows
here: a phone reads one text at a time. Batch size and length are free; the interpreter plans its
memory anew when they change. int8 is the converter's dynamic quantisation, with a scale a column.
"""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import keras
import tensorflow as tf

from official_bert.common.errors import UserError
from official_bert.common.files import atomic_write
from official_bert.export.id_model import IdModel
from official_bert.export.packed_encoder import Dense, Norm, PackedEncoder, activation, variable
from official_bert.export.packing import Packed

FILE = "model.tflite"


def write(path: Path, id_model: IdModel) -> None:
    """Writes an `IdModel` as `path`, with one signature, `serving_default`.

    Raises:
      UserError: Keras computes with another backend than TensorFlow.
    """
    if keras.backend.backend() != "tensorflow":
        raise UserError("LiteRT exports need KERAS_BACKEND=tensorflow")
    model = _LiteRTModel(id_model)
    specs = {
        name: tf.TensorSpec([None] * dimensions, tf.int32, name)
        for name, dimensions in id_model.inputs.items()
    }
    holder = tf.Module()
    holder.parts = model.parts
    function = tf.function(lambda **batch: model(batch), autograph=False)
    with tf.device("CPU"), tempfile.TemporaryDirectory() as folder, _quiet():
        tf.saved_model.save(holder, folder, signatures=function.get_concrete_function(**specs))
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        if id_model.settings.precision == "int8":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        content = converter.convert()
    with atomic_write(path, "wb") as file:
        file.write(content)


def run(path: Path, batch: dict) -> dict:
    """LiteRT's answer to a batch: {output: array}."""
    from ai_edge_litert.interpreter import Interpreter

    with _quiet():
        return Interpreter(str(path)).get_signature_runner()(**batch)


class _LiteRTModel(IdModel):
    """An `IdModel` with those operations that LiteRT has.

    Attributes:
      parts: what holds the weights.
    """

    def __init__(self, made: IdModel):
        super().__init__(made.loaded, made.head, made.settings)
        self._encoder = PackedEncoder(self.loaded.encoder, transpose=tf.transpose)
        self.parts = [self._encoder]
        if self.head == "masked_words":
            head = self.model.masked_lm
            self._transform = Dense(head.transform, tf.float32), Norm(head.norm)
            self._word_bias = variable(head.bias, tf.float32, "bias")
            self.parts += [*self._transform, self._word_bias]
        elif self.head not in ("embedding", "features"):
            self.parts += [weight.value for weight in self.model.head.variables]

    def encode(self, batch):
        shape = tf.shape(batch["input_ids"])
        flat = {name: tf.reshape(x, [-1]) for name, x in batch.items()}
        positions = tf.tile(tf.range(shape[1]), shape[:1])
        packed = Packed(flat["input_ids"], flat["segment_ids"], positions, None)
        states = self._encoder.hidden_states(packed, _PaddedRows(batch["input_mask"], shape))
        states = [tf.reshape(x, [shape[0], shape[1], self.config.hidden_size]) for x in states]
        summary = self.loaded.encoder.summary_token(states[-1], batch["input_mask"])
        pooled = self._encoder.pool(summary)
        return {"sequence_output": states[-1], "pooled_output": pooled, "hidden_states": states}

    def word_scores(self, vectors):
        # Not by Keras' layer, whose GELU the converter does not recognise.
        dense, norm = self._transform
        rows = tf.reshape(vectors, [-1, self.config.hidden_size])
        x = norm(activation(self.config)(dense(rows)))
        scores = tf.matmul(x, self._encoder.word_embeddings, transpose_b=True) + self._word_bias
        return tf.reshape(scores, [tf.shape(vectors)[0], tf.shape(vectors)[1], scores.shape[-1]])


class _PaddedRows:
    """As `packing.Rows`, where every place of [B, L] counts as a token."""

    def __init__(self, input_mask, shape):
        self.mask, self.length, self._shape = input_mask > 0, shape[1], shape

    def spread(self, x):
        return tf.reshape(x, [self._shape[0], self._shape[1], x.shape[-1]])

    def collect(self, x):
        return x


@contextmanager
def _quiet():
    """The converter and the interpreter write notes past every setting: to nowhere."""
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)
