"""ELMo against bilm-tf's own embeddings, and against its formulas."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
from keras import ops

from experiments.beyond.elmo.model import ELMo, load_elmo, save_elmo
from experiments.beyond.elmo.shape import ElmoConfig, character_ids
from experiments.beyond.elmo.words_of_pieces import WordsOfPieces
from official_bert import BertAdamW, BertTokenizer
from official_bert.common.errors import UserError
from tests.beyond.parity import elmo_checks

TINY = ElmoConfig(
    filters=((1, 3), (2, 4)), character_width=4, lstm_width=6, projection=5, num_highways=1
)


def test_characters_of_words():
    ids = character_ids(["ab", "é", "[CLS]", "[SEP]", "x" * 60])
    assert ids.shape == (5, 50)
    assert ids[0, :5].tolist() == [259, 98, 99, 260, 261]
    assert ids[1, :4].tolist() == [259, 0xC3 + 1, 0xA9 + 1, 260]
    assert ids[2, :3].tolist() == [259, 257, 260] and ids[3, :3].tolist() == [259, 258, 260]
    assert ids[4, -1] == 260 and (ids[4, 1:-1] == ord("x") + 1).all()


def test_biases_are_not_decayed():
    model, optimizer = ELMo(TINY, seed=0), BertAdamW(1e-3)
    optimizer.build(model.trainable_variables)
    decayed = [
        v for v, rate in zip(model.trainable_variables, optimizer.decays, strict=True) if rate
    ]
    assert all(len(variable.shape) > 1 for variable in decayed)
    assert len(model.trainable_variables) - len(decayed) == 5 + 4  # characters' biases and LSTMs'


def test_words_are_read_in_the_case_of_training():
    words = ["[CLS]", "Ab", "ab"]
    as_they_are = TINY.characters_of(words)
    np.testing.assert_array_equal(as_they_are, character_ids(words))
    lower = dataclasses.replace(TINY, lower_case=True)
    np.testing.assert_array_equal(lower.characters_of(words), as_they_are[[0, 2, 2]])


def test_embeddings_of_bilm_tf(data_dir):
    pytest.importorskip("h5py")
    [result] = elmo_checks.bilm_tf(data_dir, batches=3)  # all of them: tests/beyond/parity
    assert result.holds, result.figure


def test_directions_clipping_and_residual():
    config = dataclasses.replace(TINY, clip=0.01)
    model = ELMo(config, character_ids(["[PAD]", "a", "b", "c"]), seed=0)
    ids, mask = np.array([[1, 2, 3, 1, 0, 0]]), np.array([[1, 1, 1, 1, 0, 0]])
    states = model({"input_ids": ids, "input_mask": mask})["hidden_states"]
    words, first, second = (ops.convert_to_numpy(x)[0] for x in states)
    np.testing.assert_array_equal(words[:, :5], words[:, 5:])
    assert np.abs(first).max() == np.float32(0.01) and (first[4:] == 0).all()
    # With a residual a layer adds at most what is not clipped away.
    assert 0 < np.abs(second - first).max() <= 0.0101
    changed = np.array([[1, 2, 3, 2, 0, 0]])
    other = ops.convert_to_numpy(
        model({"input_ids": changed, "input_mask": mask})["sequence_output"]
    )[0]
    np.testing.assert_allclose(other[:3, :5], second[:3, :5], atol=1e-7)  # forward: the past alone
    assert np.abs(other[0, 5:] - second[0, 5:]).max() > 1e-6
    none = dataclasses.replace(config, residual=False)
    alone = ELMo(none, character_ids(["[PAD]", "a", "b", "c"]), seed=0)
    found = alone({"input_ids": ids, "input_mask": mask})["sequence_output"]
    np.testing.assert_allclose(found[0] + first, second, atol=1e-6)


def test_initial_weights_are_bilm_tfs():
    relu = ELMo(TINY, seed=0).characters
    filters = np.concatenate([ops.convert_to_numpy(kernel).ravel() for kernel, _ in relu.filters])
    assert 0.03 < np.abs(filters).max() <= 0.05
    [((_, carried), (_, transformed))] = relu.highways
    assert (ops.convert_to_numpy(carried) == -2).all()
    assert (ops.convert_to_numpy(transformed) == 0).all()
    tanh = ELMo(dataclasses.replace(TINY, filters=((2, 200),), activation="tanh"), seed=0)
    [(kernel, _)], (projection, _) = tanh.characters.filters, tanh.characters.projection
    assert np.std(kernel) == pytest.approx(8**-0.5, rel=0.1)  # 2 letters of 4 numbers
    assert np.std(projection) == pytest.approx(200**-0.5, rel=0.1)


def test_words_of_pieces():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ab", "##c", "é", "##" + "x" * 30]
    ids = np.array([[2, 5, 6, 7, 3, 6, 5, 0], [2, 6, 8, 8, 3, 0, 0, 0]], "int32")
    words = WordsOfPieces(BertTokenizer(pieces))
    found = words(ids, (ids > 0).astype("int32"))
    found = {name: ops.convert_to_numpy(x) for name, x in found.items()}
    assert found["input_mask"].tolist() == [[1] * 6 + [0] * 2, [1] * 3 + [0] * 5]
    # A word of several pieces is unknown; a piece behind [SEP] or [CLS] begins a word.
    assert found["input_ids"].tolist() == [[2, 1, 7, 3, 6, 5, 0, 0], [2, 1, 3, 0, 0, 0, 0, 0]]
    rows = [["[CLS]", "abc", "é", "[SEP]", "c", "ab"], ["[CLS]", "c" + "x" * 60, "[SEP]"]]
    for row, spelt in enumerate(rows):
        expected = character_ids(spelt)
        np.testing.assert_array_equal(found["character_ids"][row, : len(spelt)], expected)


def test_saved_and_loaded(tmp_path):
    config = dataclasses.replace(TINY, clip=2.0, residual=False, activation="tanh", lower_case=True)
    model = ELMo(config, seed=0)
    save_elmo(tmp_path / "elmo", model)
    loaded = load_elmo(tmp_path / "elmo")
    assert loaded.config == config and config.num_parameters == model.count_params()
    inputs = {"character_ids": character_ids(["a", "bc"])[None], "input_mask": np.ones((1, 2))}
    for one, other in zip(*(m(inputs)["hidden_states"] for m in (model, loaded)), strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(other))


def test_files_that_do_not_fit(data_dir, tmp_path):
    folder = data_dir / "elmo_fixture"
    with pytest.raises(UserError, match="no ELMo"):
        load_elmo(tmp_path)
    for name in ("options.json", "lm_weights.hdf5"):
        shutil.copy(folder / name, tmp_path / name)
    options = json.loads((tmp_path / "options.json").read_text())
    for path, value, message in (
        (("lstm", "dim"), 32, "Cell0/LSTMCell/W_0 has shape"),
        (("lstm", "n_layers"), 3, "Cell2/LSTMCell/W_0 is missing"),
        (("lstm", "proj_clip"), 5, "must be the same number"),
        (("char_cnn", "activation"), "gelu", "activation='gelu'; it is one of relu, tanh"),
    ):
        changed = json.loads(json.dumps(options))
        changed[path[0]][path[1]] = value
        (tmp_path / "options.json").write_text(json.dumps(changed))
        with pytest.raises(UserError, match=message):
            load_elmo(tmp_path)
