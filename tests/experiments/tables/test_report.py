"""Reports: every number where it belongs, holes visible, one self-contained page."""

import copy
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from experiments import report as command
from experiments.tables import assemble, forest_plots, plots, report, score_tables, wording
from experiments.tables.status import Status
from experiments.tables.verdicts import NOT_DECIDED
from official_bert.errors import UserError

ROOT = Path(__file__).parents[3]


def cell(mean=None, deviation=None, runs=1, paper=None, **more):
    made = {"paper": paper, **more}
    if mean is not None:
        values = [[1, s, mean] for s in range(runs)]
        made |= {"mean": mean, "deviation": deviation, "values": values, "pretrainings": 1}
        made |= {"above_baseline": True}
    return made


@pytest.fixture
def results():
    heldout = {"masked_lm_loss": 5.0, "masked_lm_perplexity": 148.4}
    model = {
        "name": "BERT", "checkpoint": "", "steps": 5000, "batch_size": 32, "learning_rate": 1e-3,
        "lengths": [64], "seeds": 2, "tokens": 10_240_000, "minutes": [2.0, 2.1],
        "heldout": [heldout, heldout], "heldout_baseline": {"masked_lm_loss": 6.75}, "layers": 2,
        "hidden": 128, "heads": 4, "vocabulary": 4096, "direction": "bidirectional",
        "parameters": 950_000,
    }  # fmt: skip
    finding = {
        "column": "QNLI", "better": "BERT", "worse": "No NSP", "kind": "greater", "margin": 0.0,
        "verdict": "reproduced", "reason": "the interval lies above 0", "effect": 3.5, "low": 1.25,
        "high": 5.75, "pretrain_seeds": 2, "finetune_seeds": 3, "examples": 5463,
    }  # fmt: skip
    undecided = dict(finding, column="SQuAD", effect=None, low=None, high=None)
    undecided |= {"verdict": "not decided at this scale", "reason": "no result for No NSP: killed"}

    def column(label, **more):
        made = {
            "label": label, "paper_column": label, "metric": "accuracy", "heldout": False,
            "percent": True, "lower_is_better": False, "note": "", "train_examples": 14815,
            "dev_examples": 5463,
        }  # fmt: skip
        return made | more

    return {
        "name": "table5", "title": "Effect of <tasks>", "scale": "cpu", "section": "5.1",
        "command": "python -m experiments.ablate --config=table5:cpu", "date": "2026-01-31",
        "machine": {"processor": "Some CPU", "cores": 2, "python": "3.12.1"},
        "versions": {"keras": "3.15.1"}, "seconds": 1200.0, "wall_seconds": 700.0,
        "cells": {"finished": 7, "failed": 1, "pending": 0, "running": 0},
        "failures": {"x": "killed"},
        "verdicts": [
            {"name": "NSP", "text": "Removing NSP hurts QNLI", "section": "5.1",
             "verdict": "not decided at this scale", "findings": [finding, undecided]},
        ],
        "columns": [
            column("held-out loss", heldout=True, percent=False, lower_is_better=True,
                   paper_column="", metric="masked_lm_loss", note="nats"),
            column("QNLI", note="training set rebuilt"),
            column("SQuAD", note="a subset"),
        ],
        "rows": [
            {"label": "BERT", "variant": "BERT", "paper_row": "BERT", "reference": False, "cells": {
                "held-out loss": cell(5.0, 0.01, 2), "QNLI": cell(59.7, 0.4, 3, paper=88.4),
                "SQuAD": cell(16.9, None, 1, paper=88.5)}},
            {"label": "No NSP", "variant": "No NSP", "paper_row": "No NSP", "reference": False,
             "cells": {"held-out loss": cell(), "QNLI": cell(56.1, 0.5, 3, paper=84.9),
                       "SQuAD": cell(paper=87.9, hole="killed (signal 9)")}},
            {"label": "random", "variant": "random", "paper_row": "", "reference": True,
             "cells": {"held-out loss": cell(), "QNLI": cell(55.0), "SQuAD": cell(12.0)}},
        ],
        "baselines": {"held-out loss": 6.75, "QNLI": 50.9},
        "paper": {"title": "", "columns": ["QNLI", "SQuAD"], "rows": {
            "BERT": {"QNLI": 88.4, "SQuAD": 88.5}, "No NSP": {"QNLI": 84.9},
            "LTR & No NSP": {"QNLI": 84.3, "SQuAD": 77.8}}},
        "scale_facts": {"models": [model], "corpus": "54 MB of Wikipedia", "records": {}},
        "notes": ["models of this size are small"], "curves": [],
        "pretraining_curves": [
            {"label": "BERT", "seed": s, "training": [[1, 9.0], [2, 4.5]], "heldout": [[2, 5.0]]}
            for s in (5, 6)
        ],
        "exports": [{"saved_model": "/tmp/x", "answers": [
            {"text": "WIN a prize", "label": "spam", "probability": 0.97}]}],
    }  # fmt: skip


def lines_of(results):
    return report.text(results).splitlines()


def row_of(table, label):
    return next(row for row in table if row[0].strip() == label)


def test_ours_stand_above_the_papers_with_differences_from_the_first_row(results):
    lines = lines_of(results)
    start = next(i for i, line in enumerate(lines) if line.startswith("No NSP"))
    assert re.split(r"\s{2,}", lines[start]) == ["No NSP", "-", "56.1 ± 0.5 (3)", "failed"]
    assert lines[start + 1].split() == ["the", "paper's", "No", "NSP", "84.9", "87.9"]
    assert lines[start + 2].split() == ["less", "BERT", "−3.6", "(−3.5)"]
    assert any(line.split() == ["trivial", "baseline", "6.75", "50.9"] for line in lines)
    assert any("(paper) LTR & No NSP" in line and "77.8" in line for line in lines)


def test_differences_stand_beside_the_papers(results):
    header, no_nsp, random = score_tables.differences(results)
    assert header[1:3] == ["QNLI: ours less BERT", "the paper's less BERT"]
    assert no_nsp == ["No NSP", "−3.6", "−3.5", "", "−0.6"]
    assert random == ["random", "−4.7", "", "−4.9", ""]
    for row in results["rows"]:
        row["cells"]["QNLI"]["paper"] = row["cells"]["SQuAD"]["paper"] = None
    assert score_tables.differences(results) == []


def test_a_failed_cell_is_a_visible_hole_with_its_reason(results):
    text = report.text(results)
    row = next(line for line in text.splitlines() if line.startswith("No NSP"))
    assert row.split()[-1] == "failed"
    assert "No NSP, SQuAD: killed (signal 9)" in text
    assert "- No NSP, SQuAD: killed (signal 9)" in report.markdown(results, {})


def test_what_was_found_leads_and_says_why_the_rest_is_open(results):
    assert wording.lead(results) == (
        "Of 1 claim of the paper 1 is open. **Open**: Removing NSP hurts QNLI. 1 comparison is "
        "open: 1 because no result for No NSP: killed."
    )
    claim = results["verdicts"][0]
    claim["findings"][1] |= {"reason": "No NSP does not beat 3", "detectable": 4.25,
                             "paper_effect": 0.6}  # fmt: skip
    reproduced = dict(claim, verdict="reproduced", text="It helps.",
                      mean_effect={"effect": 2.0, "low": 1.0, "high": 3.0})  # fmt: skip
    results["verdicts"].append(reproduced)
    said = wording.lead(results)
    assert "1 is reproduced and 1 is open. **Reproduced**: It helps (+2.0 [1.0, 3.0])." in said
    assert "1 because a row does not beat 3." in said
    assert "if it lies 4.2" in said and "the paper's own does in none of them" in said


def test_verdicts_lead_and_carry_effect_interval_and_the_papers(results):
    made = report.markdown(results, {})
    assert made.index("**not decided at this scale**") < made.index("| BERT")
    assert "### 1. Removing NSP hurts QNLI.\n" in made
    assert "| QNLI: BERT less No NSP | +3.50 [1.25, 5.75] | +3.5 | reproduced: the" in made
    assert "detectable" not in made and "Holm" not in made
    drawings = forest_plots.forests(results)
    page = report.html(made, drawings)
    assert page.index("paper's claims") < page.index("<table")
    assert "+3.50 [1.25, 5.75]" in page and drawings["claim1"] in page
    assert '<strong class="open">not decided at this scale</strong>' in page


def test_power_p_and_footnotes_are_shown_where_they_are_known(results):
    claim = results["verdicts"][0] | {"footnotes": ["One pre-training a row."]}
    claim["findings"][0] |= {"detectable": 2.25, "p": 0.012, "holm": 0.0002, "paper_effect": 3.25}
    results["verdicts"] = [claim]
    header, first, second = score_tables.findings(results, claim)
    assert header[2:] == ["the paper's", "detectable", "p (Holm)", "verdict"]
    assert first[2:5] == ["+3.2", "2.2", "0.012 (<0.001)"] and second[2:5] == ["+0.6", "", ""]
    assert "- One pre-training a row." in report.markdown(results, {})


def test_an_open_comparison_says_that_its_interval_excludes_the_papers_effect(results):
    claim = results["verdicts"][0]
    open_one = claim["findings"][0] | {
        "verdict": NOT_DECIDED,
        "reason": "the interval holds 0",
        "effect": 0.2,
        "low": -0.5,
        "high": 1.0,
        "p": 0.5,
    }
    claim["findings"][0] = open_one | {"paper_effect": 3.5}
    assert "holds 0 but not the paper's +3.5" in score_tables.findings(results, claim)[1][-1]
    assert "In 1 of them the interval excludes the paper's own effect." in wording.lead(results)
    for other in ({"paper_effect": 0.6}, {"paper_effect": 3.5, "p": None}):
        claim["findings"][0] = open_one | other
        assert wording.reason(claim["findings"][0]) == "the interval holds 0"
        assert "excludes" not in wording.lead(results)


def test_a_loss_is_compared_in_the_direction_of_the_comparison(results):
    finding = dict(results["verdicts"][0]["findings"][0], column="held-out loss")
    for row, paper in zip(results["rows"], (3.0, 3.5), strict=False):
        row["cells"]["held-out loss"]["paper"] = paper
    assert score_tables.paper_effect(results, finding) == 0.5


def test_a_forest_shows_single_pretrainings_and_the_papers_effect(results):
    finding = results["verdicts"][0]["findings"][0]
    assert forest_plots._by_pretraining(results, finding) == []
    for row, values in zip(results["rows"], ((60.0, 59.0), (57.0, 55.0)), strict=False):
        row["cells"]["QNLI"]["values"] = [[s, 1, v] for s, v in enumerate(values)]
    assert forest_plots._by_pretraining(results, finding) == [3.0, 4.0]
    assert forest_plots._by_pretraining(results, finding | {"worse": "random"}) == [5.0, 4.0]
    drawing = forest_plots.forests(results)["claim1"]
    assert "QNLI: BERT less No NSP" in drawing and "points by which" in drawing
    assert "SQuAD: BERT less No NSP (no result)" in drawing


def test_shares_of_a_way_are_named_as_such(results):
    finding = results["verdicts"][0]["findings"][0]
    finding |= {"whole": "random", "unit": "percent", "paper_effect": 94.4, "kind": "share"}
    said = wording.finding(finding)
    assert said.startswith("QNLI: BERT, share of the way from No NSP to random +3.50 [1.25, 5.75]")
    drawing = forest_plots.forests(results)["claim1"]
    assert "percent of the way" in drawing and forest_plots._by_pretraining(results, finding) == []


def test_another_data_sets_numbers_are_not_subtracted(results):
    results["columns"][1]["paper_column"] = "MNLI-m"
    header, *_ = score_tables.differences(results)
    assert header == ["", "SQuAD: ours less BERT", "the paper's less BERT"]


def test_scores_that_do_not_beat_the_baseline_are_marked(results):
    results["rows"][0]["cells"]["QNLI"]["above_baseline"] = False
    results["rows"][1]["cells"]["QNLI"]["above_baseline"] = None
    results["rows"][0]["cells"]["SQuAD"]["above_baseline"] = None
    table = score_tables.scores(results)
    assert row_of(table, "BERT")[2] == "59.7 ± 0.4 (3)°"
    assert row_of(table, "No NSP")[2] == "56.1 ± 0.5 (3)°"  # the interval holds the baseline
    assert row_of(table, "BERT")[3] == "16.9 (1)"  # there is no baseline


def test_every_run_shows_its_own_score(results):
    results["rows"][0]["cells"]["QNLI"]["values"] = [[1, 1, 59.5], [1, 2, 60.0], [2, 1, 59.6]]
    table = score_tables.every_run(results)
    assert row_of(table, "BERT, 1") == ["BERT, 1", "5.00 5.00", "59.5 60.0", "16.9"]
    assert row_of(table, "BERT, 2") == ["BERT, 2", "", "59.6", ""]


def test_pretrainings_are_named_by_their_seed(results):
    table = score_tables.pretrainings(results)
    assert [(row[0], row[4]) for row in table[1:]] == [("BERT, 5", "2.0"), ("BERT, 6", "2.1")]


def test_facts_state_the_scale_and_the_substitutions(results):
    facts = wording.facts(results)
    assert facts[0].startswith("BERT: 2 layers, 128 wide, 4 heads")
    assert facts[0].endswith("5,000 steps of 32 sequences of 64 (10.2 M tokens), 2 pre-trainings")
    assert facts[1] == "Corpus: 54 MB of Wikipedia"
    assert "QNLI: training set rebuilt; 14,815 training and 5,463 dev examples" in facts
    assert "models of this size are small" in facts


def test_markdown_keeps_bars_in_labels_and_alignment():
    table = report._table([["a", "b"], ["x|y", "1.5"], ["  the paper's", "2"]])
    assert table == ["| a | b |", "|---|---:|", "| x\\|y | 1.5 |", "| *the paper's* | *2* |"]


def test_a_table_of_which_nothing_was_run_has_its_header():
    assert report._table([["run", "score"]]) == ["| run | score |", "|---|---|"]


def test_page_is_self_contained_and_well_formed(results, tmp_path):
    paths = report.write(results, tmp_path)
    page = Path(paths["html"]).read_text()
    # Nothing is fetched: the only addresses are XML namespaces.
    assert not re.search(r'(src|href)="(?!#)', re.sub(r'(xlink:)?href="#[^"]*"', "", page))
    assert "Effect of &lt;tasks&gt;" in page
    assert page.count("<svg") == 2

    class Balanced(HTMLParser):
        void = {"meta", "br", "img", "link", "hr", "path", "use", "rect", "circle"}

        def __init__(self):
            super().__init__()
            self.open = []

        def handle_starttag(self, tag, attrs):
            if tag not in self.void:
                self.open.append(tag)

        def handle_startendtag(self, tag, attrs):
            pass

        def handle_endtag(self, tag):
            if tag not in self.void:
                assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
                self.open.pop()

    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert {p.name for p in (tmp_path / "plots").iterdir()} == {"pretraining.svg", "claim1.svg"}
    assert "plots/pretraining.svg" in Path(paths["markdown"]).read_text()


def test_figures_of_table6_and_figure5(results):
    table6 = copy.deepcopy(results) | {"name": "table6"}
    table6["columns"][0] |= {"label": "LM perplexity", "metric": "masked_lm_perplexity"}
    for row in table6["rows"]:
        row["cells"]["LM perplexity"] = row["cells"].pop("held-out loss")
    assert "perplexity" in plots.figures(table6)
    assert "perplexity" not in plots.figures(results)
    first = {"steps": 10, "mean": 50.0, "deviation": 0.5}
    second = {"steps": 20, "mean": 51.0, "deviation": None}
    curve = {"label": "masked LM", "column": "QNLI", "points": [first, second]}
    curves = [curve, dict(curve, column="SQuAD"), dict(curve, label="left-to-right")]
    drawing = plots.figures(copy.deepcopy(results) | {"curves": curves})["steps"][1]
    assert "QNLI" in drawing and "SQuAD" in drawing  # a panel each


def test_figures_are_the_same_each_time(results):
    assert plots.figures(results) == plots.figures(results)


def test_command_draws_again_from_results_alone(results, tmp_path):
    report.write(results, tmp_path)
    first = (tmp_path / "report.html").read_text()
    (tmp_path / "report.html").unlink()
    command = [sys.executable, "-m", "experiments.report", f"--workdir={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "59.7 ± 0.4 (3)" in done.stdout
    assert (tmp_path / "report.html").read_text() == first


def test_missing_and_broken_results_are_refused(tmp_path, monkeypatch):
    from absl import flags

    class Values:
        workdir = str(tmp_path)

    monkeypatch.setattr(flags, "FLAGS", Values)
    with pytest.raises(UserError, match="results.json is missing"):
        command.main([])
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        command.main([])


def test_numbers_use_real_minus_signs_and_no_negative_zero(results):
    json.dumps(results)  # the fixture is what results.json could hold
    assert wording.number(-0.04, 1) == "0.0"
    assert wording.signed(-2.25, 1) in ("−2.2", "−2.3")
    assert wording.signed(1234.5, 1) == "+1,234.5"


def test_a_checkpoint_goes_by_the_end_of_its_path():
    assert assemble._checkpoint_name("/home/me/models/bert/folder") == "bert/folder"
    assert assemble._checkpoint_name("bert_base_en") == "bert_base_en"
    assert assemble._checkpoint_name("") == ""


def test_times_count_work_before_an_interruption_and_no_pauses():
    cells = [
        Status("finished", seconds=10.0, started=100.0),
        Status("finished", seconds=10.0, started=105.0),  # beside the first
        # Resumed at 500 after 30 seconds of earlier work, which its run has counted.
        Status("finished", seconds=10.0, started=500.0, result={"seconds": 40.0}),
        Status("pending"),
    ]
    assert [assemble._seconds(cell) for cell in cells] == [10.0, 10.0, 40.0, 0.0]
    assert assemble._wall_seconds(cells) == 55.0
