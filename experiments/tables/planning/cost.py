"""The cost of an experiment before it runs: FLOPs from shapes, seconds from a measured step."""

import dataclasses
import functools
import os
import time
from collections.abc import Callable

from data_prep.pretraining.record_options import RecordOptions
from experiments.training.settings.config import FinetuneConfig, PretrainConfig, resolve_bert
from experiments.training.settings.config_values import from_dict
from experiments.training.settings.flops import RATE, pretrain_flops, training_flops
from experiments.training.start import starts
from official_bert.backend.tensorflow_start import import_tensorflow
from official_bert.config import BertConfig

_BUDGET = 3e10  # FLOPs of a step that is timed
# What a step's time depends on.
SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
         "intermediate_size", "max_position_embeddings", "hidden_dropout_prob",
         "attention_probs_dropout_prob")  # fmt: skip
START_SECONDS = 8.0  # model, compilation and checkpoints of one run
# Mean pieces of a paragraph and of a question in SQuAD's training data, vocabularies of 8,192 to
# 30,522 pieces.
SQUAD_PARAGRAPH, SQUAD_QUESTION = 157, 13


def windows(config: FinetuneConfig) -> float:
    """Return rows that one example becomes: a paragraph of SQuAD has several windows on average, a
    text that is read in windows all that it may have."""
    if config.task_options.get("windows"):
        return float(config.task_options["windows"])
    cut = config.task_options.get("context") == "answer_sentence"
    if cut or not config.task.startswith("squad"):
        return 1.0
    room = config.max_seq_length - 3 - SQUAD_QUESTION
    stride = config.task_options.get("doc_stride", 128)
    return 1 + max(0, SQUAD_PARAGRAPH - room) / stride


def checkpoint_bytes(bert) -> int:
    """Return weights and both Adam moments in float32."""
    return 12 * bert.num_parameters


def seconds(flops: float, rate: float = RATE) -> float:
    """Return time of a run at a rate of FLOPs a second."""
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


def measured_rate(bert, length: int, batch: int, say: Callable = print) -> float:
    """Return FLOPs a second of training this shape on this machine, from one timed step, of which
    `say` takes a line before; shapes of the same sizes are timed once.

    A step of too many FLOPs is timed with a smaller batch, then with fewer layers: the rate of a
    large matrix product does not depend on how many there are.
    """
    # Sizes alone: a successor, GPT or a model of two directions is as fast as BERT.
    sizes = {name: getattr(bert, name) for name in SIZES}
    # A row of the vocabulary costs memory, not time: the table is looked up.
    sizes["vocab_size"] = min(bert.vocab_size, 1000)
    return _timed(BertConfig(**sizes), length, batch, say)


@functools.cache
def _timed(bert: BertConfig, length: int, batch: int, say: Callable) -> float:
    import_tensorflow()
    import keras
    import numpy as np

    from official_bert.optimization import BertAdamW
    from official_bert.pretraining import BertPretrainer

    layers, width = bert.num_hidden_layers, bert.hidden_size
    say(f"  times a step: {layers} deep, {width} wide, {batch} rows of {length} tokens")
    while batch > 1 and 3 * bert.encoder_flops(batch, length) > _BUDGET:
        batch = max(1, batch // 2)
    while bert.num_hidden_layers > 1 and 3 * bert.encoder_flops(batch, length) > _BUDGET:
        bert = dataclasses.replace(bert, num_hidden_layers=bert.num_hidden_layers // 2)
    positions = max(1, round(0.16 * length))
    batch_of = {
        "input_ids": np.ones((batch, length), np.int32),
        "input_mask": np.ones((batch, length), np.int32),
        "segment_ids": np.zeros((batch, length), np.int32),
        "masked_lm_positions": np.tile(np.arange(positions, dtype=np.int32), (batch, 1)),
        "masked_lm_ids": np.ones((batch, positions), np.int32),
        "masked_lm_weights": np.ones((batch, positions), np.float32),
        "next_sentence_labels": np.zeros((batch, 1), np.int32),
    }
    model = BertPretrainer(bert)
    # TensorFlow without XLA, as in training; JAX needs XLA.
    model.compile(optimizer=BertAdamW(), jit_compile=keras.backend.backend() != "tensorflow")
    best = float("inf")
    for _ in range(4):  # the first one compiles
        start = time.perf_counter()
        model.train_on_batch(batch_of)
        best = min(best, time.perf_counter() - start)
    return training_flops(bert, batch, length, positions) / best


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Work of one cell: FLOPs, seconds of one worker, bytes that stay on disk; apart from `flops`
    those of what works beside its model, which `seconds` contain."""

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
    positions = {f"@records/{r.name}//records": r.max_predictions_per_seq for r in ablation.records}
    found = {}
    for cell in plan.cells:
        theirs = 0.0
        if cell.kind != "pretrain" and cell.name not in plan.shapes:  # no network is trained
            found[cell.name] = Estimate(0.0, cell.cost, _text_bytes(cell))
            continue
        if cell.kind == "pretrain":
            config = from_dict(PretrainConfig, cell.config)
            bert, length = resolve_bert(config.bert), config.phases[0].max_seq_length
            flops = pretrain_flops(config, positions)
            if beside := plan.beside.get(cell.name):
                theirs = pretrain_flops(config, positions, beside)
            size = checkpoint_bytes(bert) * config.keep_checkpoints + 4 * bert.num_parameters
        else:
            config = from_dict(FinetuneConfig, cell.config)
            (bert, flops), length = plan.shapes[cell.name], config.max_seq_length
            kept = config.save_model and bert is not None  # those on word vectors leave no model
            size = (4 * bert.num_parameters if kept else 0) + 1e5
        reached = starts.of(config).rate
        if measure and not reached:
            rate = measured_rate(bert, length, config.train_batch_size, say)
        took = seconds(flops + theirs, reached if measure and reached else rate)
        found[cell.name] = Estimate(flops, took, size, theirs)
    return found


def _text_bytes(cell) -> float:
    inputs = [*cell.config.get("inputs", ()), *cell.config.get("train", ())]
    files = [path for path in inputs if os.path.isfile(path)]
    text = sum(os.path.getsize(path) * (2.5 if path.endswith(".gz") else 1) for path in files)
    # Records take about 16 bytes a token and pass, a token is about 4.5 characters.
    passes = 1
    if cell.kind == "records":
        passes = cell.config["options"].get("dupe_factor", RecordOptions.dupe_factor)
    return text * 3.5 * passes
