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
from experiments.tables import assemble, plots, report
from experiments.tables.grid import Status
from official_bert.errors import UserError

ROOT = Path(__file__).parents[3]


def cell(mean=None, deviation=None, runs=1, paper=None, **more):
    made = {"paper": paper, **more}
    if mean is not None:
        difference = None if paper is None else mean - paper
        values = [[1, s, mean] for s in range(runs)]
        made |= {"mean": mean, "deviation": deviation, "values": values, "pretrainings": 1}
        made |= {"difference": difference, "above_baseline": True}
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
            {"label": "BERT", "seed": 1, "training": [[1, 9.0], [2, 4.5]], "heldout": [[2, 5.0]]}
        ],
        "exports": [{"saved_model": "/tmp/x", "answers": [
            {"text": "WIN a prize", "label": "spam", "probability": 0.97}]}],
    }  # fmt: skip


def lines_of(results):
    return report.text(results).splitlines()


def test_ours_stand_above_the_papers_with_the_difference(results):
    lines = lines_of(results)
    start = next(i for i, line in enumerate(lines) if line.startswith("BERT"))
    assert re.split(r"\s{2,}", lines[start]) == [
        "BERT", "5.00 ± 0.01 (2)", "59.7 ± 0.4 (3)", "16.9 (1)"
    ]  # fmt: skip
    assert lines[start + 1].split() == ["the", "paper's", "BERT", "88.4", "88.5"]
    assert lines[start + 2].split() == ["difference", "−28.7", "−71.6"]
    assert any(line.split() == ["trivial", "baseline", "6.75", "50.9"] for line in lines)
    assert any("(paper) LTR & No NSP" in line and "77.8" in line for line in lines)


def test_a_failed_cell_is_a_visible_hole_with_its_reason(results):
    text = report.text(results)
    row = next(line for line in text.splitlines() if line.startswith("No NSP"))
    assert row.split()[-1] == "failed"
    assert "No NSP, SQuAD: killed (signal 9)." in text


def test_verdicts_lead_and_carry_effect_and_interval(results):
    made = report.markdown(results, {})
    assert made.index("not decided at this scale") < made.index("| QNLI")
    assert "QNLI: BERT over No NSP +3.50 [1.25, 5.75]: the interval lies above 0" in made
    page = report.html(made, {})
    assert page.index("What the numbers say") < page.index("<table")
    assert "+3.50 [1.25, 5.75]" in page
    assert '<strong class="open">not decided at this scale</strong>' in page


def test_caption_states_the_scale_and_the_substitutions(results):
    caption = report.caption(results)
    for part in (
        "2 layers, 128 wide, 4 heads",
        "5,000 steps of 32 sequences of 64 (10.2 M tokens), 2 pre-trainings",
        "54 MB of Wikipedia",
        "QNLI: training set rebuilt.",
        "QNLI 14,815 / 5,463",
        "models of this size are small.",
    ):
        assert part in caption


def test_page_is_self_contained_and_well_formed(results, tmp_path):
    paths = report.write(results, tmp_path)
    page = Path(paths["html"]).read_text()
    # Nothing is fetched: the only addresses are XML namespaces.
    assert not re.search(r'(src|href)="(?!#)', re.sub(r'(xlink:)?href="#[^"]*"', "", page))
    assert "Effect of &lt;tasks&gt;" in page
    assert page.count("<svg") == 1

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
    assert {p.name for p in (tmp_path / "plots").iterdir()} == {"pretraining.svg"}
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
    assert "steps" in plots.figures(copy.deepcopy(results) | {"curves": [curve]})


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
    missing = subprocess.run(
        [*command[:3], f"--workdir={tmp_path / 'none'}"], cwd=ROOT, capture_output=True, text=True
    )
    assert missing.returncode == 2
    assert "results.json is missing" in missing.stderr


def test_broken_results_are_refused(tmp_path, monkeypatch):
    from absl import flags

    (tmp_path / "results.json").write_text("{")

    class Values:
        workdir = str(tmp_path)

    monkeypatch.setattr(flags, "FLAGS", Values)
    with pytest.raises(UserError, match="not valid JSON"):
        command.main([])


def test_numbers_use_real_minus_signs_and_no_negative_zero(results):
    json.dumps(results)  # the fixture is what results.json could hold
    assert report._format(-0.04, 1) == "0.0"
    assert report._signed(-2.25, 1) in ("−2.2", "−2.3")
    assert report._signed(1234.5, 1) == "+1,234.5"


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
