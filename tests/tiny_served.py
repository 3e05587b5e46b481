"""A served model without the time that an export takes."""

import functools
from pathlib import Path

import tensorflow as tf

from official_bert.export import client, exports
from official_bert.export.saved_model import in_memory
from official_bert.export.settings import ServingSettings


class Unsaved(client.ExportedModel):
    """The result of `load(export(loaded))`, with the signature for texts only.

    It answers as `predict` does, operation after operation: a graph takes seconds to be optimised.
    """

    def __init__(self, loaded, **settings):
        self.path = Path("1")
        settings = ServingSettings.from_loaded(loaded, **settings)
        head = exports.choose_head(loaded, None, "the model")
        self._served = in_memory(loaded, head, settings)
        inputs = list(self._served.text_inputs)
        self.description = exports.description(loaded, head, inputs, settings)

    @functools.cached_property
    def signatures(self):
        inputs = self._served.text_inputs.items()
        specs = {name: tf.TensorSpec(shape, tf.string, name=name) for name, shape in inputs}

        def answer(**texts):  # called by name, as signatures are
            return self._served.answer_texts(**texts)

        run = tf.function(answer, autograph=False).get_concrete_function(**specs)
        return {"serving_default": run}

    def __call__(self, signature="serving_default", **texts):
        tensors = {name: tf.constant(value, tf.string) for name, value in texts.items()}
        answer = self._served.answer_texts(**tensors)
        return {name: client._readable(value.numpy()) for name, value in answer.items()}
