"""The first training steps on JAX, for comparison with another device: losses and weights.

    python losses_jax.py SHAPE PRECISION STEPS FILE

SHAPE is JSON, (layers, width, heads, batch, length, predictions); PRECISION "float32" (products in
full), "tensorfloat32" (as JAX multiplies float32 on a GPU by default) or "bfloat16". Writes
FILE.npz with "loss" [STEPS], "gradient_norm" [STEPS] and "weights", all in one row.
"""

import sys

import jax
import numpy as np
from turns import arguments, jax_trainer, random_batch

shape, precision, steps = arguments()
(*_, batch, length, predictions), steps, path = shape, int(steps), sys.argv[4]
if precision == "float32":
    jax.config.update("jax_default_matmul_precision", "highest")
trainer = jax_trainer(shape, precision)
trainer.set_schedule(1e-3, 10, 1000)
draw = np.random.default_rng(0)
batches = [random_batch(batch, length, predictions) for _ in range(8)]
for one in batches:  # words of a small vocabulary, so that there is something to learn
    for name in ("input_ids", "masked_lm_ids"):
        one[name] = draw.zipf(1.5, one[name].shape).clip(max=2000).astype("int32")
    one["input_mask"][:, length - draw.integers(1, length // 2) :] = 0
found = trainer.train_from((batches[i % 8] for i in range(steps)), steps)
weights = np.concatenate([w.reshape(-1) for w in trainer.model.get_weights()])
np.savez(path, loss=found["loss"], gradient_norm=found["gradient_norm"], weights=weights)
