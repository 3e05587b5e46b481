"""Replicas, micro-batches and processes take the steps that one device takes with the same batch.

Logical CPU devices have to be made before TensorFlow starts, so everything that needs several runs
in processes of their own, whose results the tests compare.
"""

import os
import pickle
import tempfile
from pathlib import Path

import forked
import numpy as np
import pytest
import tiny_runs

STEPS = 20
pytestmark = pytest.mark.timeout(1800)  # generous, for busy machines


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return name -> {"loss": [STEPS], "norm": [STEPS], "weights": [...]} of some trainings."""
    return _in_a_process(_trainings, tmp_path_factory.mktemp("trainings"))


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """Return results of trainings with dropout on two replicas."""
    return _in_a_process(_noisy_trainings, tmp_path_factory.mktemp("noisy"))


# Three replicas, as processes: test_strategies_processes.py; four devices on JAX:
# tests/without_tensorflow.
def test_equals_one_device(runs):
    one, other = runs["one_device"], runs["mirrored_2_accumulated_2"]
    np.testing.assert_allclose(other["loss"], one["loss"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(other["norm"], one["norm"], rtol=1e-4)
    assert len(other["weights"]) == len(one["weights"])
    for a, b in zip(other["weights"], one["weights"], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


def test_the_comparison_covers_clipping_and_unequal_shares(runs):
    assert (np.array(runs["one_device"]["norm"]) > _CLIP).mean() > 0.5
    assert (np.array(runs["one_device"]["norm"]) < _CLIP).any()
    predictions = runs["predictions_of_halves"]
    assert predictions[0] != predictions[1]


@pytest.mark.slow
def test_dropout_is_reproducible_from_the_seed(noisy):
    again = noisy["dropout_again"]
    np.testing.assert_array_equal(noisy["dropout"]["loss"], again["loss"])
    for a, b in zip(noisy["dropout"]["weights"], again["weights"], strict=True):
        np.testing.assert_array_equal(a, b)
    # Equal weights and batches: only the mask tells these losses apart.
    assert noisy["other_masks"] != noisy["dropout"]["loss"][0]
    assert abs(noisy["the_half_on_both"] - noisy["half"]) > 1e-4  # replicas draw masks of their own


@pytest.mark.slow
def test_fine_tuning_on_replicas_equals_one_device(tmp_path):
    one, other = _in_a_process(_finetunings, tmp_path)
    assert one["dev"] == other["dev"]
    assert one["loss"][-1] < one["loss"][0] - 0.02 and len(one["loss"]) == STEPS
    np.testing.assert_allclose(other["loss"], one["loss"], rtol=0, atol=1e-5)
    for a, b in zip(other["weights"], one["weights"], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_fit_on_replicas_takes_the_steps_of_one_device(runs, tmp_path):
    fit = _in_a_process(_fit, tmp_path)
    for a, b in zip(fit, runs["one_device"]["weights"], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


_CLIP = 0.8


def _in_a_process(function, folder):
    """Return the result of a function of strategies by name, in a process with two devices."""
    path = folder / "result.pickle"
    assert forked.exit_code(forked.start(_write, function, path)) == 0
    return pickle.loads(path.read_bytes())


def _write(function, path):
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    path.write_bytes(pickle.dumps(function()))


def _trainings():
    from experiments.training.step import strategies

    one, mirrored = (strategies.get_strategy(name) for name in ("one_device", "mirrored"))
    quiet, batches = tiny_runs.quiet_bert(), _batches()
    return {
        "one_device": _train(one, quiet, batches),
        "mirrored_2_accumulated_2": _train(mirrored, quiet, batches, accumulation=2),
        "predictions_of_halves": [
            float(sum(b["masked_lm_weights"][half].sum() for b in batches))
            for half in (slice(0, 8), slice(8, 16))
        ],
    }


def _noisy_trainings():
    from experiments.training.step import strategies

    one, mirrored = (strategies.get_strategy(name) for name in ("one_device", "mirrored"))
    bert, batches = tiny_runs.bert(), _batches()
    half = {name: x[:8] for name, x in batches[0].items()}
    twice = {name: np.concatenate([x, x]) for name, x in half.items()}
    return {
        "dropout": _train(mirrored, bert, batches),
        "dropout_again": _train(mirrored, bert, batches),
        "other_masks": _train(mirrored, bert, batches[:1], mask_seed=9)["loss"][0],
        "half": _train(one, bert, [half])["loss"][0],
        "the_half_on_both": _train(mirrored, bert, [twice])["loss"][0],
    }


def _train(strategy, bert, batches, accumulation=1, seed=7, mask_seed=None):
    import tensorflow as tf

    from experiments.training.step import strategies
    from experiments.training.step.session import get_trainer
    from experiments.training.step.trainer_state import StepOptions
    from official_bert.pretraining import BertPretrainer

    options = StepOptions(accumulation=accumulation, train_metrics=True, clip_norm=_CLIP)
    trainer = get_trainer(
        ("test", bert), lambda s: BertPretrainer(bert, seed=s), strategy, options, "float32", seed
    )
    if mask_seed is not None:
        trainer._run_seed = mask_seed
    trainer.set_schedule(1e-3, 4, 25)
    stacked = {name: np.stack([b[name] for b in batches]) for name in batches[0]}
    dataset = tf.data.Dataset.from_tensor_slices(stacked)
    iterator = strategies.distribute_dataset(dataset, strategy)
    metrics = trainer.train_from(iterator, len(batches))
    return {
        "loss": metrics["loss"].tolist(),
        "norm": metrics["gradient_norm"].tolist(),
        "weights": [v.numpy() for v in trainer.model.trainable_variables],
    }


def _fit():
    """Return weights after `fit` on two replicas took the steps of `_train`."""
    import tensorflow as tf

    from experiments.training.step import strategies
    from official_bert.optimization import BertAdamW, WarmupLinearDecay
    from official_bert.pretraining import BertPretrainer

    batches = _batches()
    with strategies.get_strategy("mirrored").scope():
        model = BertPretrainer(tiny_runs.quiet_bert(), seed=7)
        optimizer = BertAdamW(WarmupLinearDecay(1e-3, 4, 25), clip_norm=_CLIP)
        model.compile(optimizer=optimizer, jit_compile=False)
    rows = {name: np.concatenate([b[name] for b in batches]) for name in batches[0]}
    dataset = tf.data.Dataset.from_tensor_slices(rows).batch(len(batches[0]["input_ids"]))
    model.fit(dataset, verbose=0)
    return [v.numpy() for v in model.trainable_variables]


def _finetunings():
    return _finetune("one_device"), _finetune("mirrored")


def _finetune(distribute):
    """Return dev scores, losses and weights of a small classifier; the last dev batch is not
    full."""
    from experiments import finetune
    from official_bert.checkpoints import model_folder

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        os.environ["OFFICIAL_BERT_CACHE"] = str(folder / "features")
        vocab = str(tiny_runs.write_vocab(folder / "vocab.txt"))
        fields = {"learning_rate": 1e-2, "num_train_epochs": 2.0, "log_every": 1}
        fields |= {"distribute": distribute, "seed": 12345, "vocab": vocab}
        config = tiny_runs.finetune_config(tiny_runs.write_labelled_texts(folder), **fields)
        results = finetune.run(config, folder / "run", progress=False)
        return {
            "dev": results.dev,
            "loss": tiny_runs.logged(folder / "run", "loss"),
            "weights": model_folder.load(folder / "run" / "model").model.get_weights(),
        }


def _batches(rows=16, length=16, predictions=6):
    """Return batches whose first rows predict more tokens than their last, so that means of means
    fail.

    One batch predicts a single token: what is added to the number of predictions then shows.
    """
    draw = np.random.default_rng(5)
    vocab = tiny_runs.bert().vocab_size
    batches = []
    for step in range(STEPS):
        weights = (draw.random((rows, predictions)) < np.linspace(1.0, 0.3, rows)[:, None]) * 1.0
        if step == 3:
            weights = np.eye(rows, predictions) * (np.arange(rows) == 0)[:, None]
        lengths = draw.integers(8, length + 1, rows)
        batches.append(
            {
                "input_ids": draw.integers(0, vocab, (rows, length)).astype(np.int32),
                "input_mask": (np.arange(length) < lengths[:, None]).astype(np.int32),
                "segment_ids": draw.integers(0, 2, (rows, length)).astype(np.int32),
                "masked_lm_positions": draw.integers(0, 8, (rows, predictions)).astype(np.int32),
                "masked_lm_ids": draw.integers(0, vocab, (rows, predictions)).astype(np.int32),
                "masked_lm_weights": weights.astype(np.float32),
                "next_sentence_labels": draw.integers(0, 2, (rows, 1)).astype(np.int32),
            }
        )
    return batches
