"""The teacher of a run: read once, built beside each student."""

import dataclasses
import functools

from experiments.training.folder.inputs import checkpoint_digest
from experiments.training.start import starting_point, teacher_checks
from official_bert.checkpoints import model_folder
from official_bert.family import teacher_fit, teachers
from official_bert.family.distillation import Distilled
from official_bert.heads import build_head
from official_bert.window_pooling import OF_TOKENS


@dataclasses.dataclass(frozen=True)
class ReadTeacher:
    """A teacher's shape and weights.

    Attributes:
      start: its StartingPoint.
      digest: of its files. It is in the key of a compiled step, which holds the teacher, and in
        that of a run, which goes on with the teacher it began with.
    """

    start: starting_point.StartingPoint
    digest: str

    def pretrained(self) -> teachers.Teacher:
        """With its pre-training heads, where it has them."""
        encoder, model = model_folder.build(self.start.bert, self.start.head, seed=0)
        starting_point.assign(encoder.trainable_variables, self.start.weights)
        for variable in model.trainable_variables if self.start.head_weights else ():
            if variable.path in self.start.head_weights:
                variable.assign(self.start.head_weights[variable.path])
        return teachers.Teacher(model)

    def fine_tuned(self, config, head) -> teachers.Teacher:
        """With its head, in the task's order of labels.

        Args:
          config: FinetuneConfig.
          head: `Task.head`.
        """
        bilstm = bool(self.start.head.get("bilstm"))
        head = {**head, **{name: bool(self.start.head.get(name)) for name in OF_TOKENS}}
        model = build_head(self.start.encoder(config, 0), head, bilstm=bilstm, seed=0)
        self.start.keep_head(model, head, bilstm)
        return teachers.Teacher(model)


def of(config, tokenizer) -> ReadTeacher | None:
    """The teacher that a configuration names.

    Args:
      config: PretrainConfig or FinetuneConfig.
      tokenizer: the student's.

    Raises:
      UserError: it cannot be read, or its vocabulary is another one.
    """
    if not config.teacher:
        return None
    start = starting_point.read_model(config.teacher, "distillation")
    teacher_checks.same_vocabulary(config.teacher, tokenizer, start.tokenizer)
    return ReadTeacher(start, checkpoint_digest(config.teacher))


def begin(model, config) -> None:
    """Gives a BertPretrainer the layers of its teacher that a PretrainConfig asks for."""
    if config.teacher_layers:
        own, theirs = model.encoder.config, model.teacher.config
        choose = functools.partial(teacher_fit.chosen_layers, config.teacher_layers)
        layers = choose(own.num_hidden_layers, theirs.num_hidden_layers)
        teachers.begin_with(model, model.teacher, layers)


def distilled(model, teacher: ReadTeacher | None, config, head):
    """A model to fine-tune, beside its teacher where there is one."""
    if teacher is None:
        return model
    learnt = teacher.fine_tuned(config, head)
    return Distilled(model, learnt, config.teacher_temperature, config.teacher_weight)
