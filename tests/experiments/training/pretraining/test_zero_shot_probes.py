"""Pre-trained models asked without fine-tuning for the same hidden pieces."""

import shutil

import keras
import numpy as np
import pytest
import tiny_runs

from data_prep.records import pretraining_dataset
from experiments.tables.judging.measures import MEASURES
from experiments.tables.run import cells
from experiments.training.finetuning import example_scores
from experiments.training.pretraining import zero_shot_probes
from official_bert.checkpoints import model_folder
from official_bert.common.errors import UserError
from official_bert.encoder import BertEncoder
from official_bert.losses import correct, cross_entropy
from official_bert.pretraining import BertPretrainer
from official_bert.tokenization import BertTokenizer


def saved(model, data, folder):
    tokenizer = BertTokenizer(data / "vocab.txt")
    model_folder.save(folder, model, tokenizer, {"max_seq_length": 24})
    return folder


def first_batch(data, rows):
    batch = next(iter(pretraining_dataset(str(data / "records"), rows, shuffle=False)))
    return {name: x.numpy() for name, x in batch.items()}


@pytest.mark.parametrize("direction", ["bidirectional", "left_to_right"])
def test_the_same_pieces_as_the_models_own_loss_has_them(data, tmp_path, direction):
    bert = tiny_runs.bert(attention_direction=direction)
    model = BertPretrainer(bert, [bert.language_model], seed=3)
    found = zero_shot_probes.cloze(
        saved(model, data, tmp_path / "m"), str(data / "records"), 20, 10
    )
    batch = first_batch(data, 20)
    outputs = model(batch, training=False)
    loss, right = (
        keras.ops.convert_to_numpy(f(outputs["masked_lm_logits"], outputs["masked_lm_ids"]))
        for f in (cross_entropy, correct)
    )
    mask_id = tiny_runs.SPECIAL.index("[MASK]")
    expected = []
    for row, column in np.argwhere(batch["masked_lm_weights"] > 0):
        place = batch["masked_lm_positions"][row, column]
        if batch["input_ids"][row, place] == mask_id:
            # A left-to-right model has the next piece's scores at every position.
            at = column if direction == "bidirectional" else place - 1
            piece = batch["masked_lm_ids"][row, column]
            assert outputs["masked_lm_ids"][row, at] == piece
            expected.append((row, piece, loss[row, at], right[row, at]))
    rows, pieces, losses, hits = map(np.array, zip(*expected, strict=True))
    assert found["examples"] == 20 and len(rows) < (batch["masked_lm_weights"] > 0).sum()
    np.testing.assert_array_equal(found["example"], rows)
    np.testing.assert_array_equal(found["piece"], pieces)
    np.testing.assert_allclose(found["loss"], losses, rtol=1e-4)
    np.testing.assert_array_equal(found["correct"], hits)


def test_a_left_to_right_model_is_asked_with_the_text_to_the_left():
    bert = tiny_runs.bert(attention_direction="left_to_right")
    model = BertPretrainer(bert, ["next_token"], seed=3)
    mask_id = tiny_runs.SPECIAL.index("[MASK]")

    def losses(word=7, shown=mask_id, hidden=8, later=10):
        batch = {
            "input_ids": np.array([[2, word, mask_id, 9, shown, later, 3]], np.int32),
            "input_mask": np.ones((1, 7), np.int32),
            "segment_ids": np.zeros((1, 7), np.int32),
            "masked_lm_positions": np.array([[2, 4, 0]], np.int32),
            "masked_lm_ids": np.array([[hidden, 11, 0]], np.int32),
            "masked_lm_weights": np.array([[1, 1, 0]], np.float32),
        }
        return keras.ops.convert_to_numpy(zero_shot_probes.answers(model, batch)[0])[0, :2]

    first, second = losses()
    np.testing.assert_allclose(losses(shown=15, later=12), [first, second], rtol=1e-5)
    assert abs(losses(hidden=13)[1] - second) > 1e-5  # it reads the word, not its mask
    assert abs(losses(word=14)[0] - first) > 1e-5


def test_sums_of_a_record_give_the_means():
    found = {
        "examples": 3,
        "example": np.array([0, 0, 2]),
        "piece": np.array([7, 8, 7]),
        "loss": np.array([1.0, 3.0, 5.0]),
        "correct": np.array([True, False, True]),
    }
    sums = zero_shot_probes.cloze_statistics(found)
    assert {name: table.tolist() for name, (_, table) in sums.items()} == {
        "cloze_loss": [[4.0, 2.0], [0.0, 0.0], [5.0, 1.0]],
        "cloze_accuracy": [[1.0, 2.0], [0.0, 0.0], [1.0, 1.0]],
    }
    means = [MEASURES[measure](table.sum(axis=0)) for measure, table in sums.values()]
    assert means == [3.0, pytest.approx(200 / 3)]


def test_a_cell_keeps_means_baseline_and_sums(data, tmp_path):
    records = shutil.copytree(data / "records", tmp_path / "records")
    shutil.copytree(data / "records", records / "heldout")
    model = saved(BertPretrainer(tiny_runs.bert(), seed=3), data, tmp_path / "m")
    size = len(tiny_runs.SPECIAL) + 1 + len(tiny_runs.WORDS)
    config = {
        "model": str(model), "records": str(records), "vocab_size": size, "max_examples": 50
    }  # fmt: skip
    (tmp_path / "cell").mkdir()
    result = cells.run_cell("cloze", config, tmp_path / "cell")
    assert result["examples"] == 64 and result["pieces"] > 64  # whole batches
    assert 0 < result["baseline"]["cloze_loss"] < result["heldout"]["cloze_loss"]  # untrained
    for metric, value in result["heldout"].items():
        path = tmp_path / "cell" / "example_scores.npz"
        measure, table = example_scores.load(path, metric)
        factor = 100 if measure == "mean" else 1
        assert len(table) == 64
        assert MEASURES[measure](table.sum(axis=0)) == pytest.approx(factor * value, rel=1e-5)


def test_models_that_cannot_be_asked(data, tmp_path):
    encoder = saved(BertEncoder(tiny_runs.bert()), data, tmp_path / "encoder")
    with pytest.raises(UserError, match='head "none"; this test needs "pretraining"'):
        zero_shot_probes.cloze(encoder, str(data / "records"))
    short = BertPretrainer(tiny_runs.bert(max_position_embeddings=16))
    with pytest.raises(UserError, match="rows of 24 tokens, but .* positions for 16"):
        zero_shot_probes.cloze(saved(short, data, tmp_path / "short"), str(data / "records"))
