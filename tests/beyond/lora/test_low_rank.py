"""Low-rank updates: what they change, what they end in, and a step beside the same in torch."""

import numpy as np
import pytest
import tiny_runs

from experiments.beyond.lora.low_rank import adapt, merged
from experiments.beyond.lora.options import LoraOptions
from experiments.beyond.ulmfit.shape import AwdLstmConfig
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.options import replaced
from experiments.training.step.backend import Trainer, strategies
from experiments.training.step.trainer_state import StepOptions
from official_bert import BertEncoder
from official_bert.common.errors import UserError
from official_bert.heads import BertClassifier

PRODUCTS = ("query", "key", "value", "attention/output", "intermediate", "output")
BATCH = {
    **{name: tiny_runs.batch()[name] for name in ("input_ids", "input_mask", "segment_ids")},
    "label_ids": np.array([0, 1, 2, 0, 1, 2, 0, 1], np.int32),
}


def plain(seed=1, **fields):
    fields = {"num_hidden_layers": 2, **fields}
    return BertClassifier(BertEncoder(tiny_runs.bert(**fields), seed=seed), 3, seed=seed)


def adapted(seed=1, freeze="", alpha=6.0, **fields):
    model = plain(seed, **fields)
    if freeze:
        model.encoder.freeze(freeze)
    adapt(model.encoder, 2, alpha, seed)
    return model


def arrays(model):
    return {variable.path.split("/", 1)[1]: variable.numpy() for variable in model.weights}


def trained(build, steps=3):
    trainer = Trainer(build, strategies.get_strategy("one_device"), StepOptions(), seed=1)
    trainer.set_schedule(0.05, 0, 100)
    for _ in range(steps):
        trainer.train_on(BATCH)
    return trainer


def test_an_adapted_encoder_computes_what_it_did():
    one, two = plain(), adapted()
    for first, second in zip(one(BATCH).values(), two(BATCH).values(), strict=True):
        np.testing.assert_array_equal(first, second)


def test_only_updates_pooler_and_head_are_trained():
    before = arrays(adapted())
    after = arrays(trained(adapted).model)
    changed = {name for name in before if (before[name] != after[name]).any()}
    updates = {name for name in before if "/lora_kernel_" in name}
    assert len(updates) == 2 * 2 * len(PRODUCTS)
    above = {name for name in before if name.startswith(("pooler/", "head/"))}
    assert changed == updates | above and len(above) == 4


@pytest.mark.parametrize("freeze", ["pooler", "blocks:0", "embeddings"])
def test_frozen_parts_have_no_updates(freeze):
    names = {variable.path for variable in adapted(freeze=freeze).trainable_variables}
    assert any("pooler" in name for name in names) == (freeze != "pooler")
    assert any("layer_0" in name for name in names) == (freeze != "blocks:0")
    assert any("layer_1" in name for name in names)


@pytest.mark.parametrize("fields", [{}, {"attention_direction": "left_to_right"}])
def test_a_merged_model_is_plain_and_answers_the_same(fields):
    model = trained(lambda seed: adapted(seed, **fields)).model
    found = merged(model)
    assert set(arrays(found)) == set(arrays(plain(**fields)))
    kernel = model.encoder.blocks[1].attention.value
    update = 6.0 / 2 * kernel.lora_kernel_a.numpy() @ kernel.lora_kernel_b.numpy()
    assert np.abs(update).max() > 1e-3
    np.testing.assert_allclose(
        found.encoder.blocks[1].attention.value.kernel,
        arrays(plain(**fields))["layer_1/attention/value/kernel"] + update, atol=1e-6,
    )  # fmt: skip
    for ours, theirs in zip(found(BATCH).values(), model(BATCH).values(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert all("lora" not in variable.path for variable in found.weights)


def test_updates_are_drawn_from_the_seed_and_differ():
    first, same, other = (adapted(seed) for seed in (1, 1, 2))
    drawn, again, others = (
        [v.numpy() for v in model.weights if v.name == "lora_kernel_a"]
        for model in (first, same, other)
    )
    np.testing.assert_array_equal(np.concatenate(drawn), np.concatenate(again))
    assert len({array.tobytes() for array in drawn + others}) == 2 * len(drawn)
    assert all(np.abs(array).max() <= array.shape[0] ** -0.5 for array in drawn)


def test_what_cannot_be_adapted():
    model = adapted()
    with pytest.raises(UserError, match="merge them first"):
        adapt(model.encoder, 2)
    config = AwdLstmConfig.from_dict({
        **tiny_runs.bert().to_dict(), "recurrent": True, "num_attention_heads": 1,
        "attention_direction": "left_to_right", "type_vocab_size": 0,
    })  # fmt: skip
    with pytest.raises(UserError, match="no such blocks"):
        adapt(BertEncoder(config, seed=1), 2)
    with pytest.raises(UserError, match="lora_rank is -1; it must not be negative"):
        replaced(FinetuneConfig(), lora_rank=-1)
    with pytest.raises(UserError, match="set lora_rank too"):
        LoraOptions(lora_alpha=8.0)


@pytest.mark.parity
def test_steps_are_those_of_peft():
    pytest.importorskip("peft")
    from tests.beyond.parity.lora_checks import adapters_of_peft, lora_of_peft

    assert all(result.holds for result in [*lora_of_peft(), *adapters_of_peft()])
