"""A served model without the time that an export takes."""

from pathlib import Path

import tensorflow as tf

from official_bert.serving import exports
from official_bert.serving.client import ExportedModel
from official_bert.serving.in_memory import in_memory
from official_bert.serving.settings import ServingSettings


class Unsaved(ExportedModel):
    """What `load(export(loaded))` gives, with the signature for texts only."""

    def __init__(self, loaded, **settings):
        self.path = Path("1")
        settings = ServingSettings.of_model(loaded, **settings)
        head = exports.choose_head(loaded, None, "the model")
        served = in_memory(loaded, head, settings)
        self.description = exports.description(loaded, head, list(served.text_inputs), settings)
        specs = {
            name: tf.TensorSpec(shape, tf.string, name=name)
            for name, shape in served.text_inputs.items()
        }

        def answer(**texts):  # called by name, as signatures are
            return served.answer_texts(**texts)

        run = tf.function(answer, autograph=False).get_concrete_function(**specs)
        self.signatures = {"serving_default": run}
