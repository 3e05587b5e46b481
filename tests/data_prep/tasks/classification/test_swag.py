import json

import numpy as np
import pytest

from data_prep.tasks import get_task
from official_bert.common.errors import UserError

HEADER = (
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"
)
ROW = (
    '0,v,1,x,"The cat sat, and the dog ran.",The dog,gold,is red,is big,ran home,sat on the mat,2\n'
)


def test_official_header(write, tmp_path, tokenizer):
    write("train.csv", HEADER + ROW)
    task = get_task("swag", data_dir=str(tmp_path))
    (example,) = task.examples("train")
    assert example.context == "The cat sat, and the dog ran."
    assert example.endings[2] == "The dog ran home" and example.label == 2
    (feature,) = task.features(example, tokenizer, 64)
    ids, segments = feature["input_ids"][1], feature["segment_ids"][1]
    assert tokenizer.decode(ids[sum(s == 0 for s in segments) : -1]) == "the dog is big"
    assert len(feature["input_ids"]) == 4 and feature["label_ids"] == 2
    assert ids[0] == tokenizer.cls_id and ids[-1] == tokenizer.sep_id


def test_scores_baseline_and_files(write, tmp_path):
    write("train.csv", HEADER + ROW + ROW.replace(",2\n", ",0\n") + ROW)
    task = get_task("swag", data_dir=str(tmp_path))
    examples = task.examples("train")
    predictions = task.predictions(examples, None, {"logits": np.eye(4)[[2, 1, 2]]})
    assert task.score(examples, predictions) == {"accuracy": pytest.approx(2 / 3)}
    assert task.baseline(examples, examples) == {"accuracy": pytest.approx(2 / 3)}
    analysis = task.analysis(examples, predictions)
    assert analysis["mistakes"][0]["predicted"] == "The dog is big"
    assert analysis["confusion"]["counts"][0][1] == 1
    (path,) = task.write(tmp_path, predictions)
    with open(path, encoding="utf-8") as file:
        assert file.read().splitlines()[1].startswith("0\t2\t0.")


def test_a_part_is_held_out_of_a_file_whose_first_column_has_no_name(write):
    rows = [f"{number}{ROW[1:]}".replace("The cat", f"The cat {number}") for number in range(40)]
    task = get_task("swag", write("all.csv", HEADER + "".join(rows)), dev_fraction=0.2)
    train, dev = (len(task.examples(split)) for split in ("train", "dev"))
    assert train + dev == 40 and 2 <= dev <= 16


def test_test_files_lack_labels_and_other_files_may_not(write, tmp_path):
    header, row = HEADER.replace(",label", ""), ROW.replace(",2\n", "\n")
    write("test.csv", header + row)
    write("val.csv", header + row)
    task = get_task("swag", data_dir=str(tmp_path))
    assert task.examples("test")[0].label is None
    with pytest.raises(UserError, match=r"val\.csv line 2: no label"):
        task.examples("dev")
    write("val.csv", HEADER + ROW.replace(",2\n", ",4\n"))
    with pytest.raises(UserError, match=r"val\.csv line 2: label '4', expected 0 to 3"):
        task.examples("dev")


def test_texts_of_json_must_be_texts(write):
    row = {"sent1": "The cat sat.", "sent2": "", "ending0": "a", "ending1": "b", "label": 1}
    path = write("all.jsonl", "\n".join(map(json.dumps, [row, row | {"sent2": None}])))
    with pytest.raises(UserError, match=r"all\.jsonl line 2: sent2 is null, expected a text"):
        get_task("swag", path, num_choices=2).examples("train")


@pytest.mark.parametrize(
    ("name", "source", "options", "sizes"),
    [
        ("swag", "hellaswag", {}, (8042, 2000)),
        ("swag", "wikihow_multichoice/goal_inference.csv", {"dev_fraction": 0.2}, 1701),
        ("swag", "wikihow_multichoice/step_inference.csv", {"dev_fraction": 0.2}, 2250),
        ("codah", "codah", {}, 2776),
    ],
)
def test_real_files(data_dir, name, source, options, sizes):
    task = get_task(name, data_dir=str(data_dir / source), **options)
    train, dev = task.examples("train"), task.examples("dev")
    if isinstance(sizes, tuple):
        assert (len(train), len(dev)) == sizes
    else:
        assert len(train) + len(dev) == sizes and 0.15 < len(dev) / sizes < 0.25
        assert not {e.context for e in train} & {e.context for e in dev}
    assert all(len(example.endings) == 4 for example in dev)
    assert 0.2 < task.baseline(train, dev)["accuracy"] < 0.3
