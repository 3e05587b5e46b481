"""The list of objectives, how they are written, and models of the time before there was one."""

import dataclasses
import json

import pytest

from official_bert import BertPretrainer, UserError
from official_bert.checkpoints import model_folder
from official_bert.objectives import objective, of_bert
from official_bert.objectives.next_token import NextToken
from official_bert.objectives.sentence_pair import NextSentence


def test_written_and_read_back():
    for written in ("masked_lm", "next_sentence", {"name": "next_token", "fraction": 0.3}):
        assert objective(written).written() == written
        assert objective(objective(written)) is not None
    assert objective("next_token") == NextToken(fraction=1.0) != NextToken(fraction=0.3)
    assert len({objective("next_sentence"), NextSentence()}) == 1


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("masked", "no objective 'masked'; there are masked_lm, next_token"),
        ({"fraction": 0.3}, "no objective None"),
        ({"name": "next_token", "share": 0.3}, "objective next_token: .*'share'"),
    ],
)
def test_what_is_no_objective(written, message):
    with pytest.raises(UserError, match=message):
        objective(written)


def test_objectives_of_the_models_of_table_5():
    assert of_bert("bidirectional") == ("masked_lm", "next_sentence")
    assert of_bert("bidirectional", use_nsp=False) == ("masked_lm",)
    assert of_bert("left_to_right", False) == ("next_token",)
    assert of_bert("left_to_right", False, 0.3) == ({"name": "next_token", "fraction": 0.3},)


def test_an_objective_that_does_not_fit_the_direction_of_attention(config):
    with pytest.raises(UserError, match="next_token: .* 'bidirectional', it needs 'left_to_right'"):
        BertPretrainer(config, ["next_token"])


def test_a_batch_without_the_fields_of_an_objective(config, inputs):
    with pytest.raises(UserError, match="masked_lm: the batch has no masked_lm_positions, masked"):
        BertPretrainer(config)(inputs)


def test_models_of_the_time_before_objectives(config, tmp_path, tokenizer):
    left_to_right = dataclasses.replace(config, attention_direction="left_to_right")
    model = BertPretrainer(left_to_right, [NextToken(fraction=0.5)], seed=0)
    model_folder.save(tmp_path / "m", model, tokenizer)
    path = tmp_path / "m" / "model.json"
    settings = json.loads(path.read_text())
    assert settings.pop("objectives") == [{"name": "next_token", "fraction": 0.5}]
    del settings["checksums"]
    path.write_text(json.dumps({**settings, "use_nsp": False, "left_to_right_fraction": 0.5}))
    with pytest.warns(UserWarning, match="no checksums"):
        assert model_folder.load(tmp_path / "m").model.objectives == model.objectives
    values = model.get_config()
    del values["objectives"]
    old = {**values, "use_nsp": True, "left_to_right_fraction": 1.0}
    assert BertPretrainer.from_config(old).objectives == (NextToken(), NextSentence())


def test_a_model_folder_with_a_wrong_objective_names_its_file(config, tmp_path, tokenizer):
    model_folder.save(tmp_path / "m", BertPretrainer(config, seed=0), tokenizer)
    path = tmp_path / "m" / "model.json"
    path.write_text(path.read_text().replace('"next_sentence"', '"last_sentence"'))
    with pytest.raises(UserError, match=r"model.json: objectives: no objective 'last_sentence'"):
        model_folder.load(tmp_path / "m")
