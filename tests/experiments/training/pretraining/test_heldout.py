"""The score of knowing only how frequent pieces are, beside what a pre-training reached."""

import numpy as np
import tiny_runs

from data_prep.records import numpy_batches, open_records
from experiments.training.pretraining import heldout
from official_bert.objectives import objective

SIZE = len(tiny_runs.SPECIAL) + 1 + len(tiny_runs.WORDS)


def baseline(records, name, every_token=False):
    return heldout.unigram_baseline(objective(name), records, records, SIZE, every_token)


def test_only_a_language_model_has_a_baseline(data):
    records = str(data / "records")
    found = baseline(records, "masked_lm")
    assert list(found) == ["masked_lm_loss", "masked_lm_perplexity", "masked_lm_accuracy"]
    assert baseline(records, "next_sentence") == {}  # predicts no pieces


def test_frequencies_are_those_of_the_masked_pieces(data):
    records = str(data / "records")
    ids = [b["masked_lm_ids"][b["masked_lm_weights"] > 0] for b in numpy_batches(
        open_records(records), 256, shuffle=False, drop_remainder=False
    )]  # fmt: skip
    seen = np.bincount(np.concatenate(ids), minlength=SIZE)
    known = (seen + 1) / (seen + 1).sum()
    found = baseline(records, "masked_lm")
    np.testing.assert_allclose(found["masked_lm_loss"], -(seen @ np.log(known)) / seen.sum())
    np.testing.assert_allclose(found["masked_lm_accuracy"], seen.max() / seen.sum())
    assert baseline(records, "masked_lm", every_token=True) != found
