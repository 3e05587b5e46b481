"""LoRA in the command: runs, their model folders, and runs that go on."""

import numpy as np
import pytest
import tiny_runs

from experiments import finetune, pretrain
from experiments.beyond.lora import adapter
from experiments.beyond.lora.options import LoraOptions
from experiments.training.folder.checkpointing import Checkpoints
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.config_files import load_config
from experiments.training.settings.options import replaced, value_of
from official_bert.checkpoints import model_folder, model_settings
from official_bert.common.errors import UserError


@pytest.fixture(scope="module")
def config(data, tmp_path_factory):
    """Return a fine-tuning of twenty steps, with dropout, from a model of eight."""
    folder = tmp_path_factory.mktemp("lora")
    pretrained = pretrain.run(tiny_runs.short_config(data), folder / "pretrained", progress=False)
    return replaced(
        FinetuneConfig(), task="text_classification", model=pretrained.model,
        data_dir=str(tiny_runs.write_labelled_texts(folder)), max_seq_length=16,
        train_batch_size=16, num_train_epochs=2.0, learning_rate=1e-2, log_every=1, save_every=6,
        lora_rank=2, lora_alpha=4.0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(config, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("whole") / "run"
    return workdir, finetune.run(config, workdir, progress=False)


def arrays(folder):
    encoder = model_folder.load(folder).encoder
    return {variable.path: np.asarray(variable.numpy()) for variable in encoder.weights}


def test_the_model_folder_is_a_plain_one(config, whole):
    workdir, results = whole
    losses = tiny_runs.logged(workdir, "loss")
    assert losses[-1] < losses[0]
    before, after = arrays(config.model), arrays(results.files["model"])
    assert list(before) == list(after)
    changed = {name for name in before if (before[name] != after[name]).any()}
    kernels = {name for name in before if "/layer_0/" in name and name.endswith("/kernel")}
    assert len(kernels) == 6
    assert changed == kernels | {"encoder/pooler/kernel", "encoder/pooler/bias"}
    ranks = {np.linalg.matrix_rank(after[name] - before[name], tol=1e-5) for name in kernels}
    assert ranks == {2}


@pytest.mark.slow
def test_the_model_folder_answers_as_the_run_did(config, whole, tmp_path):
    workdir, results = whole
    again = replaced(
        config, model=results.files["model"], num_train_epochs=1e-9, learning_rate=1e-30,
        lora_rank=0, lora_alpha=0.0,
    )  # fmt: skip
    found = finetune.run(again, tmp_path / "again", progress=False)
    assert found.dev == pytest.approx(results.dev, rel=1e-4)


class Stopped(Exception):
    """The end of a process."""


def test_a_run_goes_on_to_the_same_bits(config, whole, tmp_path, monkeypatch):
    workdir, results = whole
    save = Checkpoints.save

    def stopping(self, step, *args, **kwargs):
        save(self, step, *args, **kwargs)
        if step == 6:
            raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "save", stopping)
        with pytest.raises(Stopped):
            finetune.run(config, tmp_path / "run", progress=False)
    found = finetune.run(config, tmp_path / "run", progress=False)
    assert tiny_runs.logged(tmp_path / "run", "loss") == tiny_runs.logged(workdir, "loss")
    ours, theirs = arrays(found.files["model"]), arrays(results.files["model"])
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name], array)


def test_options_on_the_command_line():
    config = load_config("text_classification", ["lora_rank=8"])
    assert value_of(config, "lora_rank") == 8 and LoraOptions.of(config).lora_alpha == 0
    assert not load_config("text_classification", ["lora_rank=0"]).model_options


def test_features_are_not_updated(config):
    frozen = replaced(config, features="last")
    with pytest.raises(UserError, match="with features it is frozen"):
        LoraOptions.of(frozen).check_model(frozen, None, tiny_runs.bert())


def test_an_adapter_gives_the_model_again(config, whole, tmp_path):
    workdir, results = whole
    folder, model = tmp_path / "adapter", results.files["model"]
    told = adapter.run(base=config.model, model=model, output=str(folder))
    assert "rank 2" in told and {p.name for p in folder.iterdir()} == {
        "adapter_config.json", "adapter_model.safetensors", "model.json",
    }  # fmt: skip
    adapter.run(base=config.model, adapter=str(folder), output=str(tmp_path / "model"))
    expected, found = arrays(model), arrays(tmp_path / "model")
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, atol=1e-6)
    first, second = (model_settings.read_settings(at) for at in (model, tmp_path / "model"))
    assert first["labels"] == second["labels"] and first["task"] == second["task"]
    with pytest.raises(UserError, match="another checkpoint than this base"):
        adapter.run(base=model, adapter=str(folder), output=str(tmp_path / "other"))
    changed = model_folder.load(model)
    kernel = changed.encoder.blocks[0].attention.query.kernel
    kernel.assign(np.random.default_rng(0).normal(size=kernel.shape))
    model_folder.save(tmp_path / "whole", changed.model, changed.tokenizer, changed.settings)
    with pytest.raises(UserError, match="trained whole, or from another checkpoint"):
        adapter.run(base=config.model, model=str(tmp_path / "whole"), output=str(tmp_path / "x"))
