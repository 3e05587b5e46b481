"""The options of a teacher, and their checks; without Keras."""

import dataclasses

from experiments.beyond.distil.checks import check_length, same_head, same_vocabulary
from experiments.beyond.distil.costs import teacher_step_flops
from experiments.beyond.distil.teacher_fit import check_fit, chosen_layers
from experiments.training.settings.options import Options, check_positive, check_share, path_field
from experiments.training.start import preflight
from official_bert.checkpoints import model_folder, model_settings
from official_bert.common.errors import UserError
from official_bert.objectives import parse_spec

OBJECTIVES = ("soft_targets", "cosine_states", "transformer_layers")


@dataclasses.dataclass(frozen=True)
class PretrainTeacher(Options):
    """The teacher of a pre-training."""

    # Distillation: the model, a folder or a name, that objectives compare with.
    teacher: str = path_field()
    # Its layers whose weights the student begins with: "even" or "0,2,4"; "": random weights.
    teacher_layers: str = ""

    def check_pretraining(self, config, bert, tokenizer):
        """Check the teacher of a pre-training.

        Raises:
          UserError: a teacher is missing, is not asked for, or does not fit the student.
        """
        names = [parse_spec(written)[0] for written in config.objectives]
        learning = [name for name in names if name in OBJECTIVES]
        if not self.teacher:
            what = f"objective {learning[0]}" if learning else "teacher_layers"
            raise UserError(f"{what}: there is no teacher; give a model with --config.teacher=")
        if not learning:
            raise UserError(
                f"--config.teacher={self.teacher}: no objective learns from it; add soft_targets, "
                "cosine_states or transformer_layers to --config.objectives, as --config=distil "
                "does"
            )
        if self.teacher_layers and config.init_from:
            raise UserError("a model begins with init_from or with teacher_layers, not with both")
        teacher, theirs = preflight.peek(self.teacher, "teacher")
        same_vocabulary(self.teacher, tokenizer, theirs)
        if not (bert and teacher):
            return
        try:
            for name in learning:
                check_fit(name, bert, teacher)
        except UserError as error:
            raise UserError(f"--config.teacher={self.teacher}: {error}") from None
        longest = max(phase.max_seq_length for phase in config.phases)
        check_length(self.teacher, longest, teacher)
        if self.teacher_layers:
            layers = bert.num_hidden_layers, teacher.num_hidden_layers
            try:
                chosen_layers(self.teacher_layers, *layers)
            except UserError as error:
                message = f"--config.teacher_layers={self.teacher_layers}: {error}"
                raise UserError(message) from None

    def planned(self, config, model_of):
        """Return the teacher's folder, and its work; the key of a teacher's cell is in the
        student's."""
        folder, bert = model_of("teacher", self.teacher)
        placed = dataclasses.replace(self, teacher=folder)
        return placed, lambda *shape: teacher_step_flops(bert, config.objectives, *shape)

    def prepare(self, config, start, head):
        from experiments.beyond.distil.teacher import ReadTeacher

        return ReadTeacher.of(self.teacher, start.tokenizer, self)


@dataclasses.dataclass(frozen=True)
class FinetuneTeacher(Options):
    """The teacher of a fine-tuning."""

    # Distillation: a model that was fine-tuned for the same task; "": none.
    teacher: str = path_field()
    teacher_temperature: float = 1.0
    # Share of its answers in the loss; the rest is the labels'.
    teacher_weight: float = 0.5

    def __post_init__(self):
        check_positive(self, "teacher_temperature")
        check_share(self, "teacher_weight", "it is a share of the loss")

    @property
    def adds_loss(self):
        return bool(self.teacher)

    def check_finetuning(self, config, task, tokenizer):
        """Check the teacher of a fine-tuning.

        Raises:
          UserError: the teacher does not fit task or student.
        """
        if not self.teacher:
            return
        if config.features:
            raise UserError(
                "--config.teacher is for fine-tuning; with features the encoder is frozen"
            )
        bert, theirs = preflight.peek(self.teacher, "teacher")
        same_vocabulary(self.teacher, tokenizer, theirs)
        if bert:
            check_length(self.teacher, config.max_seq_length, bert)
        if model_folder.is_model_folder(self.teacher):
            same_head(self.teacher, model_settings.read_settings(self.teacher), task.head)

    def prepare(self, config, start, head):
        from experiments.beyond.distil.teacher import ReadTeacher

        if not self.teacher:
            return self
        read = ReadTeacher.of(self.teacher, start.tokenizer, self)
        same_head(self.teacher, read.start.head, head)
        return read
