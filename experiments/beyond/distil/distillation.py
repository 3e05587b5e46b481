"""Distillation: a student that learns from its teacher, as DistilBERT and TinyBERT do.

In pre-training DistilBERT (Sanh et al. 2019) is `masked_lm` with weight 2 beside `soft_targets` and
`cosine_states`; TinyBERT's general distillation (Jiao et al. 2020) is `transformer_layers` alone.
The teacher reads what the student reads, masks included, without dropout.
"""

import dataclasses
from typing import ClassVar

from keras import ops

from experiments.beyond.common.losses import WithOneMoreLoss
from experiments.beyond.distil import teacher_fit
from experiments.beyond.distil.teachers import Teacher
from official_bert.common.errors import UserError
from official_bert.layers import dense, gather_positions
from official_bert.losses import row_weights, weighted_sum
from official_bert.objectives import objective
from official_bert.objectives.protocol import Loss, Objective


@dataclasses.dataclass(frozen=True)
class _OfTeacher(Objective):
    """An objective that needs a teacher, which `taught` gives to all objectives of a model.

    Objectives that differ only in their teacher are equal."""

    teacher: ClassVar[Teacher | None] = None  # of a copy that `taught` makes
    kept = False

    @property
    def read_only(self):
        return self.teacher.variables

    def build(self, model, initializer):
        if self.teacher is None:
            raise UserError(
                f"objective {self.name}: there is no teacher; name one with --config.teacher, or "
                "pass taught(objectives, Teacher(model)) to BertPretrainer"
            )
        teacher_fit.check_fit(self.name, model.encoder.config, self.teacher.config)

    def encode(self, model, batch, encoded):
        """Add the outputs of the teacher's encoder to the batch as "teacher", once."""
        if "teacher" in encoded:
            return encoded
        attention = any(one.reads_attention for one in model.objectives)
        return {**encoded, "teacher": self.teacher.encode(batch, return_attention=attention)}


def taught(objectives, teacher: Teacher) -> list[Objective]:
    """Return the objectives, those that need a teacher with this one.

    Args:
      objectives: as `official_bert.objectives` writes them.
    """
    made = [dataclasses.replace(objective(one)) for one in objectives]
    for one in made:
        if isinstance(one, _OfTeacher):
            object.__setattr__(one, "teacher", teacher)
    return made


@dataclasses.dataclass(frozen=True)
class SoftTargets(_OfTeacher):
    """Distance of the student's probabilities of the pieces from the teacher's.

    Stands beside "masked_lm", whose scores it compares.

    Attributes:
      temperature: what scores are divided by before the softmax.
      weight: of this loss.
      every_token: compare at every real token, as DistilBERT's training did, and not only at the
        masked positions (`restrict_ce_to_mask` there).
    """

    temperature: float = 2.0
    weight: float = 5.0
    every_token: bool = True

    name = "soft_targets"
    needs = ("masked_lm_positions", "masked_lm_weights")
    metrics = ("teacher_agreement",)

    @property
    def losses(self):
        return {"soft_target_loss": Loss(self.weight)}

    def build(self, model, initializer):
        super().build(model, initializer)
        if not hasattr(model, "masked_lm"):
            raise UserError('objective soft_targets: put "masked_lm" before it')
        if not hasattr(self.teacher.model, "masked_lm"):
            raise UserError("objective soft_targets: the teacher has no masked-LM head")

    def call(self, model, batch, encoded):
        """Return the logits; P is L, every token, or the number of masked positions.

        Returns:
          {"student_logits", "teacher_logits": float32 [B, P, V], "soft_target_weights": [B, P]}
        """

        def logits(one, sequence):
            if not self.every_token:
                sequence = gather_positions(sequence, batch["masked_lm_positions"])
            return one.masked_lm(sequence, one.encoder.embeddings.word_embeddings)

        teacher = logits(self.teacher.model, encoded["teacher"]["sequence_output"])
        weights = batch["input_mask"] if self.every_token else batch["masked_lm_weights"]
        return {
            "student_logits": logits(model, encoded["sequence_output"]),
            "teacher_logits": ops.stop_gradient(teacher),
            "soft_target_weights": ops.cast(weights, "float32"),
        }

    def loss_terms(self, batch, outputs):
        logits = outputs["student_logits"], outputs["teacher_logits"]
        losses = soft_target_losses(*logits, self.temperature)
        return {"soft_target_loss": weighted_sum(losses, self._weights(batch, outputs))}

    def metric_terms(self, batch, outputs):
        best = [ops.argmax(outputs[f"{who}_logits"], axis=-1) for who in ("student", "teacher")]
        agree = ops.cast(ops.equal(*best), "float32")
        return {"teacher_agreement": weighted_sum(agree, self._weights(batch, outputs))}

    def _weights(self, batch, outputs):
        weights = outputs["soft_target_weights"]
        return weights * row_weights(batch, weights)[:, None]


@dataclasses.dataclass(frozen=True)
class CosineStates(_OfTeacher):
    """1 minus the cosine of the last states of student and teacher, at every real token."""

    weight: float = 1.0

    name = "cosine_states"
    needs = ()

    @property
    def losses(self):
        return {"cosine_loss": Loss(self.weight)}

    def call(self, model, batch, encoded):
        """Return {"cosines": float32 [B, L], "cosine_weights": float32 [B, L]}."""
        own, theirs = encoded["sequence_output"], encoded["teacher"]["sequence_output"]
        return {
            "cosines": cosines(own, theirs),
            "cosine_weights": ops.cast(batch["input_mask"], "float32"),
        }

    def loss_terms(self, batch, outputs):
        weights = outputs["cosine_weights"]
        weights = weights * row_weights(batch, weights)[:, None]
        return {"cosine_loss": weighted_sum(1 - outputs["cosines"], weights)}


@dataclasses.dataclass(frozen=True)
class TransformerLayers(_OfTeacher):
    """Squared distances of attention scores and hidden states, layer by layer (TinyBERT).

    Layer i of S is compared with layer i * T / S of the teacher's T, counted from 1, and embeddings
    with embeddings. States go through one dense layer to the teacher's width first, which all
    layers share. Scores are those before the softmax.

    The mean is over real tokens and pairs of them; TinyBERT's code counts padding too, so that its
    losses depend on how far a batch is padded.

    Attributes:
      attention_weight, states_weight: of the two losses.
    """

    attention_weight: float = 1.0
    states_weight: float = 1.0

    name = "transformer_layers"
    needs = ()
    reads_attention = True

    @property
    def losses(self):
        return {
            "attention_loss": Loss(self.attention_weight),
            "states_loss": Loss(self.states_weight),
        }

    def build(self, model, initializer):
        super().build(model, initializer)
        student, teacher = model.encoder.config, self.teacher.config
        widths = student.hidden_size, teacher.hidden_size
        model.to_teacher = dense(*widths, initializer, model.dtype_policy, "to_teacher")

    def call(self, model, batch, encoded):
        """Return distances summed over the layers, and their weights.

        Returns:
          {"attention_distances", "attention_weights": float32 [B, L, L],
          "state_distances", "state_weights": float32 [B, L]}
        """
        teacher = encoded["teacher"]
        step = len(teacher["attention_scores"]) // len(encoded["attention_scores"])
        scores = zip(encoded["attention_scores"], teacher["attention_scores"][step - 1 :: step],
                     strict=True)  # fmt: skip
        states = zip(map(model.to_teacher, encoded["hidden_states"]),
                     teacher["hidden_states"][::step], strict=True)  # fmt: skip
        real = ops.cast(batch["input_mask"], "float32")
        return {
            "attention_distances": sum(_squared_distance(x, y, axis=1) for x, y in scores),
            "attention_weights": real[:, :, None] * real[:, None, :],
            "state_distances": sum(_squared_distance(x, y, axis=-1) for x, y in states),
            "state_weights": real,
        }

    def loss_terms(self, batch, outputs):
        rows = row_weights(batch, outputs["state_weights"])
        pairs = outputs["attention_weights"] * rows[:, None, None]
        return {
            "attention_loss": weighted_sum(outputs["attention_distances"], pairs),
            "states_loss": weighted_sum(
                outputs["state_distances"], outputs["state_weights"] * rows[:, None]
            ),
        }


class Distilled(WithOneMoreLoss):
    """Distillation while fine-tuning: a model of `official_bert.heads` learns its teacher's answers
    and the labels. In evaluation it is the student alone, and so is what is saved.

    TinyBERT's second step (section 3.2, "prediction-layer distillation") is the teacher's answers
    alone, at temperature 1; DistilBERT's for SQuAD is both in equal parts at temperature 2.
    TinyBERT's augmented data and its distillation of layers on the task are not here.

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
        self.teacher = teacher  # not a Keras layer: its weights are not the student's
        self.temperature = temperature
        of_labels = ("label_loss", "start_loss", "end_loss")
        self.loss_weights = dict.fromkeys(of_labels, 1.0 - weight) | {"soft_loss": weight}
        self.built = True

    @property
    def read_only(self):
        return self.teacher.variables

    def call(self, batch, training=False, seed=None):
        """Return the student's outputs; in training also the teacher's, each with "teacher_" before
        it."""
        outputs = self.student(batch, training=training, seed=seed)
        if not training:
            return outputs
        theirs = {f"teacher_{name}": x for name, x in self.teacher.answer(batch).items()}
        return outputs | theirs

    def loss_terms(self, batch, outputs):
        """Return the student's loss terms and "soft_loss", the mean over its kinds of logits (a
        span has two)."""
        terms = self.student.loss_terms(batch, outputs)
        pairs = [(x, outputs[f"teacher_{n}"]) for n, x in outputs.items()
                 if f"teacher_{n}" in outputs]  # fmt: skip
        if pairs:
            losses = sum(self._compare(*pair) for pair in pairs) / len(pairs)
            terms["soft_loss"] = weighted_sum(losses, self.student.label_weights(batch))
        return terms

    def _compare(self, own, theirs):
        """Return the distance between two tensors of logits, [..., N] -> [...]."""
        problem = getattr(self.student, "problem", "single_label")
        if problem == "regression":
            return ops.square(own[:, 0] - theirs[:, 0])
        if problem == "multi_label":  # each label is a question of its own with two answers
            pairs = (ops.stack([x, ops.zeros_like(x)], axis=-1) for x in (own, theirs))
            return ops.mean(soft_target_losses(*pairs, self.temperature), axis=-1)
        return soft_target_losses(own, theirs, self.temperature)


def soft_target_losses(student, teacher, temperature: float):
    """Return Kullback-Leibler divergence of softened probabilities, times the square of the
    temperature.

    Its gradient is that of the cross entropy with the teacher's probabilities; the square keeps it
    as large at every temperature.

    Args:
      student, teacher: logits of any float dtype, [..., N].

    Returns: float32 [...].
    """
    own, theirs = (
        ops.log_softmax(ops.cast(logits, "float32") / temperature, axis=-1)
        for logits in (student, teacher)
    )
    return temperature**2 * ops.sum(ops.exp(theirs) * (theirs - own), axis=-1)


def cosines(x, y):
    """Return cosines of vectors: [..., H] twice -> float32 [...]."""
    x, y = ops.cast(x, "float32"), ops.cast(y, "float32")
    squares = [ops.sum(ops.square(vector), axis=-1) + 1e-12 for vector in (x, y)]
    return ops.sum(x * y, axis=-1) * ops.rsqrt(squares[0] * squares[1])


def _squared_distance(x, y, axis):
    difference = ops.cast(x, "float32") - ops.cast(y, "float32")
    return ops.mean(ops.square(difference), axis=axis)
