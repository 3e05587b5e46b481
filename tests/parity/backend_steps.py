"""The same model on several backends: losses of steps, and Keras' own `fit`.

Pre-trains and fine-tunes a model with each head from the same weights, on the same batches, with
the same masks of dropout.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.xla_flags import quick_compiler

VOCAB, LENGTH, ROWS, PREDICTIONS, CHOICES, LABELS = 120, 16, 8, 3, 2, 5
HEADS = ("pretraining", "classification", "regression", "span", "multiple_choice", "tagging")
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


def compare(steps, heads):
    """Head -> the largest difference between the losses on TensorFlow and on JAX."""
    ours, theirs = made("steps", steps, *heads), _on("jax", "steps", steps, *heads)
    return {head: _farthest(ours[head], theirs[head]) for head in heads}


def compare_fit(ours, backend, folder):
    """Return {part of `fit`: the largest difference from `ours`}, and the most that a weight
    moved; `ours`: what `made` returned on TensorFlow."""
    theirs = _on(backend, "fit", folder)
    moved = _farthest(theirs["weights"], theirs["weights after a step"])
    return {name: _farthest(ours[name], theirs[name]) for name in ours}, moved


def _on(backend, *arguments):
    """Run this file as a program on the backend and return its output."""
    # To compile takes longer than to run what is compiled.
    flags = f"{os.environ.get('XLA_FLAGS', '')} {quick_compiler()}"
    done = subprocess.run(
        [sys.executable, "-m", "tests.parity.backend_steps", *map(str, arguments)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def made(what, first, *heads):
    """Return the numbers of a job on the backend of this process."""
    return fit(first) if what == "fit" else {head: measure(head, int(first)) for head in heads}


def _farthest(ours, theirs):
    return float(np.abs(np.subtract(ours, theirs)).max())


def fit(folder):
    """Numbers of a pre-training model from a folder, on the backend of this process."""
    import keras

    import official_bert as ob

    model, rows = ob.load(folder).model, batch("pretraining", 0)

    def weights():
        values = map(keras.ops.convert_to_numpy, model.trainable_variables)
        return np.concatenate([value.ravel() for value in values]).tolist()

    found = {"weights": weights()}
    # Compiled as a whole: JAX would compile each operation of its own.
    inputs = {name: rows[name] for name in ("input_ids", "input_mask", "segment_ids")}
    encoded = model.encoder.predict_on_batch(inputs)
    outputs = [encoded["pooled_output"], encoded["sequence_output"]]
    scores = model.predict_on_batch(rows)
    outputs += [scores[name] for name in sorted(scores)]
    found["outputs"] = np.concatenate([np.ravel(x) for x in outputs]).tolist()
    # A loaded model draws a seed of its own; the masks shall be equal.
    model.encoder.seed_generator.state.assign([0, 0])
    model.compile(optimizer=ob.BertAdamW(1e-3))
    logs = model.fit(x=rows, batch_size=ROWS, epochs=1, shuffle=False, verbose=0)
    return found | {"loss": logs.history["loss"], "weights after a step": weights()}


def measure(head, steps):
    """Return the losses of the steps on the backend of this process."""
    from experiments.training.step.backend import Trainer, strategies
    from experiments.training.step.trainer_state import StepOptions

    strategy = strategies.get_strategy("one_device")
    trainer = Trainer(lambda seed: build(head), strategy, StepOptions())
    trainer.set_schedule(1e-3, steps // 10, steps)
    tables = [trainer.train_on(batch(head, step)) for step in range(steps)]
    return trainer.read(tables)["loss"].tolist()


def build(head):
    """Return a small model whose weights are drawn by numpy, alike on every backend."""
    from official_bert.config import BertConfig
    from official_bert.encoder import BertEncoder
    from official_bert.heads import build_head
    from official_bert.pretraining import BertPretrainer

    config = BertConfig(VOCAB, **SIZES, intermediate_size=64, max_position_embeddings=LENGTH)
    encoder = BertEncoder(config, seed=0)
    if head == "pretraining":
        model = BertPretrainer(encoder, seed=0)
    elif head == "regression":
        wanted = {"head": "classification", "num_labels": 1, "problem": "regression"}
        model = build_head(encoder, wanted, seed=0)
    else:
        model = build_head(encoder, {"head": head, "num_labels": LABELS}, seed=0)
    draw = np.random.default_rng(1)
    for variable in model.trainable_variables:
        values = draw.normal(0, 0.1, variable.shape)
        variable.assign((values + (variable.name == "gamma")).astype(np.float32))
    return model


def batch(head, step):
    """Return the batch of a step: random texts, and labels that can be learnt from them."""
    draw = np.random.default_rng([HEADS.index(head), step])
    rows = (ROWS, CHOICES, LENGTH) if head == "multiple_choice" else (ROWS, LENGTH)
    ids = draw.integers(5, VOCAB, rows).astype(np.int32)
    lengths = draw.integers(LENGTH // 2, LENGTH + 1, rows[:-1])
    mask = (np.arange(LENGTH) < lengths[..., None]).astype(np.int32)
    made = {"input_ids": ids * mask, "input_mask": mask, "segment_ids": np.zeros_like(ids)}
    if head == "pretraining":
        places = np.sort(draw.integers(1, LENGTH // 2, (ROWS, PREDICTIONS)), axis=1)
        made["masked_lm_positions"] = places.astype(np.int32)
        made["masked_lm_ids"] = np.take_along_axis(ids, places, axis=1)
        made["masked_lm_weights"] = draw.integers(0, 2, places.shape).astype(np.float32)
        made["next_sentence_labels"] = ids[:, 1:2] % 2
        return made
    made["example_weights"] = np.ones(ROWS, np.float32)
    if head == "span":
        made["start_positions"] = np.argmax(ids[:, : LENGTH // 2], axis=1).astype(np.int32)
        made["end_positions"] = np.argmin(ids[:, : LENGTH // 2], axis=1).astype(np.int32)
    elif head == "tagging":
        made["label_ids"] = np.where(mask > 0, ids % LABELS, -1).astype(np.int32)
    elif head == "multiple_choice":
        made["label_ids"] = np.argmax(ids[:, :, 1], axis=1).astype(np.int32)
    elif head == "regression":
        made["label_ids"] = (ids[:, 1] / VOCAB).astype(np.float32)
    else:
        made["label_ids"] = ids[:, 1] % LABELS
    return made


if __name__ == "__main__":
    print(json.dumps(made(*sys.argv[1:])))
