"""The cost of every cell of a table before it runs: steps and FLOPs, seconds and bytes."""

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
    """Training steps of one shape and rate: a phase of a pre-training, or a fine-tuning.

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
    """Return the seconds of a training; `rate_of`: see `estimate`."""
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
    to_skip = steps_taken
    for phase in config.phases:
        count = max(0, phase.num_train_steps - to_skip)
        to_skip = max(0, to_skip - phase.num_train_steps)
        if not count:
            continue
        options = (records or {}).get(phase.records)
        length = phase.max_seq_length or (options.max_seq_length if options else 0)
        if not length:
            raise UserError(f"phase of {phase.records}: give max_seq_length")
        masked = options.max_predictions_per_seq if options else usual_predictions(length)
        rows = phase.train_batch_size or config.train_batch_size
        flops = pretraining_step_flops(bert, config.objectives, rows, length, masked)
        beside_flops = sum(flops_of(rows, length, masked) for flops_of in beside)
        phases.append(
            Steps(
                bert=bert,
                rows=rows,
                length=length,
                precision=config.precision,
                flops=flops * count,
                beside_flops=beside_flops * count,
                rate=rate,
            )
        )
    return phases


def finetuning_steps(
    config: FinetuneConfig, source: ModelSource, bert, train_examples: int, dev_examples: int
) -> list[Steps]:
    """Return the steps of a fine-tuning, an item for each rate; none where no network is trained.

    Args:
      source: the kind of model that the configuration starts from.
      bert: BertConfig of its model, or None.
      train_examples, dev_examples: numbers of examples.
    """
    windows = class_of(config.task).mean_windows(config.max_seq_length, config.task_options)
    train_rows, dev_rows = round(train_examples * windows), round(dev_examples * windows)
    work = source.planned_work(config, bert, train_rows, dev_rows)
    return [
        Steps(
            bert=bert,
            rows=config.train_batch_size,
            length=config.max_seq_length,
            precision=config.precision,
            flops=flops,
            rate=rate,
        )
        for flops, rate in work
        if flops
    ]


@dataclasses.dataclass(frozen=True)
class Estimate:
    """The cost of one cell.

    Attributes:
      flops: of its model.
      beside_flops: of all that works beside the model, such as a teacher.
      seconds: of one worker, for both kinds of FLOPs.
      bytes: that stay on disk.
    """

    flops: float
    beside_flops: float
    seconds: float
    bytes: float


def estimate(plan, rate_of: Callable[[Steps], float] = usual_rate) -> dict[str, Estimate]:
    """Return {name of a cell: its Estimate} of a `TablePlan`.

    Args:
      rate_of: returns the FLOPs a second of some Steps (`usual_rate`, `step_rate.measured`).
    """
    estimates = {}
    for cell in plan.cells:
        steps = plan.steps.get(cell.name, ())
        time = seconds(steps, rate_of) if cell.name in plan.steps else cell.cost
        beside = sum(one.beside_flops for one in steps)
        estimates[cell.name] = Estimate(total_flops(steps), beside, time, cell.bytes)
    return estimates
