"""OpenAI GPT from pre-training to a fine-tuned model, on made-up texts."""

import numpy as np
import pytest
import tiny_runs

from experiments import finetune, pretrain
from experiments.beyond.gpt import recipe as gpt
from experiments.beyond.gpt.options import GptOptions
from experiments.training.settings.config_files import load_config
from experiments.training.settings.options import replaced, value_of
from experiments.training.start import finetuning_preflight, initial_state
from official_bert.checkpoints import model_folder
from official_bert.common.errors import UserError


@pytest.fixture(scope="module")
def pretrained(data, tmp_path_factory):
    """Return the model folder of eight steps of GPT."""
    config = gpt.gpt(tiny_runs.short_config(data))
    results = pretrain.run(config, tmp_path_factory.mktemp("gpt"), progress=False)
    assert list(results.heldout)[0] == "masked_lm_loss"
    return results.model


def config_of(pretrained, texts):
    return replaced(
        gpt.FINETUNE, task="text_classification", data_dir=str(texts), model=pretrained,
        max_seq_length=16, train_batch_size=16, learning_rate=1e-2, num_train_epochs=2.0,
        log_every=1, concat_pooling=True,
    )  # fmt: skip


@pytest.mark.slow
def test_fine_tuning(pretrained, tmp_path):
    config = config_of(pretrained, tiny_runs.write_labelled_texts(tmp_path))
    results = finetune.run(config, tmp_path / "run", progress=False)
    losses = tiny_runs.logged(tmp_path / "run", "lm_loss")
    assert losses[-1] < losses[0]
    label, total = (tiny_runs.logged(tmp_path / "run", x)[-1] for x in ("label_loss", "loss"))
    np.testing.assert_allclose(total, label + 0.5 * losses[-1], rtol=1e-4)
    loaded = model_folder.load(results.files["model"])
    assert loaded.head == "classification" and not loaded.config.embedding_norm
    assert loaded.model.concat_pooling and results.head.startswith("head: new")
    assert not any("masked_lm" in variable.path for variable in loaded.model.weights)


def test_tokens_of_tasks_are_drawn(pretrained, tmp_path):
    config = config_of(pretrained, tmp_path)
    start = initial_state.BertSource().finetuning_start(config, None, {})
    before = start.weights[0]
    after = start.encoder(config, seed=7).embeddings.word_embeddings.numpy()
    changed = np.flatnonzero((before != after).any(axis=1))
    assert changed.tolist() == [start.tokenizer.cls_id, start.tokenizer.sep_id]
    assert np.abs(after[changed]).max() <= 2 * start.bert.initializer_range
    fine_tuned = replaced(start, head={"head": "classification"})
    same = fine_tuned.encoder(config, seed=7).embeddings.word_embeddings.numpy()
    np.testing.assert_array_equal(same, before)


def test_a_head_with_weights_is_the_pretrained_one(data, pretrained, tmp_path):
    loaded = initial_state.read_model(pretrained, "fine-tuning")
    bert = loaded.bert.replaced(prediction_transform=True)
    path = "pretrainer/masked_lm/transform/kernel"
    kernel = np.ones((16, 16), "float32")
    start = replaced(loaded, bert=bert, head_weights={path: kernel})
    config = config_of(pretrained, tmp_path)
    head = {"head": "classification", "num_labels": 2, "problem": "single_label"}
    model = start.model(config, head, seed=1)
    model = GptOptions.of(config).wrap(model, start, config, head, seed=1)
    np.testing.assert_array_equal(model.masked_lm.transform.kernel.numpy(), kernel)
    assert not any("masked_lm" in variable.path for variable in model.student.weights)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"features": "last"}, "features"),
        ({"teacher": "x"}, "teacher: not together with lm_loss_weight"),
    ],
)
def test_what_does_not_go_together(pretrained, data, tmp_path, fields, message):
    texts = tiny_runs.write_labelled_texts(tmp_path)
    config = replaced(config_of(pretrained, texts), **fields)
    with pytest.raises(UserError, match=message):
        bert = initial_state.BertSource().finetuning_start(config, None, {}).bert
        finetuning_preflight.check_model(config, finetuning_preflight._task(config), bert)


def test_figure_5_may_have_a_curve_of_gpt():
    alone, both = load_config("figure5:smoke"), load_config("figure5:smoke+gpt")
    assert all(part in both.variants for part in alone.variants)
    assert all(part in both.rows for part in alone.rows)
    assert alone.claims == both.claims
    [line] = [curve for curve in both.curves if curve not in alone.curves]
    masked, ours = both.variant("masked LM").pretrain, both.variant("OpenAI GPT").pretrain
    assert line.label == "OpenAI GPT" and ours.phases == masked.phases
    assert ours.snapshots == masked.snapshots and not ours.bert.embedding_norm
    steps = [both.row(label).snapshot for label in line.rows]
    assert steps == [*ours.snapshots, 0]
    assert all(both.row(label).finetune["lm_loss_weight"] == 0.5 for label in line.rows)
    with pytest.raises(UserError, match='no curve "elmo" .* valid: gpt'):
        load_config("figure5:smoke+elmo")


def test_configurations():
    small = load_config("gpt:tiny")
    assert small.bert.attention_direction == "left_to_right" and not small.bert.embedding_norm
    assert small.objectives == ("next_token",) and small.bert.num_hidden_layers == 2
    assert value_of(load_config("gpt"), "lm_loss_weight") == 0.5
    bert = tiny_runs.bert()
    config = replaced(load_config("gpt"), bert=bert, max_seq_length=16)
    with pytest.raises(UserError, match="read left to right; this one's direction is bidirect"):
        finetuning_preflight.check_model(config, _Classification, bert)


class _Classification:
    head = {"head": "classification"}

    @staticmethod
    def check_training(config, bert):
        pass


def test_gpt2_is_gpt_that_normalises_first():
    for scale in ("tiny", "smoke"):
        one, two = load_config(f"gpt:{scale}"), load_config(f"gpt2:{scale}")
        assert one.bert.replaced(norm_first=True) == two.bert
        assert replaced(one, bert=two.bert) == two
