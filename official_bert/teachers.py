"""Teachers: trained models that smaller ones learn from (distillation, Hinton et al. 2015).

What a student compares with is in `objectives.distillation` (pre-training) and `distilled`
(fine-tuning); here is what a teacher is, and how a student may begin with some of its layers.
"""

import re

import keras
from keras import ops

from official_bert.checkpoints.names import named_variables
from official_bert.errors import UserError


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
        """What its encoder makes of a batch (see `BertEncoder`), without dropout or gradients."""
        encoded = self.encoder(batch, training=False, return_attention=return_attention)
        return keras.tree.map_structure(ops.stop_gradient, encoded)

    def answer(self, batch) -> dict:
        """What the model makes of a batch, without dropout or gradients."""
        outputs = self.model(batch, training=False)
        return keras.tree.map_structure(ops.stop_gradient, outputs)


def chosen_layers(written: str, student: int, teacher: int) -> list[int]:
    """Layers of a teacher for a student to begin with, counted from 0.

    Args:
      written: "even": from the first to the last at equal distances, which is DistilBERT's choice
        for 6 of 12, 0, 2, 4, 7, 9, 11; or numbers with commas between.
      student, teacher: layers of each.

    Raises:
      UserError: other than one layer for each of the student's, or one that the teacher lacks.

    >>> chosen_layers("even", 6, 12)
    [0, 2, 4, 7, 9, 11]
    """
    if student > teacher:
        raise UserError(f"the student has {student} layers, its teacher only {teacher}")
    if written == "even":
        return [int(i * (teacher - 1) / max(1, student - 1) + 0.5) for i in range(student)]
    numbers = [number.strip() for number in written.split(",")]
    if not all(number.isdecimal() for number in numbers):
        raise UserError(f"{written!r} is neither even nor numbers with commas, as 0,2,4")
    layers = list(map(int, numbers))
    if len(layers) != student or max(layers) >= teacher:
        raise UserError(
            f"{written} names {len(layers)} layers; the student needs {student}, of the "
            f"teacher's 0 to {teacher - 1}"
        )
    return layers


def copy_layers(student, teacher, layers: list[int]) -> None:
    """Gives a student's encoder a teacher's embeddings and some of its layers, number by number.

    Args:
      student, teacher: two `BertEncoder`s; the student may lack the teacher's segments and pooler.
      layers: of the teacher, one for each of the student's.

    Raises:
      UserError: the student has a weight that the teacher lacks or has in another shape.
    """
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
