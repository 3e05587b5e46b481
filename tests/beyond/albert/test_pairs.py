"""Pre-trained models asked about pairs of segments, without fine-tuning."""

import shutil

import keras
import numpy as np
import pytest
import tiny_runs

from data_prep.records import numpy_batches, open_records
from experiments.beyond.albert import pairs
from experiments.tables.judging.measures import MEASURES
from experiments.tables.run import cells
from experiments.training.finetuning import example_scores
from official_bert.checkpoints import model_folder
from official_bert.common.errors import UserError
from official_bert.pretraining import BertPretrainer
from official_bert.tokenization import BertTokenizer

ROWS = 32


def saved_for_pairs(data, folder, *objectives):
    model = BertPretrainer(tiny_runs.bert(), ["masked_lm", *objectives], seed=3)
    model_folder.save(folder, model, BertTokenizer(data / "vocab.txt"), {"max_seq_length": 24})
    return model


def test_both_questions_of_both_heads(data, tmp_path):
    records = str(data / "records")
    batch = next(numpy_batches(open_records(records), ROWS, shuffle=False))
    random = batch["next_sentence_labels"][:, 0]
    for learnt, other in (pairs.QUESTIONS, pairs.QUESTIONS[::-1]):
        model = saved_for_pairs(data, tmp_path / learnt, learnt)
        own = pairs.pairs(tmp_path / learnt, records, learnt, ROWS, batch_size=8)
        # Pre-training's own numbers for these records.
        terms = model.metric_terms(batch, model(batch, training=False))
        right, asked = map(keras.ops.convert_to_numpy, terms[f"{learnt}_accuracy"])
        assert (own["correct"] * own["weight"]).sum() == right and own["weight"].sum() == asked
        crossed = pairs.pairs(tmp_path / learnt, records, other, ROWS, ROWS)
        found = {learnt: own, other: crossed}
        np.testing.assert_array_equal(found["next_sentence"]["label"], random)
        np.testing.assert_array_equal(found["sentence_order"]["label"], np.arange(ROWS) % 2)
        np.testing.assert_array_equal(found["sentence_order"]["weight"], 1 - random)
        # One head, one encoder: rows that neither question changes get the same answer from both.
        answers = {q: np.where(f["correct"], f["label"], 1 - f["label"]) for q, f in found.items()}
        even = np.arange(ROWS) % 2 == 0
        np.testing.assert_array_equal(*(answer[even] for answer in answers.values()))


def test_a_cell_keeps_mean_baseline_and_sums(data, tmp_path):
    records = shutil.copytree(data / "records", tmp_path / "records")
    shutil.copytree(data / "records", records / "heldout")
    saved_for_pairs(data, tmp_path / "m", "next_sentence")
    (tmp_path / "cell").mkdir()
    asked = {"question": "sentence_order", "max_examples": ROWS}
    config = asked | {"model": str(tmp_path / "m"), "records": str(records)}
    result = cells.run_cell("pairs", config, tmp_path / "cell")
    [(metric, value)] = result["heldout"].items()
    path = tmp_path / "cell" / "example_scores.npz"
    measure, table = example_scores.load(path, metric)
    assert metric == "sentence_order_accuracy" and len(table) == 64  # whole batches
    assert MEASURES[measure](table.sum(axis=0)) == pytest.approx(100 * value)
    assert 0.5 <= result["baseline"][metric] < 1 and result["examples"] == table[:, 1].sum() < 64


def test_a_model_without_a_head_for_pairs(data, tmp_path):
    saved_for_pairs(data, tmp_path / "m")
    with pytest.raises(UserError, match="without an objective of next_sentence, sentence_order"):
        pairs.pairs(tmp_path / "m", str(data / "records"), "next_sentence")
