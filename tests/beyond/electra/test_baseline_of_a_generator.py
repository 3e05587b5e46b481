"""ELECTRA's generator is measured as a masked language model."""

import tiny_runs

from experiments.training.pretraining import heldout
from official_bert.objectives import objective


def test_a_generator_is_measured_as_a_masked_lm(data):
    size, records = len(tiny_runs.SPECIAL) + 1 + len(tiny_runs.WORDS), str(data / "records")
    found = [heldout.unigram_baseline(objective(name), records, records, size, False)
             for name in ("masked_lm", "replaced_token")]  # fmt: skip
    assert found[0] == found[1] and found[0]
