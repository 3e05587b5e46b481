"""Results of runs as dataclasses, against those of every table that is kept."""

import json
import tarfile
from pathlib import Path

import pytest

from experiments.training.folder.dataclass_json import of_json, to_json
from experiments.training.folder.run_results import FinetuningResults, of_cell
from official_bert.common.errors import UserError

ARCHIVES = sorted(Path("experiments/results").glob("**/seed-1.tar.gz"))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: "/".join(path.parts[-4:-2]))
def test_results_of_every_table_are_read_and_written_as_they_were(archive):
    count = 0
    with tarfile.open(archive) as cells:
        for member in cells:
            if member.name.endswith("/results.json"):
                values = json.load(cells.extractfile(member))
                del values["checksum"]
                kind = "finetune" if "task" in values else "pretrain" if "tokens" in values else "q"
                again = to_json(of_cell(kind, values, member.name))
                assert json.dumps(again, sort_keys=True) == json.dumps(
                    _said(values), sort_keys=True
                )
                count += 1
    assert count


def _said(values):
    """Return values without the fields that are left out while they are empty."""
    may_be_left_out = {"files", "train_notes", "dev_notes", "advice", "records", "model"}
    return {n: x for n, x in values.items() if x or n not in may_be_left_out}


GIVEN = {
    "task": "cola", "dev": {"mcc": 0.5}, "main_metric": "mcc", "baseline": {"mcc": 0},
    "train_examples": 9, "dev_examples": 3, "steps": 4, "seconds": 1.5, "ended": 2,
}  # fmt: skip


def test_scores_of_further_splits_stand_beside_dev():
    results = of_json(FinetuningResults, GIVEN, "results.json")
    for split in ("test", "dev_mismatched", "another"):
        results.set_scores(split, {"mcc": 0.25})
    assert results.test == results.dev_mismatched == results.more["another"]
    written = to_json(results)
    assert written == {
        **GIVEN,
        **dict.fromkeys(("test", "dev_mismatched", "another"), results.test),
    }
    assert of_json(FinetuningResults, written, "results.json") == results


def test_what_an_extension_adds_takes_no_fields_place():
    results = of_json(FinetuningResults, GIVEN | {"teacher": 1}, "results.json")
    results.more["seconds"] = 9
    with pytest.raises(ValueError, match=r"FinetuningResults\.more: seconds is a field's name"):
        to_json(results)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"steps": None}, "steps: expected a whole number"),
        ({"dev": {"mcc": "high"}}, "dev: mcc: expected a number"),
        ({"test": [0.5]}, "test: expected a JSON object"),
        ({}, "dev is missing"),
    ],
)
def test_a_field_that_is_missing_or_of_another_type_is_named(change, message):
    values = GIVEN | change if change else {n: x for n, x in GIVEN.items() if n != "dev"}
    with pytest.raises(UserError, match=f"run/results.json: {message}"):
        of_cell("finetune", values, "run/results.json")
