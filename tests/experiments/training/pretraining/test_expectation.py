"""A pre-training says at its start how much it will read, and what loss that gives."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments.training.pretraining import expectation

NIGHT = Path(__file__).parents[4] / "experiments/results/table5/night/results.json"


def _phase(first, last, batch_size, length, examples, **options):
    records = SimpleNamespace(
        max_seq_length=length, examples=examples, manifest={"options": options}
    )
    return SimpleNamespace(first=first, last=last, batch_size=batch_size, records=records)


def test_steps_tokens_and_passes_are_counted():
    phases = [_phase(0, 1000, 128, 16, 64_000, dupe_factor=2), _phase(1000, 3000, 32, 64, 6_400)]
    assert expectation.lines(phases) == [
        "1,000 steps of 128 sequences of 16 tokens: 2.0 M tokens, 2.0 passes over 64,000 "
        "sequences, 4.0 over the text",
        "2,000 steps of 32 sequences of 64 tokens: 4.1 M tokens, 10.0 passes over 6,400 sequences",
    ]


def test_few_steps_are_said_to_fill_masks_with_commas():
    few = [_phase(0, 300, 32, 64, 1000)]
    *_, loss, commas = expectation.lines(few, "masked_lm")
    assert "loss to expect at the end: about 7.0" in loss
    assert "commas" in commas and "num_train_steps" in commas
    assert len(expectation.lines(few, "next_token")) == 2
    many = [_phase(0, 100_000, 32, 64, 1000)]
    assert "below 4.0" in expectation.lines(many, "masked_lm")[-1]
    assert len(expectation.lines(few, "replaced_token_detection")) == 1


@pytest.mark.parametrize("label, name", [("BERT", "masked_lm"), ("LTR & No NSP", "next_token")])
def test_losses_are_those_of_the_committed_curves(label, name):
    results = json.loads(NIGHT.read_text("utf-8"))
    model = next(m for m in results["scale_facts"]["models"] if m["name"] == label)
    assert (model["layers"], model["hidden"], model["vocabulary"]) == (2, 128, 8192)
    curve = next(c for c in results["pretraining_curves"] if c["label"] == label)
    a_step = model["tokens"] / model["steps"] / 1e6
    found = {round(step * a_step, 2): round(loss, 2) for step, loss in curve["training"]}
    assert expectation.LOSSES[name].items() <= found.items()
