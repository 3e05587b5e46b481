"""Losses of the same steps on TensorFlow and on JAX, a process a backend.

Pre-trains and fine-tunes a model with each head from the same weights, on the same batches, without
dropout.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

VOCAB, LENGTH, ROWS, PREDICTIONS, CHOICES, LABELS = 120, 16, 8, 3, 2, 5
HEADS = ("pretraining", "classification", "regression", "span", "multiple_choice", "tagging")
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


def compare(steps, heads=HEADS):
    """Head -> the largest difference between the backends' losses."""
    runs = {}
    for backend in ("tensorflow", "jax"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.parity.backend_steps", str(steps), *heads],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"},
            stdout=subprocess.PIPE,
            check=True,
        )
        runs[backend] = json.loads(done.stdout.splitlines()[-1])
    return {
        head: float(np.abs(np.subtract(runs["tensorflow"][head], runs["jax"][head])).max())
        for head in heads
    }


def measure(head, steps):
    """The losses of the steps on the backend of this process."""
    from experiments.training.backend import Trainer, distribution
    from experiments.training.trainer_state import StepOptions

    strategy = distribution.get_strategy("one_device")
    trainer = Trainer(lambda seed: build(head), strategy, StepOptions())
    trainer.set_schedule(1e-3, steps // 10, steps)
    tables = [trainer.train_on(batch(head, step)) for step in range(steps)]
    return trainer.read(tables)["loss"].tolist()


def build(head):
    """A small model whose weights are drawn by numpy, alike on every backend."""
    from official_bert.config import BertConfig
    from official_bert.encoder import BertEncoder
    from official_bert.heads import build_head
    from official_bert.pretraining import BertPretrainer

    config = BertConfig(
        VOCAB,
        **SIZES,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
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
    """The batch of a step: random texts, and labels that can be learnt from them."""
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
    print(json.dumps({head: measure(head, int(sys.argv[1])) for head in sys.argv[2:]}))
