"""Reports: every committed one is made again from what is committed of its table, to the byte."""

import copy
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from damage import flipped
from in_process import call

from data_prep.jobs import command_flags
from experiments import report as command
from experiments.configs import series
from experiments.tables.judging import archives, judgement, results
from experiments.tables.judging.verdicts import (
    NOT_DECIDED,
    NOT_REPRODUCED,
    PARTLY,
    REPRODUCED,
    Finding,
    Verdict,
)
from experiments.tables.planning.claims import Claim, Comparison
from experiments.tables.reporting import (
    assemble,
    forest_plots,
    implied_claims,
    number_words,
    overview,
    plots,
    report,
    score_tables,
    wording,
)
from experiments.training.folder.dataclass_json import to_json
from experiments.training.settings.config_files import load_config
from official_bert.common import checksums
from official_bert.common.errors import UserError
from official_bert.common.markdown import markdown_table
from tests import guests

RESULTS = Path(__file__).parents[4] / "experiments" / "results"
TABLES = sorted(path.parent for path in RESULTS.glob("*/*/results.json"))
CORES = [path for path in TABLES if path.parent.name != "seq2seq"]  # whose measures are a guest's


def read(folder):
    return results.read(folder / "results.json")


def claims(table):
    return tuple(verdict.claim for verdict in table.verdicts)


def name_of(folder):
    return ":".join(folder.parts[-2:])


@pytest.fixture(scope="module")
def squad():
    return read(RESULTS / "table5" / "squad")


def close(one, other, where=""):
    """Equal but for the last digits of numbers, which another processor may round otherwise."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            close(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for index, pair in enumerate(zip(one, other, strict=True)):
            close(*pair, f"{where}[{index}]")
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-9), where
    else:
        assert one == other, where


def test_every_table_is_here():
    assert len(TABLES) >= 11


@pytest.mark.parametrize("folder", TABLES, ids=name_of)
def test_committed_reports_are_made_again_to_the_byte(folder):
    table = read(folder)
    figures = forest_plots.beside_the_paper(table) | plots.figures(table)
    captions = {name: caption for name, (caption, _) in figures.items()}
    assert report.markdown(table, captions) == (folder / "report.md").read_text()
    drawn = {path.stem: path.read_text() for path in (folder / "plots").glob("*.svg")}
    assert drawn.keys() == figures.keys() | forest_plots.of_claims(table).keys()
    made_of = json.loads((folder / "results.json").read_text())["checksum"]
    assert checksums.crc32c_json(to_json(table)) == made_of
    for name, svg in drawn.items():
        assert f"<!-- results.json {made_of} -->" in svg, f"{name} is old: python -m docs.figures"


FEW = [folder for folder in CORES if name_of(folder) in ("table5:night", "table5:squad")]
MORE = [pytest.param(folder, marks=pytest.mark.slow) for folder in CORES if folder not in FEW]
GUESTS = [folder for folder in TABLES if folder not in CORES]


@pytest.mark.parametrize("folder", [*guests.names(FEW, FEW + GUESTS), *MORE], ids=name_of)
def test_committed_verdicts_follow_from_committed_scores_without_any_data(folder, monkeypatch):
    monkeypatch.delenv("BERT_DATA_DIR", raising=False)
    table = read(folder)
    again = judgement.judge_results(table, claims(table), archives.runs(table, folder / "archives"))
    close(to_json(again), to_json(table))


def test_the_committed_overview_is_that_of_the_committed_tables():
    tables = {}
    for folder in TABLES:
        tables.setdefault(read(folder).name, []).append(read(folder))
    assert overview.markdown(tables) == (RESULTS / "claims.md").read_text()


def test_an_overview_refuses_what_is_for_one_table(capsys):
    assert call(command, f"--workdir={RESULTS}", "--ask=table5:night") == 2
    assert "--ask is for one table" in capsys.readouterr().err


def test_an_overview_replaces_the_one_that_came_with_the_tables(squad, tmp_path):
    report.write(squad, tmp_path / "table5" / "squad")
    (tmp_path / "claims.md").write_text("an older one")
    with pytest.raises(UserError, match="claims.md exists already"):
        overview.write(tmp_path)
    text = overview.write(tmp_path, overwrite=True)
    assert (tmp_path / "claims.md.~1~").read_text() == "an older one"
    overview.write(tmp_path)  # it says the same already
    assert text.startswith("# Claims of all tables") and "5 claims asked" in text
    assert (tmp_path / "claims.md").read_text() == text


def test_a_line_of_gaps_is_drawn_from_the_judged_comparisons(squad):
    point = results.Point(4000, 1.0, 0.0, "No NSP", "LTR & No NSP")
    line = results.CurveResult("No NSP less LTR", "SQuAD", [point])
    found = plots.figures(replace(squad, curves=[line]))
    assert "steps" not in found and "No NSP less LTR" in found["gaps"][1]
    unasked = replace(line, points=[replace(point, row="LTR & No NSP", less="No NSP")])
    assert "gaps" not in plots.figures(replace(squad, curves=[unasked]))


def test_archives_that_lack_a_run_or_are_damaged_are_refused(squad, tmp_path):
    folder = tmp_path / "archives"
    folder.mkdir()
    with pytest.raises(UserError, match="has no archives .*experiments.ablate writes them"):
        archives.runs(squad, folder)
    whole = (RESULTS / "table5" / "squad" / "archives" / "seed-6.tar.gz").read_bytes()
    (folder / "seed-6.tar.gz").write_bytes(whole)
    with pytest.raises(UserError, match="lacks the run"):
        archives.runs(squad, folder)
    middle, checksum = len(whole) // 2, len(whole) - 8
    for damaged in (whole[:3000], whole[:-4], flipped(whole, middle), flipped(whole, checksum)):
        (folder / "seed-6.tar.gz").write_bytes(damaged)
        with pytest.raises(UserError, match=r"seed-6.tar.gz is (a )?damaged"):
            archives.runs(squad, folder)


def test_the_first_lines_count_claims_by_whose_they_are_and_sizes(squad):
    verdicts, sizes, open_ones = wording.summarize(squad)
    assert verdicts == (
        "Claims of the paper: 1 reproduced, 2 not reproduced and 1 open. Our own claims: 1 "
        "reproduced in part. Exploratory claims, which no other number here counts: 1 not "
        "reproduced."
    )
    assert sizes.endswith("in 0 of the 4 comparisons that it prints too.")
    assert open_ones.startswith("1 comparison is open")
    assert wording.summarize(replace(squad, paper=None))[0].startswith("Claims of this table: ")


def test_exploratory_claims_are_counted_apart():
    table = read(RESULTS / "table5" / "series")
    assert claims(table) == series.get_config("131m").claims
    verdicts, sizes, open_ones = wording.summarize(table)
    assert verdicts.endswith("counts: 2 reproduced, 2 not reproduced and 4 open.")
    planned, later = wording.split_exploratory(table.verdicts)
    assert len(later) == 8 and all(verdict.claim.exploratory for verdict in later)
    counts, *lines = wording.summarize(replace(table, verdicts=planned))
    assert verdicts.startswith(f"{counts} Exploratory") and [sizes, open_ones] == lines
    reproduced, _ = wording.list_outcomes(table)
    assert reproduced.startswith("Reproduced, 3 of 10 claims:") and "131M" not in reproduced
    decided = sum(v.verdict != NOT_DECIDED for v in implied_claims.drop_implied(planned))
    said = overview.markdown({"table5": [table]}).splitlines()
    assert said[2].startswith(f"10 claims asked at all scales, {decided} of them decided; 8 more")
    listed = [line for line in said if "131M" in line]
    assert len(listed) == 6 and all(" (exploratory) | " in line for line in listed)


def test_the_page_is_well_formed_and_fetches_nothing(squad, tmp_path):
    paths = report.write(squad, tmp_path)
    page = Path(paths["html"]).read_text()
    # The only addresses are XML namespaces.
    assert not re.search(r'(src|href)="(?!#)', re.sub(r'(xlink:)?href="#[^"]*"', "", page))
    assert page.index("<h2>Scores") < page.index("<h2>Claims")
    assert '<strong class="yes">reproduced</strong>' in page
    assert '<strong class="open">open</strong>' in page

    class Balanced(HTMLParser):
        void = {"meta", "br", "img", "link", "hr", "path", "use", "rect", "circle"}

        def __init__(self):
            super().__init__()
            self.open = []

        def handle_starttag(self, tag, attrs):
            if tag not in self.void:
                self.open.append(tag)

        def handle_endtag(self, tag):
            if tag not in self.void:
                assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
                self.open.pop()

    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    drawn = {path.name for path in (tmp_path / "plots").glob("[!.]*")}
    kept = (RESULTS / "table5" / "squad" / "plots").glob("[!.]*")
    assert drawn == {path.name for path in kept}


def test_names_cannot_break_the_page_or_a_table(squad, tmp_path):
    notes = ["a <script>alert(1)</script> note"]
    odd = replace(squad, title="Effect of <tasks>", notes=notes)
    page = Path(report.write(odd, tmp_path)["html"]).read_text()
    assert "Effect of &lt;tasks&gt;" in page and "<script>" not in page
    table = markdown_table([["a", "b"], ["x|y", "1.5"], ["  the paper's", "2"]])
    assert table == ["| a | b |", "|---|---:|", "| x\\|y | 1.5 |", "| *the paper's* | *2* |"]
    assert markdown_table([["run", "score"]]) == ["| run | score |", "|---|---|"]


def test_a_failed_cell_is_a_hole_with_its_reason(squad):
    holed = copy.deepcopy(squad)
    holed.rows[1].cells["SQuAD"] = results.CellResult(87.9, hole="killed (signal 9)")
    runs = archives.runs(holed, RESULTS / "table5" / "squad" / "archives")
    holed = judgement.judge_results(holed, claims(holed), runs)
    made = report.markdown(holed, {})
    assert "- No NSP, SQuAD: killed (signal 9)" in made and "| failed |" in made
    claim = next(v for v in holed.verdicts if v.claim.name == "left to right")
    assert claim.verdict == NOT_DECIDED
    assert claim.findings[0].reason == "no result for No NSP: killed (signal 9)"
    assert "failed" in report.text(holed)


def test_another_data_sets_numbers_are_not_subtracted(squad):
    head = score_tables.differences(squad)[0]
    assert head[1:] == ["SQuAD: ours less BERT", "the paper's less BERT"]
    first, second, *rest = squad.columns
    other = [first, replace(second, paper_column="SQuAD v2"), *rest]
    assert score_tables.differences(replace(squad, columns=other)) == []


def test_losses_over_other_pieces_are_marked():
    table8 = read(RESULTS / "table8" / "cpu")
    marked = {row[0]: row[1] for row in score_tables.scores(table8)}
    assert not marked["80/10/10"].endswith(score_tables.MASKS_MARK)
    assert score_tables.MASKS_MARK in marked["0/20/80"]


def test_the_command_makes_a_report_again_and_refuses_what_is_no_table(
    squad, tmp_path, monkeypatch, capsys
):
    asked = {"workdir": str(tmp_path), "output": "", "strict": False}
    monkeypatch.setattr(command_flags, "values", lambda function: asked)
    with pytest.raises(UserError, match="results.json is missing"):
        command.main([])
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        command.main([])
    (tmp_path / "results.json").write_text('{"task": "mrpc", "dev": {}}')  # of a run
    with pytest.raises(UserError, match="results.json: name is missing; .* experiments.ablate"):
        command.main([])
    (tmp_path / "results.json").unlink()
    shutil.copytree(RESULTS / "table5" / "squad" / "archives", tmp_path / "archives")
    report.write(squad, tmp_path)
    first = (tmp_path / "report.md").read_text()
    (tmp_path / "report.md").unlink()
    command.main([])
    assert (tmp_path / "report.md").read_text() == first
    printed = capsys.readouterr().out
    assert "41.0 ± 1.4 (5)" in printed and score_tables.BASELINE_MARK + ":" in printed
    assert "Reproduced, 1 of 5 claims: " in printed and "The others: " in printed
    asked["output"] = str(tmp_path / "again")
    before = (tmp_path / "results.json").stat().st_mtime_ns
    command.main([])
    assert (tmp_path / "again" / "report.md").read_text() == first
    assert (tmp_path / "results.json").stat().st_mtime_ns == before
    asked["strict"] = True  # its runs are of the time before they kept their code
    with pytest.raises(UserError, match=r"--strict: .* unknown code and machine"):
        command.main([])


def test_a_report_made_elsewhere_has_the_archives_that_it_is_made_of(tmp_path):
    table = RESULTS / "table6" / "nested"
    for source, output in ((table, tmp_path / "one"), (tmp_path / "one", tmp_path / "two")):
        command.rejudge(str(source), str(output))
        assert (output / "report.md").read_bytes() == (table / "report.md").read_bytes()
        kept = sorted((output / "archives").glob("*.gz"))
        archived = sorted((table / "archives").glob("*.gz"))
        assert [f.read_bytes() for f in kept] == [f.read_bytes() for f in archived]


def test_a_report_made_elsewhere_changes_nothing_that_is_not_its_own(tmp_path):
    table = RESULTS / "table5" / "squad"
    for name in ("plots/claim1.svg", "archives/seed-6.tar.gz", "report.md"):
        output = tmp_path / name.replace("/", "-")
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_text("mine")
        with pytest.raises(UserError, match=r"is in the way: .* has no results.json"):
            command.rejudge(str(table), str(output))
        assert (output / name).read_text() == "mine" and len(list(output.glob("[a-z]*"))) == 1
    command.rejudge(str(table), str(output), overwrite=True)
    assert (tmp_path / "report.md.~1~" / "report.md").read_text() == "mine"
    (tmp_path / "there").write_text("mine")
    with pytest.raises(UserError, match="there is a file; give a folder"):
        command.rejudge(str(table), str(tmp_path / "there"))
    other = tmp_path / "other"
    command.rejudge(str(table), str(other))
    with pytest.raises(UserError, match="other holds the report of table5:squad, n"):
        command.rejudge(str(RESULTS / "table6" / "nested"), str(other))


def test_a_report_of_runs_of_different_code_says_so_at_its_top(squad):
    one = {"cells": 3, "code": "aaaa", "python": "3.12.1", "packages": {"keras": "3.15"}}
    one |= {"processor": "CPU", "cores": 2, "gpus": []}
    told = "The runs behind this table differ: code: aaaa (3 cells), bbbb (2 cells)."
    for others, expected in (([], False), ([one | {"code": "bbbb", "cells": 2}], True)):
        text = report.markdown(replace(squad, origins=[one, *others]), {})
        assert (f"**{told}**" in text.splitlines()[2]) == expected
        assert (told in report.text(replace(squad, origins=[one, *others]))) == expected


def test_numbers_use_real_minus_signs_and_no_negative_zero():
    assert number_words.number(-0.04, 1) == "0.0"
    assert number_words.signed(-2.25, 1) in ("−2.2", "−2.3")
    assert number_words.signed(1234.5, 1) == "+1,234.5"


def test_a_checkpoint_goes_by_the_end_of_its_path():
    assert assemble._checkpoint_name("/home/me/models/bert/folder") == "bert/folder"
    assert assemble._checkpoint_name("bert_base_en") == "bert_base_en"
    assert assemble._checkpoint_name("") == ""


def test_a_claim_that_another_implies_counts_once():
    def claim(name, verdict, *steps, column="x", margin=0.0):
        asked = tuple(Comparison(column, *pair, margin=margin) for pair in steps)
        findings = tuple(Finding(one, verdict, "") for one in asked)
        return Verdict(Claim(name, "", "", asked), verdict, findings, None, ())

    def names(*verdicts):
        return [v.claim.name for v in implied_claims.drop_implied(list(verdicts))]

    steps = claim("every step", REPRODUCED, ("m", "s"), ("l", "m"))
    ends = claim("largest", REPRODUCED, ("l", "s"))
    assert names(steps, ends) == names(ends, steps) == ["every step"]
    assert names(replace(ends, verdict=NOT_DECIDED), steps) == ["largest", "every step"]
    assert names(steps, claim("other column", REPRODUCED, ("l", "s"), column="y"))[1:]
    over, over_two = (claim(f"{m}", PARTLY, ("a", "b"), margin=m) for m in (0.0, 2.0))
    assert names(over, over_two) == ["2.0"]
    assert names(over, claim("same", PARTLY, ("a", "b"))) == ["0.0"]
    assert names(claim("none", NOT_DECIDED), claim("none too", NOT_DECIDED)) == ["none", "none too"]


def test_the_p_of_a_refutation_is_the_refutations(squad):
    asked = Comparison("QNLI", "BERT", "No NSP")
    refuted = Finding(asked, NOT_REPRODUCED, "", p=0.4, refutation=0.01)
    assert wording.p_of(refuted) == 0.01
    assert wording.p_of(replace(refuted, verdict=REPRODUCED)) == 0.4
    claim = Claim("NSP", "", "", (asked,))
    assert overview._deciding(Verdict(claim, NOT_REPRODUCED, (refuted,), None, ())) == 0.01
    shown = Finding(asked, REPRODUCED, "", p=0.03, refutation=1.0)
    assert overview._deciding(Verdict(claim, PARTLY, (shown,), None, ())) == 0.03


def test_further_claims_of_a_configuration_are_exploratory(squad):
    kept = claims(squad)
    table = load_config("table5:squad")
    found = command.further(kept, squad, table)
    assert all(claim.exploratory for claim in found) and not {c.name for c in found} & {
        c.name for c in kept
    }
    fewer = [claim for claim in kept if claim.name != "NSP"]
    assert "NSP" in {claim.name for claim in command.further(fewer, squad, table)}
    lacking = replace(squad, rows=squad.rows[1:])
    assert "NSP" not in {claim.name for claim in command.further(fewer, lacking, table)}
