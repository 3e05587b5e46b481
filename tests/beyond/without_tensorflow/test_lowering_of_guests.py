"""Programs of guests for accelerators: texts that are written, attention, words' pieces."""

import re

import jax
import numpy as np
import pytest
from jax import export
from tiny_steps import LENGTH, PLATFORMS, PRECISIONS, ROWS, STEPS

from experiments.beyond.common import generation
from experiments.training.step import jax_strategies
from experiments.training.step.jax_strategies import stacked
from experiments.training.step.jax_trainer import JaxTrainer
from experiments.training.step.trainer_state import StepOptions
from tests.beyond.steps import WRITERS
from tests.without_tensorflow.test_lowering import check, check_attention

pytestmark = pytest.mark.timeout(1800)


@pytest.mark.parametrize("name", ["OpenAI GPT", "GPT-2"])
def test_the_token_that_is_written_next(name):
    build, *_ = STEPS[name]
    model = build(0)
    step = generation.NextToken(model.encoder, model.masked_lm)
    state = step.begin(ROWS, LENGTH)
    program = export.export(jax.jit(step), platforms=PLATFORMS)
    check(program(np.ones(ROWS, np.int32), np.int32(3), state))


@pytest.mark.parametrize("decoder", WRITERS)
def test_texts_that_are_written(decoder):
    """The search of beams, as one program."""
    build, batch = STEPS[f"writing, {decoder}"]
    asked = {name: x for name, x in batch.items() if name != "label_ids"}
    check(export.export(jax.jit(build(0)), platforms=PLATFORMS)(asked))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("name", "scores"),
    [
        ("BiLSTM with attention", f"{2 * ROWS}x{LENGTH}x{LENGTH}"),
        ("writing, rnn_attention", f"{ROWS}x{LENGTH}"),
    ],
)
def test_attention_multiplies_in_half_precision_and_its_softmax_does_not(name, scores, precision):
    check_attention(name, scores, precision)


def test_pieces_of_words_are_joined_where_their_rows_are():
    build, batch, *_ = STEPS["ELMo"]
    trainer = JaxTrainer(build, jax_strategies.get_strategy("mirrored"), StepOptions())
    text = trainer.lowered(stacked(iter([batch]), 1, 1, 1)).compile().as_text()
    sent = re.findall(r"= (.*?) (?:all-\w+|collective-permute|reduce-scatter)\(", text)
    assert "f32[" in str(sent) and "s32[" not in str(sent)
