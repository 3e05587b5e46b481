"""ELMo as features of a tagging run, and in place of a text's word vectors."""

import json

import numpy as np
import pytest
import tiny_runs

from data_prep.tasks import get_task
from experiments import finetune, pretrain
from experiments.beyond.elmo.model import load_elmo
from experiments.beyond.elmo.shape import ElmoConfig
from experiments.beyond.words import start as word_vectors
from experiments.training.settings import flops
from experiments.training.settings.config import FinetuneConfig, Phase
from experiments.training.settings.config_files import load_config
from experiments.training.settings.config_values import from_dict, to_dict
from experiments.training.settings.options import replaced
from experiments.training.start import preflight
from official_bert.common.errors import UserError

SENTENCES = {"train": 24, "valid": 8}


@pytest.fixture
def config(tmp_path, data_dir, monkeypatch):
    monkeypatch.setenv("OFFICIAL_BERT_CACHE", str(tmp_path / "cache"))
    for name, count in SENTENCES.items():
        lines = ["-DOCSTART- O", ""]
        for i in range(count):
            # Their letters alone tell names: they stand in either place.
            words = [f"{('Paris', 'London')[i % 2]} I-LOC", f"{'xyz'[i % 3]}s O"]
            lines += [*words[:: (1, -1)[i // 2 % 2]], "end O", ""]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    return FinetuneConfig(
        task="conll2003", data_dir=str(tmp_path), model=str(data_dir / "elmo_fixture"),
        features="elmo", feature_width=8, max_seq_length=16, train_batch_size=8,
        learning_rate=3e-2, num_train_epochs=80.0,
    )  # fmt: skip


@pytest.mark.slow
def test_features_of_elmo(config, tmp_path):
    results = finetune.run(config, tmp_path / "run", progress=False)
    assert results.dev["f1"] > 0.9
    assert len(list((tmp_path / "cache" / "hidden_states").glob("*/layer-*.npy"))) == 6
    with pytest.raises(UserError, match="set --config.features=elmo"):
        finetune.run(replaced(config, features=""), tmp_path / "x", progress=False)


@pytest.mark.slow
def test_in_place_of_word_vectors(config, tmp_path):
    texts = tiny_runs.write_labelled_texts(tmp_path)
    config = replaced(
        load_config("bilstm_attention:small"), task="text_classification", data_dir=str(texts),
        elmo=config.model, feature_width=8, max_seq_length=16, num_train_epochs=1.0,
    )  # fmt: skip
    task = get_task(config.task, config.data_dir)
    start = word_vectors.start(config, task, {})
    assert start.vectors.shape[1] == 0
    texts = [text for example in task.examples("train") for text in task.texts(example)]
    assert start.tokenizer.unk_id not in {i for text in texts for i in start.tokenizer.encode(text)}
    results = finetune.run(config, tmp_path / "run", progress=False)
    assert results.steps == 5
    losses = tiny_runs.logged(tmp_path / "run", "loss")
    assert losses[-1] < 0.8


@pytest.mark.slow
def test_pre_trained_on_records(data, tmp_path):
    vocab_size = tiny_runs.bert().vocab_size
    elmo = ElmoConfig(
        filters=((1, 4), (2, 8)), character_width=4, num_highways=1, lstm_width=12, projection=8,
        vocab_size=vocab_size,
    )  # fmt: skip
    records = str(data / "short")
    config = tiny_runs.pretrain_config(
        data, bert=elmo, phases=(Phase(records, 16, 12, records),),
        objectives=({"name": "adjacent_words", "fraction": 0.6},),
    )  # fmt: skip
    assert from_dict(type(config), json.loads(json.dumps(to_dict(config)))) == config
    results = pretrain.run(config, tmp_path / "run", progress=False)
    losses = tiny_runs.logged(tmp_path / "run", "masked_lm_loss")
    assert losses[-1] < losses[0] and results.heldout["masked_lm_loss"] < np.log(vocab_size)
    loaded = load_elmo(results.model)
    softmax = vocab_size * (8 + 1)
    assert loaded.config == replaced(elmo, vocab_size=0, lower_case=True)
    assert results.parameters == loaded.count_params() + softmax
    for wrong, message in (
        ({"objectives": ("masked_lm",)}, "objectives: those of an ELMo"),
        ({"teacher": "x"}, "teacher is not for an ELMo"),
    ):
        with pytest.raises(UserError, match=message):
            preflight.pretraining(replaced(config, **wrong))


def test_work_of_elmo_by_hand():
    elmo = ElmoConfig(
        filters=((2, 3),), character_width=4, num_highways=1, lstm_width=6, projection=5,
        num_hidden_layers=1, vocab_size=10,
    )  # fmt: skip
    word = 49 * 2 * 4 * 3 + 2 * 3 * 3 + 3 * 5 + 2 * (10 * 24 + 6 * 5)
    assert elmo.encoder_flops(2, 7) == 2 * 7 * 2 * word
    step = flops.pretraining_step_flops(elmo, ["adjacent_words"], 2, 7, 1)
    assert step == 3 * (2 * 7 * 2 * word + 2 * 12 * 2 * 5 * 10)


def test_configurations_of_pre_training():
    for scale in ("tiny", "smoke"):
        config, bert = load_config(f"elmo:{scale}"), load_config(f"pretrain:{scale}")
        assert config.phases == bert.phases and config.bert.vocab_size == bert.bert.vocab_size
        assert config.bert.hidden_size in (bert.bert.hidden_size, 2 * bert.bert.hidden_size)


def test_each_text_of_a_pair_is_read_on_its_own():
    ids = np.array([[2, 7, 8, 3, 9, 3, 0], [2, 7, 3, 9, 8, 3, 0]], "int32")
    batch = {
        "input_ids": ids,
        "input_mask": (ids > 0).astype("int32"),
        "segment_ids": np.array([[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1, 0]], "int32"),
    }
    asked = []

    def states_of(inputs):
        asked.append(inputs["input_mask"].tolist())
        return np.full((*ids.shape, 3, 2), len(asked), "float32")

    found = word_vectors.elmo_states(states_of, batch)
    assert asked[0] == [[1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0]]
    assert asked[1] == [[1, 0, 0, 0, 1, 1, 0], [1, 0, 0, 1, 1, 1, 0]]  # each begins as a text does
    assert found.shape == (2, 7, 3, 2)
    assert found[..., 0, 0].tolist() == [[1, 1, 1, 1, 2, 2, 1], [1, 1, 1, 2, 2, 2, 1]]
    one = {**batch, "segment_ids": np.zeros_like(ids)}
    asked.clear()
    word_vectors.elmo_states(states_of, one)
    assert len(asked) == 1
