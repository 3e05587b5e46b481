"""Records on the device: the batches of numpy, and the steps that they lead to."""

import itertools

import jax
import numpy as np
import pytest
import tiny_runs

from data_prep.create_pretraining_data import create
from data_prep.pretraining.reading import jax_masking, philox, record_sets
from data_prep.records import numpy_batches, open_records
from experiments.training.step import jax_strategies
from experiments.training.step.jax_trainer import JaxTrainer
from experiments.training.step.trainer_state import StepOptions
from official_bert.common.errors import UserError
from official_bert.pretraining import BertPretrainer

pytestmark = pytest.mark.timeout(1800)
ROWS = 8


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder of records: "static", "dynamic" and "words" (dynamic, whole words)."""
    folder = tmp_path_factory.mktemp("records")
    vocab = tiny_runs.write_vocab(folder / "vocab.txt")
    text = tiny_runs.write_text(folder / "text.txt", documents=20)
    for name, options in {
        "static": {},
        "dynamic": {"dynamic_masking": True},
        "words": {"dynamic_masking": True, "do_whole_word_mask": True},
    }.items():
        options |= {"max_seq_length": 24, "max_predictions_per_seq": 4, "dupe_factor": 1}
        options |= {"num_shards": 2, "num_workers": 1, "progress": False}
        create(str(text), str(vocab), str(folder / name), **options)
    return folder


def _drawn(records, start=0, on_device=True, distribute="one_device", rows=ROWS):
    devices = jax_strategies.get_strategy(distribute)
    return jax_strategies.training_batches(records, rows, 3, start, devices, on_device)


def test_random_numbers_are_those_of_numpy():
    draw = jax.jit(jax_masking.uniform, static_argnums=0)
    for shape, seed in (((3, 37), (0, 0)), ((5, 8), (12345, 2**33 + 7)), ((1, 2), (2**62 - 1, 1))):
        found = draw(shape, philox.state(seed))
        np.testing.assert_array_equal(found, philox.uniform(shape, seed))


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_batches_are_those_of_numpy_from_any_place_on(made, kind, monkeypatch):
    monkeypatch.setattr(record_sets, "WINDOW", 16)
    records = open_records(str(made / kind))
    assert records.examples > 2 * ROWS
    batches = _drawn(records)
    assert batches.arrays["input_ids"].dtype == np.uint8  # 38 pieces; uint16 holds 65,536
    make = jax.jit(batches.make)
    for start in (0, 3 * ROWS, 2 * records.examples - 5):  # the last runs into another epoch
        expected = numpy_batches(records, ROWS, seed=3, epochs=None, start=start)
        for theirs, drawn in itertools.islice(
            zip(expected, _drawn(records, start=start), strict=False), 3
        ):
            ours = make(batches.arrays, drawn)
            assert sorted(ours) == sorted(theirs)
            for name, values in theirs.items():
                assert ours[name].dtype == values.dtype
                np.testing.assert_array_equal(ours[name], values, err_msg=name)


def test_steps_are_those_of_batches_from_the_host(made):
    records = open_records(str(made / "dynamic"))
    bert = tiny_runs.bert()

    def train(distribute, on_device):
        trainer = JaxTrainer(
            lambda seed: BertPretrainer(bert, seed=seed),
            jax_strategies.get_strategy(distribute),
            StepOptions(accumulation=2),
            seed=1,
        )
        trainer.set_schedule(1e-2, 2, 100)
        batches = _drawn(records, on_device=on_device, distribute=distribute, rows=2 * ROWS)
        return trainer.train_from(batches, 3)["loss"], trainer.model.get_weights()

    losses, weights = train("one_device", False)
    found, others = train("mirrored", True)
    np.testing.assert_allclose(found, losses, atol=1e-5)
    for ours, theirs in zip(others, weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_masks_of_whole_words_stay_on_the_host(made):
    with pytest.raises(UserError, match="records_on_device=false"):
        _drawn(open_records(str(made / "words")))
