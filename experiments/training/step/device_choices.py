"""A run's choices on a GPU: micro-batches, steps of a compiled call, records on device or host.

All are functions of the configuration, the records and the kind of GPU, so that a run that is
continued on the same kind of GPU makes the same choices. A value set in the configuration is kept.
Nothing is chosen for CPUs, TPUs and TensorFlow.
"""

import dataclasses
import math

from experiments.training.settings.flops import objective_flops, pretraining_step_flops
from official_bert.common.errors import UserError
from official_bert.config import BertConfig

# Bytes of a step in bfloat16 whose attention is one kernel, fitted to the peaks of
# benchmarks/results/gpu, tiny to large: WEIGHT for a weight with its moments, gradient and copy;
# LOGIT for a logit; PROGRAM for the program. A token of a layer takes NARROW numbers as wide as the
# model and INNER as wide as the feed-forward layer.
WEIGHT, LOGIT, PROGRAM = 16, 5, 5 * 10**7
NARROW, INNER = 7.5, 2.0
# Without that kernel, as XLA has it on a CPU (`benchmarks.memory`): further matrices a head.
NARROW_PLAIN, INNER_PLAIN, MATRICES = 11, 3, 5
SHARE = 0.9  # of the memory, for a step
RECORDS_SHARE = 0.05  # of the memory, for records
CALL = 2e13  # FLOPs of a long enough compiled call, some tenth of a second


@dataclasses.dataclass(frozen=True)
class Memory:
    """The kind and memory of each GPU of a run.

    Attributes:
      kind: name of the GPU.
      bytes: of its memory that a process may use.
      widths: of heads that the attention kernels support on it.
    """

    kind: str
    bytes: int
    widths: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class StepShape:
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


def step_bytes(bert, shape, precision, widths=(), remat=False, parts=1) -> float:
    """Return the bytes of a training step on a GPU.

    Args:
      bert: BertConfig.
      shape: StepShape; its examples are read in `parts` micro-batches.
      precision: "float32" or "mixed_bfloat16".
      widths: see `Memory`.
      remat: of the configuration; inputs of the blocks and one block are kept.
    """
    width, inner, layers = bert.hidden_size, bert.intermediate_size, bert.num_hidden_layers
    rows, size = shape.examples * shape.rows / parts, 4 if precision == "float32" else 2
    one_kernel = size == 2 and width // bert.num_attention_heads in widths
    narrow, wide = (NARROW, INNER) if one_kernel else (NARROW_PLAIN, INNER_PLAIN)
    block = rows * shape.length * (narrow * width + wide * inner)
    if not one_kernel:
        block += MATRICES * rows * bert.num_attention_heads * shape.length**2
    blocks = block + layers * rows * shape.length * width if remat else layers * block
    weights = (WEIGHT + 4 * (parts > 1)) * bert.num_parameters
    logits = LOGIT * size / 2 * rows * shape.predictions * bert.vocab_size
    return PROGRAM + weights + size * blocks + logits


def micro_batches(config, bert, shapes, memory) -> int:
    """Return the number of micro-batches of a step, so that each fits into memory.

    Args:
      config: PretrainConfig or FinetuneConfig; its own number is kept where it is above 1.
      shapes: list of StepShape.
      memory: Memory.

    Raises:
      UserError: the smallest micro-batch does not fit.
    """
    counted_alike = getattr(type(bert), "encoder_flops", None) is BertConfig.encoder_flops
    if config.gradient_accumulation > 1 or not counted_alike:
        return config.gradient_accumulation

    def needed(parts):
        return max(
            step_bytes(bert, one, config.precision, memory.widths, config.remat, parts)
            for one in shapes
        )

    most = math.gcd(*(one.examples for one in shapes))
    divisors = (parts for parts in range(1, most + 1) if most % parts == 0)
    fitting = (parts for parts in divisors if needed(parts) <= SHARE * memory.bytes)
    if parts := next(fitting, 0):
        return parts
    sizes = ", ".join(f"{one.examples * one.rows // most} of {one.length}" for one in shapes)
    raise UserError(
        f"{memory.kind}: the smallest micro-batch (rows of tokens: {sizes}) needs about "
        f"{_gib(needed(most))} GiB, and a step may take {_gib(SHARE * memory.bytes)} of the "
        f"{_gib(memory.bytes)} there are; set --config.remat=true, "
        "--config.precision=mixed_bfloat16, shorter rows or a smaller model "
        "(--config.gradient_accumulation=2 or more is tried all the same)"
    )


def records_fit(read, memory) -> bool:
    """Return whether a run's records should lie on the devices.

    Args:
      read: list of (records, rows that are read of them), a pair a phase.
      memory: Memory.
    """
    options = [records.manifest.get("options") or {} for records, _ in read]
    if any(one.get("do_whole_word_mask") for one in options):  # only the host makes such masks
        return False
    # For records that are read in part it is not worth reading all.
    whole = all(records.examples <= rows for records, rows in read)
    return whole and sum(_bytes_of(one) for one, _ in read) <= RECORDS_SHARE * memory.bytes


def _bytes_of(records) -> int:
    """Return an upper bound of the bytes of records on a device, which keeps ids in two bytes."""
    return records.examples * (4 * records.max_seq_length + 8 * records.max_predictions_per_seq)


def steps_of_a_call(flops: float) -> int:
    """Return the number of steps of a compiled call on a GPU: 16, 32 or 64, by the FLOPs of a step.

    A small model's step is shorter than the host's work between two calls.
    """
    return next((steps for steps in (16, 32) if steps * flops >= CALL), 64)


def choose_for_pretraining(config, bert, records, strategy, memory):
    """Choose micro-batches, steps of a call and the place of records for a pre-training.

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
    shapes, read, flops = [], [], 0.0
    for phase, (opened, _) in zip(config.phases, records, strict=True):
        rows = phase.train_batch_size or config.train_batch_size
        own = max(1, rows // strategy.num_replicas_in_sync)
        sizes = opened.max_seq_length, opened.max_predictions_per_seq
        heads = sum(objective_flops(bert, one, 1, *sizes) for one in config.objectives)
        shapes.append(StepShape(own, sizes[0], heads / bert.head_flops(1)))
        read.append((opened, phase.num_train_steps * rows))
        flops = max(flops, pretraining_step_flops(bert, config.objectives, own, *sizes))
    parts = micro_batches(config, bert, shapes, memory)
    on_device = config.records_on_device
    if on_device is None:
        on_device = records_fit(read, memory)
    steps = steps_of_a_call(flops)
    message = (
        f"{_micro_batches(parts, memory)}, {steps} steps a compiled call, records on the "
        f"{'device' if on_device else 'host'}"
    )
    chosen = {"gradient_accumulation": parts, "records_on_device": on_device}
    return dataclasses.replace(config, **chosen), {"steps_of_a_call": steps}, message


def choose_for_finetuning(config, bert, batches, strategy, memory):
    """Choose the micro-batches of a fine-tuning; return (FinetuneConfig, the line that tells them).

    Args:
      batches: FinetuningBatches.
      config, bert, strategy, memory: see `choose_for_pretraining`.

    Raises:
      UserError: see `micro_batches`.
    """
    if memory is None or config.features:  # with features the encoder is not trained
        return config, ""
    examples = config.train_batch_size // strategy.num_replicas_in_sync
    shape = StepShape(examples, config.max_seq_length, 0, batches.rows // config.train_batch_size)
    parts = micro_batches(config, bert, [shape], memory)
    return dataclasses.replace(config, gradient_accumulation=parts), _micro_batches(parts, memory)


def counted(parts: int) -> str:
    """Return "1 micro-batch" or "2 micro-batches"."""
    return f"{parts} micro-batch" + "es" * (parts > 1)


def _micro_batches(parts, memory):
    return f"{memory.kind}, {_gib(memory.bytes)} GiB: {counted(parts)} a step"


def _gib(count) -> str:
    return f"{count / 2**30:,.1f}"
