"""The words of a report: settings that differ, marks beside baselines, intervals of one run."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.tables.judging import results
from experiments.tables.judging.intervals import Effect
from experiments.tables.reporting import number_words, report, score_tables, wording
from experiments.tables.reporting.assemble import _differs
from experiments.tables.run import origins
from experiments.training.settings.config_files import load_config

ROOT = Path(__file__).parents[4]
RESULTS = ROOT / "experiments" / "results"


def test_data_that_differ_are_told_as_settings(tmp_path):
    page = (ROOT / "docs" / "own_table.md").read_text("utf-8")
    path = tmp_path / "masking40.py"
    path.write_text(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0])
    ablation = load_config(f"{path}:smoke")
    told = "; ".join(_differs(ablation, ablation.rows[1]))
    assert "records.masked_lm_prob: 0.15 -> 0.4" in told
    assert "records.max_predictions_per_seq: " in told and "masking" not in told
    assert _differs(ablation, ablation.rows[0]) == []
    assert "15 %" not in " ".join(column.note for column in ablation.columns)


def test_a_report_does_not_say_how_its_first_row_differs_from_itself():
    table = results.read(RESULTS / "table5" / "squad" / "results.json")
    first, second, *rest = table.rows
    told = replace(table, rows=[replace(first, differs=["a line"]), second, *rest])
    assert report.markdown(told, {}) == report.markdown(table, {})
    told = replace(table, rows=[first, replace(second, differs=["a line"]), *rest])
    assert f"- {second.label}: a line\n" in report.markdown(told, {})


@pytest.mark.parametrize(
    "mean, above, lower_is_better, mark",
    [
        (0.7, True, False, ""),
        (0.7, None, False, score_tables.BASELINE_MARK),
        (0.4, None, False, score_tables.BELOW_MARK),
        (0.4, False, False, score_tables.BELOW_MARK),
        (0.4, None, True, score_tables.BASELINE_MARK),
        (0.7, False, True, score_tables.BELOW_MARK),
    ],
)
def test_a_score_below_the_baseline_is_marked_so(mean, above, lower_is_better, mark):
    scores = results.Scores(mean, None, [], [], 1)
    cell = results.CellResult(None, scores, standing=results.Standing(above, {}))
    table = results.read(RESULTS / "table5" / "squad" / "results.json")
    column = replace(table.columns[0], label="QNLI", lower_is_better=lower_is_better)
    for baselines, expected in (({"QNLI": 0.5}, mark), ({}, "")):
        known = replace(table, baselines=baselines)
        assert score_tables._beside_baseline(cell, column, known) == expected
    assert f"{score_tables.BELOW_MARK}: below" in report.SCORES_LEGEND


def test_an_interval_of_a_single_run_is_that_of_its_examples():
    found = Effect(3.5, 1.25, 5.75, 1.0, 9.0, {}, 1, 1.0, 100, 2, (3.5,))
    assert number_words.interval(found) == "+3.50 [1.25, 5.75], examples only"
    assert number_words.interval(replace(found, restarts=3.0)) == "+3.50 [1.25, 5.75]"
    assert number_words.interval(replace(found, pretrain_seeds=2)) == "+3.50 [1.25, 5.75]"
    assert number_words.interval(replace(found, low=None, high=None)) == "+3.50"
    assert number_words.interval(None) == ""


def test_open_is_the_one_word_for_what_is_not_decided():
    assert wording.SHORT["not decided at this scale"] == "open"
    for path in RESULTS.glob("*/*/report.md"):
        assert "not decided" not in path.read_text("utf-8"), path


def test_a_table_has_the_versions_that_made_it_beside_it():
    packages = {"tensorflow": "2.21.0", "keras": "3.15.1"}
    some = [{"cells": 3, "python": "3.11.7", "packages": packages}]
    more = [{"cells": 5, "python": "3.12.3", "packages": {"jax": "0.11.2"}}, {"cells": 1}]
    command, *versions = origins.constraints(some).splitlines()[1:]
    assert command == "# pip install -e '.[tensorflow]' -c this file"
    assert versions == ["keras==3.15.1", "tensorflow==2.21.0"]
    assert "made 5 of the 9 cells" in origins.constraints(some + more)
    assert origins.constraints([{"cells": 2}]) == ""
    known = 0
    for path in sorted(RESULTS.glob("*/*/results.json")):
        made_with = origins.constraints(results.read(path).made_by)
        beside = path.with_name("constraints.txt")
        assert beside.read_text() == made_with if made_with else not beside.exists(), path
        known += bool(made_with)
    assert known >= 20
