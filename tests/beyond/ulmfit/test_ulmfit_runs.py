"""ULMFiT from pre-training to a classifier that is thawed layer by layer, on made-up texts."""

import pytest
import tiny_runs

from experiments import finetune, pretrain
from experiments.beyond.ulmfit import recipe as ulmfit
from experiments.beyond.ulmfit.shape import AwdLstmConfig
from experiments.training.settings.config_files import load_config
from experiments.training.settings.options import replaced, value_of
from experiments.training.start import finetuning_preflight, reuse_head
from official_bert.checkpoints import model_folder
from official_bert.common.errors import UserError


def test_three_stages(data, tmp_path):
    small = replaced(ulmfit.SMALL, hidden_size=16, intermediate_size=24)
    config = ulmfit.ulmfit(tiny_runs.short_config(data), small)
    first = pretrain.run(config, tmp_path / "general", progress=False)
    task = replaced(config, bert="", vocab="", init_from=first.model)
    second = pretrain.run(task, tmp_path / "task", progress=False)
    [one, two] = (results.heldout["masked_lm_loss"] for results in (first, second))
    assert two < one
    texts = tiny_runs.write_labelled_texts(tmp_path)
    config = replaced(
        ulmfit.FINETUNE, task="text_classification", data_dir=str(texts), model=second.model,
        max_seq_length=16, train_batch_size=16, num_train_epochs=6.0, log_every=1,
    )  # fmt: skip
    results = finetune.run(config, tmp_path / "run", progress=False)
    losses = tiny_runs.logged(tmp_path / "run", "loss")
    assert losses[-1] < losses[0]
    loaded = model_folder.load(results.files["model"])
    assert isinstance(loaded.config, AwdLstmConfig) and loaded.model.concat_pooling
    frozen = replaced(config, features="last", concat_pooling=False)
    with pytest.raises(UserError, match="the layers of this encoder are not equally wide"):
        finetuning_preflight.check_model(frozen, _Tagging, loaded.config)


class _Tagging:
    head = {"head": "tagging"}


def test_configurations():
    small, whole = load_config("ulmfit:tiny"), load_config("ulmfit:paper")
    assert small.bert.vocab_size == 8192
    assert small.objectives == ("next_token",)
    assert whole.bert.widths == [400, 1150, 1150, 400]
    finetuning = load_config("ulmfit")
    assert value_of(finetuning, "concat_pooling")
    assert finetuning.layer_decay == pytest.approx(1 / 2.6)


def test_a_head_of_another_pooling_is_new():
    ours = {"head": "classification", "problem": "single_label", "num_labels": 2}
    why = reuse_head.difference({**ours, "concat_pooling": True}, ours, bilstm=False)
    assert why == "the model's concat_pooling is True, the one asked for False"
    assert not reuse_head.difference({**ours, "concat_pooling": False}, ours, bilstm=False)
