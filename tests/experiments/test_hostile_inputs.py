"""Models and records from strangers, where commands use more of them than the loaders do."""

import json
import types

import pytest

from data_prep.pretraining.reading.record_checks import SCHEMA
from data_prep.records import open_records
from experiments.training.answers import export_model
from experiments.training.answers.predictor import read_task
from experiments.training.pretraining import heldout
from experiments.training.pretraining.pretrain_batches import PretrainingBatches, check_fit
from official_bert import BertConfig, BertTokenizer
from official_bert.common.errors import UserError
from official_bert.export.settings import ServingSettings

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcde"]
FINE = {
    "head": "classification",
    "num_labels": 2,
    "labels": ["x", "y"],
    "max_seq_length": 8,
    "task": {"name": "text_classification", "options": {"labels": ["x", "y"]}},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": {"name": 3}}, "model.json: task: name must be a text, not 3"),
        ({"task": {"name": "sst2", "options": [1]}}, "task: options must be a JSON object"),
        ({"task": {"name": "sst2", "options": {"data_dir": "/etc"}}}, "the option data_dir is"),
        ({"task": {"name": "sst2", "options": {"train_file": "/x"}}}, "the option train_file is"),
        ({"task": {"name": "sst2", "options": {"name": "x"}}}, "the option name is none"),
        ({"task": "sst2"}, "not fine-tuned"),
        ({"max_seq_length": "8"}, "model.json: max_seq_length must be a positive whole number"),
        ({"max_seq_length": True}, "model.json: max_seq_length must be a positive whole number"),
        ({"max_seq_length": None}, "not fine-tuned"),
    ],
)
def test_the_task_of_a_model_is_checked(tmp_path, change, message):
    (tmp_path / "model.json").write_text(json.dumps(FINE))
    assert read_task(tmp_path)[1:] == ("text_classification", {"labels": ["x", "y"]})
    (tmp_path / "model.json").write_text(json.dumps(FINE | change))
    with pytest.raises(UserError, match=message):
        read_task(tmp_path)


def test_a_served_model_names_no_files():
    options = {"train_file": "/etc/passwd"}
    with pytest.raises(UserError, match="the option train_file is none that a model may have"):
        export_model._reads_pairs({"task": {"name": "text_classification", "options": options}})


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": 5},
        {"input_fields": "ab"},
        {"max_seq_length": "8"},
        {"normalize": "no"},
        {"top_k": 2.5},
        {"top_k": True},
        {"truncation": "middle"},
        {"null_score_diff_threshold": [1]},
    ],
)
def test_settings_of_a_served_model_are_checked(wrong):
    loaded = types.SimpleNamespace(settings=FINE, config=BertConfig(hidden_size=12))
    assert ServingSettings.from_loaded(loaded).labels == ("x", "y")
    loaded.settings = FINE | wrong
    with pytest.raises(UserError, match=next(iter(wrong))):
        ServingSettings.from_loaded(loaded)
    loaded.settings = FINE | {"task": {"name": "x", "options": wrong}} | dict.fromkeys(wrong)
    with pytest.raises(UserError, match=next(iter(wrong))):
        ServingSettings.from_loaded(loaded)


@pytest.fixture
def records(tmp_path):
    """Return two records, the second with an id beyond 32 bits."""
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as file:
        for number in (7, 2**32 + 5):
            example = tf.train.Example()
            for name, kind in SCHEMA.items():
                lists = example.features.feature[name]
                if kind == "float32":
                    lists.float_list.value[:] = [1.0]
                else:
                    value = {"masked_lm_ids": number, "masked_lm_positions": 0}.get(name, 1)
                    lists.int64_list.value[:] = [value]
            file.write(example.SerializeToString())
    return tmp_path / "a.tfrecord"


def test_damaged_records_are_named_where_pieces_are_counted(records):
    fault = r"a.tfrecord record 1: masked_lm_ids\[0\] is 4294967301"
    with pytest.raises(UserError, match=fault):
        heldout.piece_counts(heldout.in_order(open_records(str(records)), 256), 10, True)
    batches = PretrainingBatches.__new__(PretrainingBatches)
    batches.phases = [types.SimpleNamespace(records=open_records(str(records)))]
    batches._bert = types.SimpleNamespace(vocab_size=10)
    with pytest.raises(UserError, match=fault):
        batches.log_frequencies()


def test_odd_options_of_a_manifest_are_no_traceback(records):
    opened = open_records(str(records))
    check_fit(opened, "here", BertConfig(), BertTokenizer(VOCAB))
    opened.manifest = {"options": [5]}
    with pytest.raises(UserError, match="here: options in its manifest.json must be a JSON object"):
        check_fit(opened, "here", BertConfig(), BertTokenizer(VOCAB))
