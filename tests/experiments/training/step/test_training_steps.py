"""The training step on one device, as every backend takes it; `make test-jax` runs these too."""

import functools

import keras
import numpy as np
import pytest
import tiny_runs

from experiments.training.step.backend import Trainer, strategies
from experiments.training.step.trainer_state import StepOptions
from official_bert.common.errors import UserError
from official_bert.encoder import BertEncoder
from official_bert.heads import BertClassifier
from official_bert.optimization import BertAdamW, WarmupLinearDecay
from official_bert.pretraining import BertPretrainer

WORDS = "encoder/embeddings/word_embeddings"
ONE = strategies.get_strategy("one_device")
QUIET = tiny_runs.bert(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


@functools.cache
def _compiled(bert, **options):
    return tiny_runs.trainer(Trainer, bert, ONE, **options)


def _trainer(bert=QUIET, objectives=tiny_runs.PAIRED, **options):
    """Return a trainer as at its beginning; tests of the same options share what is compiled."""
    trainer = _compiled(bert, objectives=objectives, **options)
    trainer.reset(lambda seed: BertPretrainer(bert, objectives, seed=seed), 1)
    trainer.set_schedule(1e-2, 2, 100)
    return trainer


def _batch(step):
    return tiny_runs.batch(seed=step % 3)


def _batches(first, last):
    return _iterator([_batch(step) for step in range(first, last)])


def _iterator(batches):
    if keras.backend.backend() == "jax":
        return iter(batches)
    import tensorflow as tf

    stacked = {name: np.stack([batch[name] for batch in batches]) for name in batches[0]}
    return strategies.distribute_dataset(tf.data.Dataset.from_tensor_slices(stacked), ONE)


def _train(trainer, calls, **options):
    return tiny_runs.train(trainer, _batches(0, sum(calls)), calls, **options)


def _assert_near(found, expected, atol=1e-5):
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)


def test_steps_are_those_of_keras_with_the_same_optimiser():
    trainer = _trainer()
    _train(trainer, [5])
    model = BertPretrainer(QUIET, seed=1)
    jit = keras.backend.backend() == "jax"  # TensorFlow has its graph without XLA
    model.compile(BertAdamW(WarmupLinearDecay(1e-2, 2, 100)), jit_compile=jit)
    for step in range(5):
        batch = {name: keras.ops.convert_to_tensor(x) for name, x in _batch(step).items()}
        model.train_on_batch(batch)
    found, expected = ([v.numpy() for v in m.trainable_variables] for m in (trainer.model, model))
    _assert_near(found, expected, 2e-5)
    assert trainer.step == 5


def test_calls_of_any_length_and_a_continued_run_take_the_same_steps_to_the_bit():
    bert = tiny_runs.bert()  # with dropout: the seeds of the steps have to agree
    trainer = _trainer(bert)
    losses, weights = _train(trainer, [19])
    assert losses[-1] < losses[0] and trainer.step == 19

    def build(seed):
        return BertPretrainer(bert, seed=seed)

    trainer.reset(build, 1)
    first, _ = _train(trainer, [3, 1, 2])
    kept = trainer.arrays()
    trainer.reset(build, 7)  # something else
    trainer.reset(build, 1)
    trainer.load_arrays(kept)
    batches = _batches(6, 19)
    rest = np.concatenate([trainer.train_from(batches, count)["loss"] for count in (4, 9)])
    np.testing.assert_array_equal([*first, *rest], losses)
    for ours, theirs in zip(trainer.model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    trainer.reset(build, 1)
    one_by_one = trainer.read([trainer.train_on(_batch(step)) for step in range(6)])
    np.testing.assert_allclose(one_by_one["loss"], first, atol=1e-5)
    metrics = trainer.evaluate([_batch(0), _batch(1)])
    assert metrics["masked_lm_loss"] > 0 and 0 <= metrics["next_sentence_accuracy"] <= 1
    with pytest.raises(UserError, match=f"of another model: {WORDS} has shape"):
        trainer.load_arrays({**kept, WORDS: np.zeros(3)})
    with pytest.raises(UserError, match=f"it lacks .'{WORDS}'"):
        trainer.load_arrays({name: x for name, x in kept.items() if name != WORDS})


class SwappedPretrainer(BertPretrainer):
    """A pretrainer that lists two layers of one shape in the other order."""

    @property
    def weights(self):
        found = super().weights
        query, key = (
            next(i for i, v in enumerate(found) if v.path.endswith(f"/{name}/kernel"))
            for name in ("query", "key")
        )
        found[query], found[key] = found[key], found[query]
        return found


def test_layers_of_one_shape_that_change_places_keep_their_weights():
    kept = _trainer().arrays()
    swapped = Trainer(lambda seed: SwappedPretrainer(QUIET, seed=seed), ONE, StepOptions(), seed=2)
    assert [v.path for v in swapped.model.weights] != [v.path for v in _trainer().model.weights]
    swapped.load_arrays(kept)
    for variable in swapped.model.weights:
        np.testing.assert_array_equal(variable.numpy(), kept[variable.path])


def test_micro_batches_are_one_batch():
    losses, weights = _train(_trainer(), [4])
    found, others = _train(_trainer(accumulation=4), [4])
    _assert_near([found, *others], [losses, *weights])


def test_the_epsilon_of_the_masked_lm_loss_counts_once():
    batch = tiny_runs.batch()
    batch["masked_lm_weights"] = np.zeros_like(batch["masked_lm_weights"])
    batch["masked_lm_weights"][5, 0] = 1
    model = BertPretrainer(QUIET, seed=1)
    total, weight = model.loss_terms(batch, model(batch))["masked_lm_loss"]
    assert float(weight) == 1
    for accumulation in (1, 4):
        trainer = _trainer(accumulation=accumulation)
        loss = trainer.train_from(_iterator([batch]), 1)["masked_lm_loss"][0]
        np.testing.assert_allclose(loss, float(total) / (1 + 1e-5), rtol=2e-6)


def test_padding_rows_and_padding_tokens_change_nothing():
    ids = np.random.default_rng(0).integers(5, 20, (5, 10)).astype(np.int32)
    plain = {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": np.zeros_like(ids),
        "label_ids": np.array([0, 1, 2, 0, 1], np.int32),
        "example_weights": np.ones(5, np.float32),
    }
    padded = {name: np.pad(x, [(0, 3), (0, 6)][: x.ndim]) for name, x in plain.items()}
    padded["input_mask"][5:, 0] = 1

    def build(seed):
        return BertClassifier(BertEncoder(QUIET, seed=seed), 3, seed=seed)

    trainer, results = Trainer(build, ONE, StepOptions(), "float32", 3), []
    for batch in (plain, padded):
        trainer.reset(build, 3)
        trainer.set_schedule(1e-2, 0, 10)
        metrics = trainer.read([trainer.train_on(batch), trainer.train_on(batch)])
        results.append((metrics["loss"], trainer.predict(batch)["logits"][:5]))
    _assert_near(*results)


def test_remat_takes_the_same_steps():
    bert = tiny_runs.bert()
    remat = Trainer(
        lambda s: BertPretrainer(BertEncoder(bert, remat=True, seed=s), seed=s),
        ONE, StepOptions(), seed=1,
    )  # fmt: skip
    remat.set_schedule(1e-2, 2, 100)
    losses = [_train(trainer, [3])[0] for trainer in (_trainer(bert), remat)]
    np.testing.assert_allclose(*losses, atol=1e-5)


def test_learning_rate_is_that_of_the_schedule():
    trainer, schedule = _trainer(), WarmupLinearDecay(3e-4, 10, 100)
    trainer.set_schedule(3e-4, 10, 100)
    for step in (0, 1, 9, 10, 11, 55, 100, 120):
        assert trainer.learning_rate(step) == pytest.approx(float(schedule(step)), rel=1e-5)


@pytest.mark.slow
def test_steps_without_a_loss_term_are_those_of_a_model_that_lacks_it():
    with_nsp, without_nsp = _trainer(), _trainer(objectives=("masked_lm",))
    before = [v.numpy() for v in with_nsp.model.trainable_variables]
    losses, weights = _train(with_nsp, [3], without=("next_sentence_loss",))
    lacking, others = _train(without_nsp, [3])
    for ours, theirs in zip([losses, *weights], [lacking, *others], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)  # XLA fuses each its way
    # A weight that the loss does not reach stays: it is not decayed either.
    for variable, old in zip(with_nsp.model.trainable_variables, before, strict=True):
        left = "pooler" in variable.path or "next_sentence" in variable.path
        assert (variable.numpy() == old).all() == left, variable.path
    head = with_nsp.model.next_sentence.kernel.numpy()
    table = with_nsp.train_from(_batches(3, 4), 1)
    total = table["masked_lm_loss"] + table["next_sentence_loss"]
    np.testing.assert_allclose(table["loss"], total, rtol=1e-6)
    assert (with_nsp.model.next_sentence.kernel.numpy() != head).any()


@pytest.mark.slow
def test_bfloat16_is_near_float32():
    losses, _ = _train(_trainer(), [3])
    found, _ = _train(_trainer(precision="mixed_bfloat16"), [3])
    np.testing.assert_allclose(found, losses, rtol=0.02)
    assert (found != losses).any()
