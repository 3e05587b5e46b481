"""The contestant's side of `benchmarks/pretraining.py`: run steps when asked, answer in JSON."""

import json
import resource
import sys
import time

import numpy as np


def arguments():
    """(layers, width, heads, batch, length, predictions), and two words: mode and precision."""
    return tuple(json.loads(sys.argv[1])), sys.argv[2], sys.argv[3]


def sizes(layers, width, heads):
    """Return the shape as fields of a BertConfig, of this project or of transformers."""
    return {
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
    }


def jax_trainer(shape, precision, **options):
    """Return this project's JaxTrainer on one device; `options`: fields of StepOptions."""
    import os

    os.environ["KERAS_BACKEND"] = "jax"
    from experiments.training.step import jax_strategies
    from experiments.training.step.jax_trainer import JaxTrainer
    from experiments.training.step.trainer_state import StepOptions
    from official_bert import BertPretrainer, named_config
    from official_bert.backend import pallas_attention

    for name, fields in json.loads(os.environ.get("BENCHMARKED_BLOCKS", "{}")).items():
        fields = {key: tuple(x) if isinstance(x, list) else x for key, x in fields.items()}
        pallas_attention.CHOSEN[name == "True"] = pallas_attention.Blocks(**fields)
    config = named_config("base", **sizes(*shape[:3]))
    return JaxTrainer(
        lambda seed: BertPretrainer(config, seed=seed),
        jax_strategies.get_strategy("one_device"),
        StepOptions(**options),
        "mixed_bfloat16" if precision == "bfloat16" else "float32",
    )


def random_batch(batch, length, predictions, vocabulary=30522):
    """Return a batch under the original's field names; int32 but for the weights."""
    rng = np.random.default_rng(0)

    def ids(*shape):
        return rng.integers(1000, vocabulary, shape, dtype="int32")

    positions = np.argsort(rng.random((batch, length - 2)), axis=1)[:, :predictions] + 1
    return {
        "input_ids": ids(batch, length),
        "input_mask": np.ones((batch, length), "int32"),
        "segment_ids": np.zeros((batch, length), "int32"),
        "masked_lm_positions": np.sort(positions, axis=1).astype("int32"),
        "masked_lm_ids": ids(batch, predictions),
        "masked_lm_weights": np.ones((batch, predictions), "float32"),
        "next_sentence_labels": rng.integers(0, 2, (batch, 1), dtype="int32"),
    }


def take_turns(step, at_once=1, device_bytes=lambda: None):
    """Run `step()`, which returns the loss as a float, once, and then, timed, as often as stdin
    asks; 0 ends.

    Args:
      at_once: training steps that one call takes.
      device_bytes: returns the most memory of a GPU that was in use, None without one.
    """
    start = time.perf_counter()
    step()
    print(json.dumps({"first_step_s": time.perf_counter() - start}), flush=True)
    step()
    for line in sys.stdin:
        count = int(line)
        if count == 0:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            used = device_bytes()
            gpu = {"device_gib": used / 2**30} if used else {}
            print(json.dumps({"peak_gib": peak, **gpu}), flush=True)
            return
        step()  # awake again: the system may have taken caches and memory meanwhile
        seconds = []
        for _ in range(count):
            start = time.perf_counter()
            loss = step()
            seconds.append((time.perf_counter() - start) / at_once)
            assert np.isfinite(loss)
        print(json.dumps({"step_s": seconds}), flush=True)
