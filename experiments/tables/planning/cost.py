"""The cost of an experiment before it runs: FLOPs from shapes, seconds from a measured step."""

import dataclasses
import os
from collections.abc import Callable

from data_prep.pretraining.record_options import RecordOptions
from experiments.tables.planning import data_cells
from experiments.tables.planning.step_rate import measured_rate
from experiments.training.settings.config import FinetuneConfig, PretrainConfig
from experiments.training.settings.config_values import from_dict
from experiments.training.settings.flops import RATE, pretrain_flops
from experiments.training.start import initialization

START_SECONDS = 8.0  # model, compilation and checkpoints of one run
# Mean pieces of a paragraph and of a question in SQuAD's training data, vocabularies of 8,192 to
# 30,522 pieces.
SQUAD_PARAGRAPH, SQUAD_QUESTION = 157, 13


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


def seconds(flops: float, rate: float = RATE) -> float:
    """Return the seconds of a run at a rate of FLOPs a second."""
    return START_SECONDS + flops / rate


def readable_flops(flops: float) -> str:
    for unit, size in (("EFLOP", 1e18), ("PFLOP", 1e15), ("TFLOP", 1e12)):
        if flops >= size:
            return f"{flops / size:,.1f} {unit}"
    return f"{flops / 1e9:,.1f} GFLOP"


def readable_seconds(value: float) -> str:
    for unit, size in (("years", 3.156e7), ("days", 86400), ("h", 3600), ("min", 60)):
        if value >= 2 * size:
            return f"{value / size:,.1f} {unit}"
    return f"{value:.0f} s"


def readable_bytes(value: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if value >= size:
            return f"{value / size:,.1f} {unit}"
    return f"{value / 1e3:,.0f} kB"


@dataclasses.dataclass(frozen=True)
class Estimate:
    """The work of one cell: FLOPs of its model, seconds of one worker, bytes that stay on disk.

    `beside_flops` are of what works beside the model, such as a teacher; `seconds` has both."""

    flops: float = 0.0
    seconds: float = 0.0
    bytes: float = 0.0
    beside_flops: float = 0.0


def estimate(
    plan, ablation, measure: bool = True, rate: float = RATE, say: Callable = print
) -> dict[str, Estimate]:
    """Return an estimate for every cell of a plan (`experiments.tables.planning.plan`).

    Args:
      measure: time one step of every shape on this machine; otherwise `rate` is used.
      rate: FLOPs a second.
      say: takes a line before each measurement.
    """
    made = ablation.records
    positions = {data_cells.records_folder(r.name): r.max_predictions_per_seq for r in made}
    cells = {cell.name: cell for cell in plan.cells}
    found = {}
    for cell in plan.cells:
        if cell.kind == "pretrain":
            config = from_dict(PretrainConfig, cell.config)
            bert, beside = config.bert_config, plan.beside.get(cell.name)
            trunk = cells.get(config.trunk.removeprefix("@"))
            taken = from_dict(PretrainConfig, trunk.config).num_train_steps if trunk else 0
            parts = _pretrain_parts(config, positions, beside, taken)
            # A checkpoint has the weights and both Adam moments in float32, the model the weights.
            size = (12 * config.keep_checkpoints + 4) * bert.num_parameters
        elif cell.name in plan.shapes:
            config = from_dict(FinetuneConfig, cell.config)
            bert, own = plan.shapes[cell.name]
            kept = config.save_model and bert is not None  # those on word vectors leave no model
            size = (4 * bert.num_parameters if kept else 0) + 1e5
            parts = [(own, 0.0, config.max_seq_length, config.train_batch_size)]
        else:  # no network is trained
            found[cell.name] = Estimate(0.0, cell.cost, _text_bytes(cell))
            continue
        flops = theirs = took = 0.0
        for own, more, length, rows in parts:
            reached = initialization.of(config).rate if measure else rate
            reached = reached or measured_rate(bert, length, rows, say, config.precision)
            flops, theirs, took = flops + own, theirs + more, took + (own + more) / reached
        found[cell.name] = Estimate(flops, START_SECONDS + took, size, theirs)
    return found


def _pretrain_parts(config, positions, beside, taken) -> list[tuple[float, float, int, int]]:
    """Return (FLOPs of the model, FLOPs beside it, length, rows of a step) of each phase.

    Args:
      taken: steps that the run's trunk has taken before.
    """
    parts = []
    for phase in config.phases:
        steps = max(0, phase.num_train_steps - taken)
        taken = max(0, taken - phase.num_train_steps)
        if not steps:
            continue
        phase = dataclasses.replace(phase, num_train_steps=steps)
        one = dataclasses.replace(config, phases=(phase,), snapshots=())
        more = pretrain_flops(one, positions, beside) if beside else 0.0
        rows = phase.train_batch_size or config.train_batch_size
        parts.append((pretrain_flops(one, positions), more, phase.max_seq_length, rows))
    return parts


def _text_bytes(cell) -> float:
    inputs = [*cell.config.get("inputs", ()), *cell.config.get("train", ())]
    files = [path for path in inputs if os.path.isfile(path)]
    text = sum(os.path.getsize(path) * (2.5 if path.endswith(".gz") else 1) for path in files)
    # Records take about 16 bytes a token and pass, a token is about 4.5 characters.
    passes = 1
    if cell.kind == "records":
        passes = cell.config["options"].get("dupe_factor", RecordOptions.dupe_factor)
    return text * 3.5 * passes
