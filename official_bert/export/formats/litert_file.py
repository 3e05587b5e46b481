"""LiteRT (TensorFlow Lite) files of models, and LiteRT's answers.

TensorFlow's own converter makes them from the served encoder (`packed_encoder`). Rows are padded
here, since a phone reads one text at a time. Batch size and length are free; the interpreter plans
its memory anew when they change. int8 is the converter's dynamic quantisation, one scale a column.
"""

import tempfile
from pathlib import Path

import keras
import tensorflow as tf

from official_bert.backend.tensorflow_start import quiet
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_write
from official_bert.export.answers import Answers
from official_bert.export.packed_encoder import PackedAnswers
from official_bert.tokenization.graph.in_graph_packing import Packed

FILE = "model.tflite"


def write(path: Path, answers: Answers) -> None:
    """Write `Answers` as `path`, with one signature, `serving_default`.

    Raises:
      UserError: Keras computes with another backend than TensorFlow.
    """
    if keras.backend.backend() != "tensorflow":
        raise UserError("LiteRT exports need KERAS_BACKEND=tensorflow")
    model = _LiteRTAnswers(answers)
    specs = {
        name: tf.TensorSpec([None] * dimensions, tf.int32, name)
        for name, dimensions in answers.inputs.items()
    }
    holder = tf.Module()
    holder.parts = model.parts
    function = tf.function(lambda **batch: model(batch), autograph=False)
    with tf.device("CPU"), tempfile.TemporaryDirectory() as folder, quiet():
        tf.saved_model.save(holder, folder, signatures=function.get_concrete_function(**specs))
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        if answers.settings.precision == "int8":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        content = converter.convert()
    with atomic_write(path, "wb") as file:
        file.write(content)


def run(path: Path, batch: dict) -> dict:
    """Return LiteRT's answer to a batch: {output: array}."""
    from ai_edge_litert.interpreter import Interpreter

    with quiet():
        return Interpreter(str(path)).get_signature_runner()(**batch)


class _LiteRTAnswers(PackedAnswers):
    """Answers to padded rows, with operations that LiteRT has."""

    def __init__(self, made: Answers):
        super().__init__(made.loaded, made.head, made.settings, transpose=tf.transpose)

    def encode(self, batch):
        shape = tf.shape(batch["input_ids"])
        flat = {name: tf.reshape(x, [-1]) for name, x in batch.items()}
        positions = tf.tile(tf.range(shape[1]), shape[:1])
        packed = Packed(flat["input_ids"], flat["segment_ids"], positions, None)
        states = self.encoder.hidden_states(packed, _PaddedRows(batch["input_mask"], shape))
        states = [tf.reshape(x, [shape[0], shape[1], self.config.hidden_size]) for x in states]
        summary = self.loaded.encoder.summary_token(states[-1], batch["input_mask"])
        encoded = {"sequence_output": states[-1], "pooled_output": self.encoder.pool(summary)}
        return encoded | ({"vectors": self.joined(states)} if self.reads_layers else {})


class _PaddedRows:
    """The interface of `PackedRows` on padded rows: every place of [B, L] counts as a token."""

    def __init__(self, input_mask, shape):
        self.mask, self.length, self._shape = input_mask > 0, shape[1], shape

    def spread(self, x):
        return tf.reshape(x, [self._shape[0], self._shape[1], x.shape[-1]])

    def collect(self, x):
        return x
