"""The list of objectives, how they are written, and which directions of attention they fit."""

import pytest

from official_bert import BertPretrainer, UserError
from official_bert.checkpoints import model_folder
from official_bert.objectives import objective
from official_bert.objectives.next_token import NextToken
from official_bert.objectives.sentence_pair import NextSentence


def test_written_and_read_back():
    for written in ("masked_lm", "next_sentence", {"name": "next_token", "fraction": 0.3}):
        assert objective(written).to_spec() == written
        assert objective(objective(written)) is not None
    assert objective("next_token") == NextToken(fraction=1.0) != NextToken(fraction=0.3)
    assert len({objective("next_sentence"), NextSentence()}) == 1


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("masked", "objective='masked'; it is one of masked_lm, next_token"),
        ({"fraction": 0.3}, "objective=None; it is one of"),
        ({"name": "next_token", "share": 0.3}, "objective next_token: .* share; the .* fraction"),
        ({"name": "next_token", "fraction": "x"}, "next_token: fraction must be a number, not "),
    ],
)
def test_what_is_no_objective(written, message):
    with pytest.raises(UserError, match=message):
        objective(written)


def test_an_objective_that_does_not_fit_the_direction_of_attention(config):
    with pytest.raises(UserError, match="next_token is .* 'bidirectional'; write masked_lm in"):
        BertPretrainer(config, ["next_token"])


def test_a_batch_without_the_fields_of_an_objective(config, inputs):
    with pytest.raises(UserError, match="masked_lm: the batch has no masked_lm_positions, masked"):
        BertPretrainer(config)(inputs)


def test_a_model_folder_with_a_wrong_objective_names_its_file(config, tmp_path, tokenizer):
    model_folder.save(tmp_path / "m", BertPretrainer(config, seed=0), tokenizer)
    path = tmp_path / "m" / "model.json"
    path.write_text(path.read_text().replace('"next_sentence"', '"last_sentence"'))
    with pytest.raises(UserError, match=r"model.json: objectives: objective='last_sentence'"):
        model_folder.load(tmp_path / "m")
