"""The rate of a training step on this machine, from timed steps."""

import dataclasses
import itertools
import timeit
from collections.abc import Callable

from experiments.tables.planning.cost import Steps
from experiments.training.settings.config import PretrainConfig
from experiments.training.settings.flops import pretraining_step_flops, usual_predictions
from official_bert.backend.tensorflow_start import import_tensorflow
from official_bert.config import BertConfig

_OBJECTIVES = ("masked_lm",)  # next_sentence is too small to count
_BUDGET = 3e10  # FLOPs of a step that is timed on a CPU
# The fields that a step's time depends on.
_SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
          "intermediate_size", "max_position_embeddings", "hidden_dropout_prob",
          "attention_probs_dropout_prob")  # fmt: skip


_rates: dict[tuple, float] = {}  # of the shapes that were timed


def gpu_memory():
    """Return the `device_choices.Memory` of the GPU that JAX computes on; None elsewhere."""
    from experiments.training.step.backend import strategies

    return strategies.memory(strategies.get_strategy("one_device"))


def measured_rate(
    bert, rows: int, length: int, precision: str = "float32", say: Callable = print
) -> float:
    """Return FLOPs a second of training a shape on this machine; shapes are timed once.

    On a GPU with JAX whole training steps are timed, several in one compiled call. On a CPU a step
    of too many FLOPs is timed with a smaller batch, then with fewer layers: the rate of a large
    matrix product does not depend on the number of products.

    Args:
      bert: BertConfig, or a configuration with its sizes.
      rows, length: shape of a batch.
      precision: on a GPU; a CPU's step is timed in float32.
      say: takes a line before the timing.
    """
    # The sizes alone count: other models of these sizes are as fast as BERT.
    sizes = BertConfig(**{name: getattr(bert, name) for name in _SIZES})
    if memory := gpu_memory():
        shape = sizes, rows, length, precision
        return _once(shape, lambda: _on_gpu(*shape, memory, say))
    reduced = _reduced(sizes, rows, length)
    return _once(reduced, lambda: _on_cpu(*reduced, say))


def measured(say: Callable) -> Callable[[Steps], float]:
    """Return a function for `cost.estimate`, which times one step of every shape.

    Args:
      say: takes a line before each timing.
    """

    def rate_of(steps):
        if steps.rate:
            return steps.rate
        return measured_rate(steps.bert, steps.rows, steps.length, steps.precision, say)

    return rate_of


def _once(shape: tuple, timed: Callable[[], float]) -> float:
    if shape not in _rates:
        _rates[shape] = timed()
    return _rates[shape]


def _reduced(bert: BertConfig, rows: int, length: int) -> tuple[BertConfig, int, int]:
    """Return a shape whose step is timed on a CPU in place of a larger one's."""
    # A small vocabulary saves memory; the rate of its product is much the same.
    bert = dataclasses.replace(bert, vocab_size=min(bert.vocab_size, 1000))
    while rows > 1 and 3 * bert.encoder_flops(rows, length) > _BUDGET:
        rows //= 2
    while bert.num_hidden_layers > 1 and 3 * bert.encoder_flops(rows, length) > _BUDGET:
        bert = dataclasses.replace(bert, num_hidden_layers=bert.num_hidden_layers // 2)
    return bert, rows, length


def _on_gpu(bert, rows, length, precision, memory, say) -> float:
    from experiments.training.step import device_choices

    predictions = usual_predictions(length)
    shape = device_choices.StepShape(rows, length, predictions)
    config = PretrainConfig(bert=bert, precision=precision)
    parts = device_choices.micro_batches(config, bert, [shape], memory)
    flops = pretraining_step_flops(bert, _OBJECTIVES, rows, length, predictions)
    steps = device_choices.steps_of_a_call(flops)
    layers, width, some = bert.num_hidden_layers, bert.hidden_size, device_choices.counted(parts)
    say(
        f"  times {steps} steps on {memory.kind}: {layers} deep, {width} wide, {rows} rows of "
        f"{length} tokens in {some}"
    )
    return flops / seconds_of_a_step(bert, rows, length, precision, parts, steps)


def seconds_of_a_step(bert, rows, length, precision, parts, steps) -> float:
    """Return the seconds of a pre-training step on JAX, in a compiled call of several steps."""
    from experiments.training.step import jax_strategies
    from experiments.training.step.jax_trainer import JaxTrainer
    from experiments.training.step.trainer_state import StepOptions
    from official_bert.pretraining import BertPretrainer

    trainer = JaxTrainer(
        lambda seed: BertPretrainer(bert, seed=seed),
        jax_strategies.get_strategy("one_device"),
        StepOptions(accumulation=parts, steps_of_a_call=steps),
        precision,
    )
    trainer.set_schedule(1e-4, 0, 1_000_000)
    batches = itertools.repeat(_batch(rows, length))
    # The first one compiles, and is never the fastest.
    return (
        min(timeit.repeat(lambda: trainer.train_from(batches, steps), number=1, repeat=3)) / steps
    )


def _on_cpu(bert: BertConfig, rows: int, length: int, say: Callable) -> float:
    import_tensorflow()
    import keras

    from official_bert.optimization import BertAdamW
    from official_bert.pretraining import BertPretrainer

    layers, width = bert.num_hidden_layers, bert.hidden_size
    say(f"  times a step: {layers} deep, {width} wide, {rows} rows of {length} tokens")
    model = BertPretrainer(bert)
    # TensorFlow without XLA, as in training; JAX needs XLA.
    model.compile(optimizer=BertAdamW(), jit_compile=keras.backend.backend() != "tensorflow")
    batch = _batch(rows, length)
    # The first one compiles, and is never the fastest.
    best = min(timeit.repeat(lambda: model.train_on_batch(batch), number=1, repeat=4))
    predictions = usual_predictions(length)
    return pretraining_step_flops(bert, _OBJECTIVES, rows, length, predictions) / best


def _batch(rows, length):
    """Make a batch whose values do not matter: {name: array [rows, ...]}."""
    import numpy as np

    ones, positions = np.ones((rows, length), np.int32), usual_predictions(length)
    return {
        "input_ids": ones,
        "input_mask": ones,
        "segment_ids": np.zeros((rows, length), np.int32),
        "masked_lm_positions": np.tile(np.arange(positions, dtype=np.int32), (rows, 1)),
        "masked_lm_ids": np.ones((rows, positions), np.int32),
        "masked_lm_weights": np.ones((rows, positions), np.float32),
        "next_sentence_labels": np.zeros((rows, 1), np.int32),
    }
