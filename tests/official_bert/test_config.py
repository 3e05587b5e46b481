"""BertConfig: JSON round trips, named sizes, errors that name the field."""

import json

import pytest

from official_bert import BertConfig, UserError, named_config
from official_bert.config import NAMED_SIZES


def test_json_round_trip(tmp_path):
    config = named_config("mini", attention_direction="left_to_right", gelu_form="tanh")
    config.to_json_file(tmp_path / "bert_config.json")
    assert BertConfig.from_json_file(tmp_path / "bert_config.json") == config


def test_reads_googles_files(tmp_path):
    fields = {"vocab_size": 21128, "hidden_size": 8, "num_attention_heads": 2, "pooler_fc_size": 8}
    (tmp_path / "bert_config.json").write_text(json.dumps(fields))
    config = BertConfig.from_json_file(tmp_path / "bert_config.json")
    assert (config.vocab_size, config.hidden_size, config.gelu_form) == (21128, 8, "erf")


@pytest.mark.parametrize(
    "field, value",
    [
        ("num_attention_heads", 7),
        ("hidden_size", 0),
        ("vocab_size", -1),
        ("vocab_size", "30522"),
        ("num_hidden_layers", True),
        ("hidden_act", "swish"),
        ("hidden_dropout_prob", 1.0),
        ("attention_direction", "both"),
        ("gelu_form", "exact"),
        ("hiden_size", 768),
    ],
)
def test_errors_name_the_field(field, value):
    with pytest.raises(UserError, match=field):
        BertConfig.from_dict({field: value})


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "bert_config.json"
    with pytest.raises(UserError, match=r"bert_config\.json"):
        BertConfig.from_json_file(path)
    path.write_text("{")
    with pytest.raises(UserError, match=r"bert_config\.json: not valid JSON"):
        BertConfig.from_json_file(path)


def test_named_sizes():
    assert len([name for name in NAMED_SIZES if name.startswith("L-")]) == 24
    assert len([name for name in NAMED_SIZES if name.startswith("table6-")]) == 6
    row_two = named_config("table6-L6-H768-A3")
    assert (row_two.num_attention_heads, row_two.intermediate_size) == (3, 3072)
    for name in NAMED_SIZES:
        named_config(name)
    with pytest.raises(UserError, match="huge"):
        named_config("huge")
