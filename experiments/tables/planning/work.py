"""The work of a training before it runs: its steps, their FLOPs, and the bytes that it leaves."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from data_prep.pretraining.record_options import RecordOptions
from experiments.training.settings.config import FinetuneConfig, PretrainConfig
from experiments.training.settings.flops import RATE, pretraining_step_flops, usual_predictions
from experiments.training.start import initialization
from experiments.training.start.initialization import ModelSource

START_SECONDS = 8.0  # model, compilation and checkpoints of one run
RESULT_BYTES = 1e5  # results, metrics and scores of one fine-tuning
# Mean pieces of a paragraph and of a question in SQuAD's training data, vocabularies of 8,192 to
# 30,522 pieces.
SQUAD_PARAGRAPH, SQUAD_QUESTION = 157, 13


@dataclasses.dataclass(frozen=True)
class Steps:
    """Training steps of one shape: a phase of a pre-training, or a whole fine-tuning.

    Attributes:
      bert: BertConfig of the model.
      rows, length: of a batch.
      precision: of the computation.
      flops: of the model in all these steps.
      beside_flops: of all that works beside the model, such as a teacher.
    """

    bert: Any
    rows: int
    length: int
    precision: str
    flops: float
    beside_flops: float = 0.0

    def seconds(self, rate: float) -> float:
        """Return the seconds at a rate of FLOPs a second."""
        return (self.flops + self.beside_flops) / rate


@dataclasses.dataclass(frozen=True)
class Work:
    """The work of one training.

    Attributes:
      steps: one item for each shape; none where no network is trained.
      bytes: that stay on disk.
      rate: FLOPs a second of the kind of start; None where a step of BERT's tells it.
    """

    steps: tuple[Steps, ...]
    bytes: float
    rate: float | None = None

    @property
    def flops(self) -> float:
        return sum(one.flops for one in self.steps)

    @property
    def beside_flops(self) -> float:
        return sum(one.beside_flops for one in self.steps)

    @property
    def usual_seconds(self) -> float:
        """Return the seconds on two cores, where nothing was measured."""
        return START_SECONDS + sum(one.seconds(self.rate or RATE) for one in self.steps)


def of_pretraining(
    config: PretrainConfig,
    records: Mapping[str, RecordOptions] | None = None,
    beside: Sequence[Callable] = (),
    steps_taken: int = 0,
) -> Work:
    """Return the work of a pre-training.

    Args:
      records: {`Phase.records`: their options}, where these are known.
      beside: functions of a step's (rows, length, masked), of `Options.planned`.
      steps_taken: steps that the run's trunk has taken before.
    """
    bert, found = config.bert_config, []
    for phase in config.phases:
        steps = max(0, phase.num_train_steps - steps_taken)
        steps_taken = max(0, steps_taken - phase.num_train_steps)
        if not steps:
            continue
        made = (records or {}).get(phase.records)
        length = phase.max_seq_length or (made.max_seq_length if made else 0)
        masked = made.max_predictions_per_seq if made else usual_predictions(length)
        rows = phase.train_batch_size or config.train_batch_size
        flops = pretraining_step_flops(bert, config.objectives, rows, length, masked)
        others = sum(flops_of(rows, length, masked) for flops_of in beside)
        totals = flops * steps, others * steps
        found.append(Steps(bert, rows, length, config.precision, *totals))
    # A checkpoint has the weights and both Adam moments in float32, the model the weights.
    size = (12 * config.keep_checkpoints + 4) * bert.num_parameters
    return Work(tuple(found), size, initialization.of(config).rate)


def of_finetuning(
    config: FinetuneConfig, source: ModelSource, bert, examples: tuple[int, int]
) -> Work:
    """Return the work of a fine-tuning.

    Args:
      source: its ModelSource.
      bert: BertConfig of its model.
      examples: numbers of training and dev examples.
    """
    rows = (round(count * windows(config)) for count in examples)
    flops = source.planned_flops(config, bert, *rows)
    if not flops:
        return Work((), RESULT_BYTES)
    # Models of other kinds are small.
    model = 4 * bert.num_parameters if config.save_model and not source.rate else 0
    shape = config.train_batch_size, config.max_seq_length, config.precision
    return Work((Steps(bert, *shape, flops),), model + RESULT_BYTES, source.rate)


def windows(config: FinetuneConfig) -> float:
    """Return the mean number of windows of an example of SQuAD, or the most windows of a text."""
    if config.task_options.get("windows"):
        return float(config.task_options["windows"])
    cut = config.task_options.get("context") == "answer_sentence"
    if cut or not config.task.startswith("squad"):
        return 1.0
    room = config.max_seq_length - 3 - SQUAD_QUESTION
    stride = config.task_options.get("doc_stride", 128)
    return 1 + max(0, SQUAD_PARAGRAPH - room) / stride
