"""Distillation while fine-tuning: a model with a head learns its teacher's answers and the labels.

TinyBERT's second step (Jiao et al. 2020, section 3.2, "prediction-layer distillation") is the
teacher's answers alone, at temperature 1; DistilBERT's for SQuAD is both in equal parts at
temperature 2. TinyBERT's augmented data and its distillation of layers on the task are not here.
"""

from keras import ops

from official_bert.common.errors import UserError
from official_bert.family.distillation import soft_target_losses
from official_bert.losses import WithOneMoreLoss, weighted_sum


class Distilled(WithOneMoreLoss):
    """A model of `official_bert.heads` that learns from another one of the same head.

    In evaluation it is the student alone, and so is what is saved.

    Args:
      student: the model to train.
      teacher: a `teachers.Teacher` whose model has the student's head and order of labels.
      temperature: what logits are divided by before they are compared.
      weight: share of the teacher's answers in the loss, 0 to 1; the rest is the labels'.

    Raises:
      UserError: the teacher's head is another one.
    """

    def __init__(self, student, teacher, temperature: float = 1.0, weight: float = 0.5):
        super().__init__(student, "soft_loss", name="distilled")
        for name in ("problem", "num_labels"):
            ours, theirs = getattr(student, name, None), getattr(teacher.model, name, None)
            if type(student) is not type(teacher.model) or ours != theirs:
                raise UserError(
                    f"the student is a {type(student).__name__} ({name} {ours}), its teacher a "
                    f"{type(teacher.model).__name__} ({name} {theirs}): both must be the same"
                )
        self.teacher = teacher
        self.temperature = temperature
        of_labels = ("label_loss", "start_loss", "end_loss")
        self.loss_weights = dict.fromkeys(of_labels, 1.0 - weight) | {"soft_loss": weight}
        self.built = True

    def call(self, batch, training=False, seed=None):
        """The student's outputs; in training also the teacher's, each with "teacher_" before it."""
        outputs = self.student(batch, training=training, seed=seed)
        if not training:
            return outputs
        theirs = {f"teacher_{name}": x for name, x in self.teacher.answer(batch).items()}
        return outputs | theirs

    def loss_terms(self, batch, outputs):
        """The student's, and "soft_loss", the mean over its kinds of logits (a span has two)."""
        terms = self.student.loss_terms(batch, outputs)
        pairs = [(x, outputs[f"teacher_{n}"]) for n, x in outputs.items()
                 if f"teacher_{n}" in outputs]  # fmt: skip
        if pairs:
            losses = sum(self._compare(*pair) for pair in pairs) / len(pairs)
            terms["soft_loss"] = weighted_sum(losses, self.student.label_weights(batch))
        return terms

    def _compare(self, own, theirs):
        """How far two tensors of logits are apart, [..., N] -> [...]."""
        problem = getattr(self.student, "problem", "single_label")
        if problem == "regression":
            return ops.square(own[:, 0] - theirs[:, 0])
        if problem == "multi_label":  # each label is a question of its own with two answers
            pairs = (ops.stack([x, ops.zeros_like(x)], axis=-1) for x in (own, theirs))
            return ops.mean(soft_target_losses(*pairs, self.temperature), axis=-1)
        return soft_target_losses(own, theirs, self.temperature)

    def get_config(self):
        raise UserError(
            "a .keras file is of a model without its teacher: save the attribute student"
        )
