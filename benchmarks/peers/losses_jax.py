"""The first training steps on JAX, for comparison with another device: losses and weights.

    python losses_jax.py SHAPE PRECISION STEPS FILE

SHAPE is JSON, (layers, width, heads, batch, length, predictions); PRECISION "float32" (products in
full), "tensorfloat32" (as JAX multiplies float32 on a GPU by default) or "bfloat16". Writes
FILE.npz with "loss" [STEPS], "gradient_norm" [STEPS] and "weights", all in one row.
"""

import json
import os
import sys

os.environ["KERAS_BACKEND"] = "jax"

import jax
import numpy as np
from turns import random_batch, sizes

from experiments.training import jax_distribution
from experiments.training.jax_trainer import JaxTrainer
from experiments.training.trainer_state import StepOptions
from official_bert import BertPretrainer, named_config

(layers, width, heads, batch, length, predictions), precision, steps, path = (
    json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4],
)  # fmt: skip
if precision == "float32":
    jax.config.update("jax_default_matmul_precision", "highest")
config = named_config("base", **sizes(layers, width, heads))
trainer = JaxTrainer(
    lambda seed: BertPretrainer(config, seed=seed),
    jax_distribution.get_strategy("one_device"),
    StepOptions(),
    "mixed_bfloat16" if precision == "bfloat16" else "float32",
)
trainer.set_schedule(1e-3, 10, 1000)
draw = np.random.default_rng(0)
batches = [random_batch(batch, length, predictions) for _ in range(8)]
for one in batches:  # words of a small vocabulary, so that there is something to learn
    for name in ("input_ids", "masked_lm_ids"):
        one[name] = draw.zipf(1.5, one[name].shape).clip(max=2000).astype("int32")
    one["input_mask"][:, length - draw.integers(1, length // 2) :] = 0
found = trainer.train_from((batches[i % 8] for i in range(steps)), steps)
weights = np.concatenate([w.reshape(-1) for w in trainer.weights()])
np.savez(path, loss=found["loss"], gradient_norm=found["gradient_norm"], weights=weights)
