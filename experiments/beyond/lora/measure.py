"""Memory and time of a step of fine-tuning, whole and by updates.

    KERAS_BACKEND=jax python -m experiments.beyond.lora.measure --output=FOLDER   # memory
    python -m experiments.beyond.lora.measure --output=FOLDER                     # time

The folder's costs.json keeps what was measured before; report.md is its table. Memory is what XLA
gives the compiled step on this machine's CPU (`memory_analysis`): arguments, which are weights and
moments, and temporary memory; nothing is run. Time is the median of steps on TensorFlow that take
turns.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import keras
import numpy as np

from experiments.beyond.lora.low_rank import adapt
from experiments.training.step.backend import Trainer, strategies
from experiments.training.step.trainer_state import StepOptions
from official_bert.common.files import write_text
from official_bert.common.json_files import read_json
from official_bert.common.markdown import markdown_table
from official_bert.config import named_config
from official_bert.encoder import BertEncoder
from official_bert.heads import BertClassifier

RANKS = {"whole": 0, "rank 8": 8}
ROWS, LENGTH = 32, 128
SIZES, STEPS = ("mini", "small", "base"), 15


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    path = options.output / "costs.json"
    known = read_json(path) if path.exists() else {}
    for size in SIZES:
        made = {name: _trainer(size, rank) for name, rank in RANKS.items()}
        found = known.setdefault(size, {"rows": ROWS, "length": LENGTH})
        for name, trainer in made.items():
            counts = (trainer.model.trainable_variables, trainer.model.weights)
            trained, all_of_them = (sum(int(np.prod(v.shape)) for v in them) for them in counts)
            found.setdefault(name, {}).update(trained=trained, weights=all_of_them)
        if keras.backend.backend() == "jax":
            for name, trainer in made.items():
                found[name]["bytes"] = _memory(trainer)
        else:
            for name, seconds in _times(made).items():
                found[name]["step_s"] = round(statistics.median(seconds), 4)
        write_text(path, json.dumps(known, indent=1) + "\n", own=True)
        write_text(path.with_name("report.md"), report(known), own=True)


def report(known: dict) -> str:
    """Return Markdown of what a costs.json holds."""
    heads = ["size", "trained", "weights, millions", "trained, millions"]
    heads += ["weights and moments, MB", "temporary, MB", "step, s"]
    rows = [heads]
    for size, found in known.items():
        for name in RANKS:
            one, of = found[name], found[name].get("bytes", {})
            counts = (f"{one[what] / 1e6:.2f}" for what in ("weights", "trained"))
            memory = (f"{of[w] / 1e6:.0f}" if of else "" for w in ("arguments", "temporary"))
            step = f"{one['step_s']:.2f}" if "step_s" in one else ""
            rows.append([size, name, *counts, *memory, step])
    return (
        "# A step of fine-tuning, whole and by updates\n\n" + "\n".join(markdown_table(rows)) + "\n"
    )


def _trainer(size, rank):
    def build(seed):
        model = BertClassifier(BertEncoder(named_config(size), seed=seed), 2, seed=seed)
        if rank:
            adapt(model.encoder, rank, seed=seed)
        return model

    trainer = Trainer(build, strategies.get_strategy("one_device"), StepOptions())
    trainer.set_schedule(1e-4, 0, 1000)
    return trainer


def _batch():
    draw = np.random.default_rng(0)
    return {
        "input_ids": draw.integers(0, 1000, (ROWS, LENGTH)).astype("int32"),
        "input_mask": np.ones((ROWS, LENGTH), "int32"),
        "segment_ids": np.zeros((ROWS, LENGTH), "int32"),
        "label_ids": draw.integers(0, 2, ROWS).astype("int32"),
    }


def _memory(trainer) -> dict[str, int]:
    from experiments.training.step.jax_strategies import stacked

    program = trainer.lowered(stacked(iter([_batch()]), 1, 1, 1)).compile()
    found = program.memory_analysis()
    return {
        "arguments": found.argument_size_in_bytes,
        "temporary": found.temp_size_in_bytes,
    }


def _times(trainers) -> dict[str, list[float]]:
    """Return the seconds of each step after the first two."""
    batch, seconds = _batch(), {name: [] for name in trainers}
    for _ in range(STEPS + 2):
        for name, trainer in trainers.items():
            began = time.perf_counter()
            trainer.read([trainer.train_on(batch)])
            seconds[name].append(time.perf_counter() - began)
    return {name: found[2:] for name, found in seconds.items()}


if __name__ == "__main__":
    main()
