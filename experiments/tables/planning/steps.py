"""The steps of a training before it runs, and their FLOPs."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from data_prep.pretraining.record_options import RecordOptions
from data_prep.tasks import class_of
from experiments.training.settings.config import FinetuneConfig, PretrainConfig
from experiments.training.settings.flops import RATE, pretraining_step_flops, usual_predictions
from experiments.training.start import initialization
from experiments.training.start.initialization import ModelSource
from official_bert.common.errors import UserError

START_SECONDS = 8.0  # model, compilation and checkpoints of one run


@dataclasses.dataclass(frozen=True)
class Steps:
    """Training steps of one shape: a phase of a pre-training, or a whole fine-tuning.

    Attributes:
      bert: BertConfig of the model; None where a model on word vectors has none.
      rows, length: shape of a batch.
      precision: "float32" or "mixed_bfloat16".
      flops: of the model, in all these steps.
      beside_flops: of all that works beside the model, such as a teacher.
      rate: FLOPs a second of a kind of model on two cores; None: as BERT's.
    """

    bert: Any
    rows: int
    length: int
    precision: str
    flops: float
    beside_flops: float = 0.0
    rate: float | None = None


def usual_rate(steps: Steps) -> float:
    """Return FLOPs a second on two cores, where nothing was measured."""
    return steps.rate or RATE


def total_flops(steps: Sequence[Steps]) -> float:
    """Return the FLOPs of a training's model."""
    return sum(one.flops for one in steps)


def seconds(steps: Sequence[Steps], rate_of: Callable[[Steps], float] = usual_rate) -> float:
    """Return the seconds of a training; `rate_of` gives the FLOPs a second of some steps."""
    return START_SECONDS + sum((one.flops + one.beside_flops) / rate_of(one) for one in steps)


def pretraining_steps(
    config: PretrainConfig,
    records: Mapping[str, RecordOptions] | None = None,
    beside: Sequence[Callable] = (),
    steps_taken: int = 0,
) -> list[Steps]:
    """Return the steps of a pre-training, an item for each phase.

    Args:
      records: {`Phase.records`: their options}, where these are known.
      beside: functions of a step's (rows, length, masked) that give FLOPs (`Options.planned`).
      steps_taken: steps that the run's trunk has taken before.

    Raises:
      UserError: a phase takes its length from records that are not known.
    """
    bert, rate = config.bert_config, initialization.of(config).rate
    phases = []
    for phase in config.phases:
        count = max(0, phase.num_train_steps - steps_taken)
        steps_taken = max(0, steps_taken - phase.num_train_steps)
        if not count:
            continue
        made = (records or {}).get(phase.records)
        length = phase.max_seq_length or (made.max_seq_length if made else 0)
        if not length:
            raise UserError(f"phase of {phase.records}: give max_seq_length")
        masked = made.max_predictions_per_seq if made else usual_predictions(length)
        rows = phase.train_batch_size or config.train_batch_size
        flops = pretraining_step_flops(bert, config.objectives, rows, length, masked)
        others = sum(flops_of(rows, length, masked) for flops_of in beside)
        phases.append(
            Steps(
                bert=bert,
                rows=rows,
                length=length,
                precision=config.precision,
                flops=flops * count,
                beside_flops=others * count,
                rate=rate,
            )
        )
    return phases


def finetuning_steps(
    config: FinetuneConfig, source: ModelSource, bert, train_examples: int, dev_examples: int
) -> list[Steps]:
    """Return the steps of a fine-tuning; none where no network is trained.

    Args:
      source: the kind of model that the configuration starts from.
      bert: BertConfig of its model, or None.
      train_examples, dev_examples: numbers of examples.
    """
    windows = class_of(config.task).mean_windows(config.max_seq_length, config.task_options)
    train_rows, dev_rows = round(train_examples * windows), round(dev_examples * windows)
    flops = source.planned_flops(config, bert, train_rows, dev_rows)
    if not flops:
        return []
    return [
        Steps(
            bert=bert,
            rows=config.train_batch_size,
            length=config.max_seq_length,
            precision=config.precision,
            flops=flops,
            rate=source.planned_rate(config),
        )
    ]
