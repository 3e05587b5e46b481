"""ELMo's states as features of a tagging run, and beside the word vectors of a pair of texts."""

import dataclasses

import numpy as np
import pytest

from experiments import finetune
from experiments.training import word_models
from experiments.training.config import FinetuneConfig
from official_bert.errors import UserError

SENTENCES = {"train": 24, "valid": 8}


@pytest.fixture
def config(tmp_path, data_dir, monkeypatch):
    monkeypatch.setenv("OFFICIAL_BERT_CACHE", str(tmp_path / "cache"))
    for name, count in SENTENCES.items():
        lines = ["-DOCSTART- O", ""]
        for i in range(count):
            lines += [f"{('Paris', 'London')[i % 2]} I-LOC", "sees O", f"{'xyz'[i % 3]}s O", ""]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    return FinetuneConfig(
        task="conll2003", data_dir=str(tmp_path), model=str(data_dir / "elmo_fixture"),
        features="elmo", feature_width=8, max_seq_length=16, train_batch_size=8,
        learning_rate=3e-2, num_train_epochs=6.0,
    )  # fmt: skip


def test_features_of_elmo(config, tmp_path):
    results = finetune.run(config, tmp_path / "run", progress=False)
    assert results["dev"]["f1"] > 0.9  # names begin sentences, and have capitals
    assert len(list((tmp_path / "cache" / "hidden_states").glob("*/layer-*.npy"))) == 6
    with pytest.raises(UserError, match="set --config.features=elmo"):
        finetune.run(dataclasses.replace(config, features=""), tmp_path / "x", progress=False)


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

    found = word_models.elmo_states(states_of, batch)
    assert asked[0] == [[1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0]]
    assert asked[1] == [[1, 0, 0, 0, 1, 1, 0], [1, 0, 0, 1, 1, 1, 0]]  # each begins as a text does
    assert found.shape == (2, 7, 3, 2)
    assert found[..., 0, 0].tolist() == [[1, 1, 1, 1, 2, 2, 1], [1, 1, 1, 2, 2, 2, 1]]
    one = {**batch, "segment_ids": np.zeros_like(ids)}
    asked.clear()
    word_models.elmo_states(states_of, one)
    assert len(asked) == 1
