"""Teachers: trained models that smaller ones learn from (distillation, Hinton et al. 2015).

`distillation` has the student's losses; here is the teacher, and how a student may begin with some
of its layers.
"""

import re

import keras
from keras import ops

from official_bert.backend.variables import named_variables
from official_bert.common.errors import UserError


class Teacher:
    """A trained model that another one reads, and that is never trained, decayed or saved with it.

    On purpose no Keras layer: the weights of a layer would count among the student's.

    Args:
      model: a `BertEncoder`, a `BertPretrainer` or a model of `official_bert.heads`.
    """

    def __init__(self, model):
        model.trainable = False
        self.model = model
        self.encoder = getattr(model, "encoder", model)
        self.config = self.encoder.config

    @property
    def variables(self) -> list:
        return self.model.variables

    def encode(self, batch, return_attention: bool = False) -> dict:
        """Encode a batch (see `BertEncoder`), without dropout or gradients."""
        encoded = self.encoder(batch, training=False, return_attention=return_attention)
        return keras.tree.map_structure(ops.stop_gradient, encoded)

    def answer(self, batch) -> dict:
        """Compute the model's outputs for a batch, without dropout or gradients."""
        outputs = self.model(batch, training=False)
        return keras.tree.map_structure(ops.stop_gradient, outputs)


def begin_with(model, teacher: Teacher, layers: list[int]) -> None:
    """Give a student the teacher's embeddings, some of its layers and its masked-LM head.

    Args:
      model: a `BertPretrainer` or `BertEncoder`; it may lack the teacher's segments and pooler.
      teacher: its teacher.
      layers: of `teacher_fit.chosen_layers`.

    Raises:
      UserError: the student has a weight that the teacher lacks or has in another shape.
    """
    _copy_layers(getattr(model, "encoder", model), teacher.encoder, layers)
    if hasattr(model, "masked_lm") and hasattr(teacher.model, "masked_lm"):
        heads = model.masked_lm.weights, teacher.model.masked_lm.weights
        for own, theirs in zip(*heads, strict=True):
            own.assign(ops.convert_to_numpy(theirs))


def _copy_layers(student, teacher, layers):
    if student.config.num_blocks != student.config.num_hidden_layers:
        raise UserError("a student whose layers share weights cannot begin with a teacher's")
    theirs = named_variables(teacher)
    for name, variable in named_variables(student).items():
        if block := re.match(r"layer_(\d+)/", name):
            source = f"{teacher.block_of(layers[int(block[1])]).name}/{name[block.end() :]}"
        else:
            source = name
        shape = tuple(theirs[source].shape) if source in theirs else None
        if shape != tuple(variable.shape):
            raise UserError(
                f"the student's {name} is {list(variable.shape)}, the teacher's "
                f"{list(shape) if shape else 'absent'}; a student that begins with a teacher's "
                "layers has its widths, positions and vocabulary"
            )
        variable.assign(ops.convert_to_numpy(theirs[source]))
