"""The teacher of a run: read once, built beside each student."""

import dataclasses
import functools
from typing import Any

from experiments.beyond.distil import teacher_fit, teachers
from experiments.beyond.distil.checks import as_fine_tuned, same_vocabulary
from experiments.beyond.distil.costs import teacher_step_flops
from experiments.beyond.distil.distillation import Distilled, taught
from experiments.training.folder.inputs import checkpoint_digest
from experiments.training.settings.options import Options, RunHooks
from experiments.training.start import initial_state
from official_bert.checkpoints import model_folder
from official_bert.heads import build_head


@dataclasses.dataclass(frozen=True)
class ReadTeacher(RunHooks):
    """A teacher's shape and weights, and its part in a run.

    Attributes:
      start: its InitialState.
      digest: of its files. It is in the key of a compiled step, which holds the teacher, and in
        that of a run, which goes on with the teacher it began with.
      options: of the run.
    """

    start: initial_state.InitialState
    digest: str
    options: Any

    @classmethod
    def of(cls, path: str, tokenizer, options: Options) -> "ReadTeacher":
        """Read a teacher.

        Args:
          tokenizer: the student's.

        Raises:
          UserError: it cannot be read, or its vocabulary is another one.
        """
        start = initial_state.read_model(path, "distillation")
        same_vocabulary(path, tokenizer, start.tokenizer)
        return cls(start, checkpoint_digest(path), options)

    @property
    def key(self):
        return self.digest, self.options

    def objectives(self, objectives):
        return taught(objectives, self.pretrained())

    def begin(self, model):
        """Give a BertPretrainer the layers of its teacher that the options ask for."""
        if self.options.teacher_layers:
            teacher = next(one.teacher for one in model.objectives if not one.kept)
            own, theirs = model.encoder.config, teacher.config
            choose = functools.partial(teacher_fit.chosen_layers, self.options.teacher_layers)
            layers = choose(own.num_hidden_layers, theirs.num_hidden_layers)
            teachers.begin_with(model, teacher, layers)

    def wrap(self, model, start, config, head, seed):
        learnt = self.fine_tuned(config, head)
        return Distilled(
            model, learnt, self.options.teacher_temperature, self.options.teacher_weight
        )

    def pretraining_results(self, batches):
        objectives, bert = batches.specs, self.start.bert
        flops = sum(teacher_step_flops(bert, objectives, *shape) for shape in batches.shapes())
        found = {"digest": self.digest, "flops": flops, "students_flops": batches.flops()}
        return {"teacher": found}

    def finetuning_results(self, state, config):
        # Counted as if every text had the full length.
        flops = self.start.bert.encoder_flops(state.examples, config.max_seq_length)
        return {"teacher": {"digest": self.digest, "flops": flops}}

    def pretrained(self) -> teachers.Teacher:
        """Return the teacher with its pre-training heads, where it has them."""
        encoder, model = model_folder.build(self.start.bert, self.start.head, seed=0)
        initial_state.assign(encoder.trainable_variables, self.start.weights)
        for variable in model.trainable_variables if self.start.head_weights else ():
            if variable.path in self.start.head_weights:
                variable.assign(self.start.head_weights[variable.path])
        return teachers.Teacher(model)

    def fine_tuned(self, config, head) -> teachers.Teacher:
        """Return the fine-tuned teacher with its head, in the task's order of labels.

        Args:
          config: FinetuneConfig.
          head: `Task.head`.
        """
        bilstm, head = bool(self.start.head.get("bilstm")), as_fine_tuned(self.start.head, head)
        model = build_head(self.start.encoder(config, 0), head, bilstm=bilstm, seed=0)
        self.start.keep_head(model, head, bilstm)
        return teachers.Teacher(model)
