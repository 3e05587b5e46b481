"""A run's choices on a GPU: micro-batches, steps of a compiled call, and where its records lie.

All are functions of the configuration, the records and the kind of GPU, so that a run which goes on
with a GPU of its kind makes them again. A value of the configuration stands. CPUs, TPUs and
TensorFlow are left as they are.
"""

import dataclasses
import math

from experiments.training.settings.flops import objective_flops, pretraining_step_flops
from official_bert.common.errors import UserError
from official_bert.config import BertConfig

# Bytes of a step in bfloat16 whose attention is one kernel, fitted to the peaks of
# benchmarks/results/gpu, tiny to large: a weight, its moments, gradient and copy; a position of the
# logits; the program. A token of a layer: NARROW numbers as wide as the model, INNER as wide as the
# feed-forward layer.
WEIGHT, LOGIT, PROGRAM = 16, 5, 5 * 10**7
NARROW, INNER = 7.5, 2.0
# Without that kernel, as XLA has it on a CPU (`benchmarks.memory`): further matrices a head.
NARROW_PLAIN, INNER_PLAIN, MATRICES = 11, 3, 5
SHARE = 0.9  # of the memory, for a step
RECORDS_SHARE = 0.05  # of the memory, for records
CALL = 2e13  # FLOPs of a compiled call that are enough, some tenth of a second


@dataclasses.dataclass(frozen=True)
class Memory:
    """The kind and memory of each of the GPUs that a run takes.

    Attributes:
      kind: name of the GPU.
      bytes: that a process may have of it.
      widths: of the heads that attention's kernels take there.
    """

    kind: str
    bytes: int
    widths: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Stretch:
    """Steps of one shape on a device.

    Attributes:
      examples: of a step, each of `rows` rows.
      length: tokens a row.
      predictions: positions a row that the language model's head scores.
    """

    examples: int
    length: int
    predictions: float
    rows: int = 1


def step_bytes(bert, stretch, precision, widths=(), remat=False, parts=1) -> float:
    """Return the bytes of a training step on a GPU.

    Args:
      bert: BertConfig.
      stretch: Stretch; its examples are read in `parts` micro-batches.
      precision: "float32" or "mixed_bfloat16".
      widths: see `Memory`.
      remat: of the configuration; inputs of the blocks and one block are kept.
    """
    width, inner, layers = bert.hidden_size, bert.intermediate_size, bert.num_hidden_layers
    rows, size = stretch.examples * stretch.rows / parts, 4 if precision == "float32" else 2
    one_kernel = size == 2 and width // bert.num_attention_heads in widths
    narrow, wide = (NARROW, INNER) if one_kernel else (NARROW_PLAIN, INNER_PLAIN)
    block = rows * stretch.length * (narrow * width + wide * inner)
    if not one_kernel:
        block += MATRICES * rows * bert.num_attention_heads * stretch.length**2
    blocks = block + layers * rows * stretch.length * width if remat else layers * block
    weights = (WEIGHT + 4 * (parts > 1)) * bert.num_parameters
    logits = LOGIT * size / 2 * rows * stretch.predictions * bert.vocab_size
    return PROGRAM + weights + size * blocks + logits


def micro_batches(config, bert, stretches, memory) -> int:
    """Return into how many parts a step's examples are divided, so that each fits.

    Args:
      config: PretrainConfig or FinetuneConfig; what it says beyond 1 stands.
      stretches: list of Stretch.
      memory: Memory.

    Raises:
      UserError: the smallest part is too much.
    """
    counted_alike = getattr(type(bert), "encoder_flops", None) is BertConfig.encoder_flops
    if config.gradient_accumulation > 1 or not counted_alike:
        return config.gradient_accumulation

    def needed(parts):
        return max(
            step_bytes(bert, one, config.precision, memory.widths, config.remat, parts)
            for one in stretches
        )

    most = math.gcd(*(one.examples for one in stretches))
    divisors = (parts for parts in range(1, most + 1) if most % parts == 0)
    fitting = (parts for parts in divisors if needed(parts) <= SHARE * memory.bytes)
    if parts := next(fitting, 0):
        return parts
    sizes = ", ".join(f"{one.examples * one.rows // most} of {one.length}" for one in stretches)
    raise UserError(
        f"{memory.kind}: the smallest micro-batch (rows of tokens: {sizes}) needs about "
        f"{_gib(needed(most))} GiB, and a step may take {_gib(SHARE * memory.bytes)} of the "
        f"{_gib(memory.bytes)} there are; set --config.remat=true, "
        "--config.precision=mixed_bfloat16, shorter rows or a smaller model "
        "(--config.gradient_accumulation=2 or more is tried all the same)"
    )


def records_fit(read, memory) -> bool:
    """Return whether the records of a run are to lie on the devices.

    Args:
      read: list of (records, rows that are read of them), a pair a phase.
      memory: Memory.
    """
    options = [records.manifest.get("options") or {} for records, _ in read]
    if any(one.get("do_whole_word_mask") for one in options):  # masks that the host alone makes
        return False
    # Records that are read in part are not worth the reading of all.
    whole = all(records.examples <= rows for records, rows in read)
    return whole and sum(_bytes_of(one) for one, _ in read) <= RECORDS_SHARE * memory.bytes


def _bytes_of(records) -> int:
    """Return at most how much records take on a device, which has their ids in two bytes."""
    return records.examples * (4 * records.max_seq_length + 8 * records.max_predictions_per_seq)


def steps_of_a_call(flops: float) -> int:
    """Return how many steps of so many FLOPs a compiled call takes on a GPU: 16, 32 or 64.

    A small model's steps are shorter than what the host does between two calls.
    """
    return next((steps for steps in (16, 32) if steps * flops >= CALL), 64)


def of_pretraining(config, bert, records, strategy, memory):
    """Return what a pre-training chooses.

    Args:
      config: PretrainConfig.
      bert: of the model.
      records: of `preflight.pretraining`.
      strategy: where the batches go.
      memory: Memory, or None without a GPU.

    Returns: (PretrainConfig with the choices made, fields of `StepOptions`, the line that tells
      them); without a GPU (config, {}, "").
    Raises:
      UserError: see `micro_batches`.
    """
    if memory is None:
        return config, {}, ""
    stretches, read, flops = [], [], 0.0
    for phase, (opened, _) in zip(config.phases, records, strict=True):
        rows = phase.train_batch_size or config.train_batch_size
        own = max(1, rows // strategy.num_replicas_in_sync)
        shape = opened.max_seq_length, opened.max_predictions_per_seq
        heads = sum(objective_flops(bert, one, 1, *shape) for one in config.objectives)
        stretches.append(Stretch(own, shape[0], heads / bert.head_flops(1)))
        read.append((opened, phase.num_train_steps * rows))
        flops = max(flops, pretraining_step_flops(bert, config.objectives, own, *shape))
    parts = micro_batches(config, bert, stretches, memory)
    on_device = config.records_on_device
    if on_device is None:
        on_device = records_fit(read, memory)
    steps = steps_of_a_call(flops)
    told = (
        f"{_micro_batches(parts, memory)}, {steps} steps a compiled call, records on the "
        f"{'device' if on_device else 'host'}"
    )
    chosen = {"gradient_accumulation": parts, "records_on_device": on_device}
    return dataclasses.replace(config, **chosen), {"steps_of_a_call": steps}, told


def of_finetuning(config, bert, feed, strategy, memory):
    """Return what a fine-tuning chooses: its FinetuneConfig, and the line that tells it.

    Args:
      feed: FinetuningBatches.
      config, bert, strategy, memory: see `of_pretraining`.

    Raises:
      UserError: see `micro_batches`.
    """
    if memory is None or config.features:  # there the encoder does not train
        return config, ""
    examples = config.train_batch_size // strategy.num_replicas_in_sync
    stretch = Stretch(examples, config.max_seq_length, 0, feed.rows // config.train_batch_size)
    parts = micro_batches(config, bert, [stretch], memory)
    return dataclasses.replace(config, gradient_accumulation=parts), _micro_batches(parts, memory)


def counted(parts: int) -> str:
    """Return "1 micro-batch" or "2 micro-batches"."""
    return f"{parts} micro-batch" + "es" * (parts > 1)


def _micro_batches(parts, memory):
    return f"{memory.kind}, {_gib(memory.bytes)} GiB: {counted(parts)} a step"


def _gib(count) -> str:
    return f"{count / 2**30:,.1f}"
