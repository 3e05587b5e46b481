"""The arithmetic of benchmarks on their figures; nothing is timed here."""

import json
from pathlib import Path

import pytest

from benchmarks import all as everything
from benchmarks import machine, memory, own_data_trainer, pretraining, serving
from official_bert.config import named_config

DOCS = (Path(__file__).parents[1] / "docs" / "distribution.md").read_text()


def test_memory_is_computed_to_a_tenth_of_what_xla_has():
    known = json.loads(memory.RESULTS.read_text())
    assert set(known) == {f"{size} {length}" for size in memory.SIZES for length in memory.LENGTHS}
    for case, found in known.items():
        size, length = case.split()
        for part, count in memory.computed(named_config(size), int(length)).items():
            assert count == pytest.approx(found[part], rel=0.1), (case, part)
    assert memory.table(known) in DOCS


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({"a": 466, "b": 239, "c": 463, "d": 452}, ["b"]),
        ({"a": 466, "b": 239}, ["b"]),
        ({"a": 400, "b": 430}, []),
        ({"a": 400}, []),
        ({}, []),
    ],
)
def test_who_was_disturbed(rates, expected):
    assert machine.disturbed(rates) == expected


def test_disturbed_groups_are_measured_again_until_they_are_not():
    def result(rate):
        return {"matrix_gflops_per_s": rate, "rows": [], "failed": {}}

    keys = [(shape, p, "X") for p in ("float32", "bfloat16") for shape in ("base", "mini", "tiny")]
    runs = {key: result(800 if "bfloat16" in key else 460) for key in keys}
    runs["mini", "float32", "X"] = result(239)
    rates, asked = iter([300, 455, 1]), []

    def run(*key):
        asked.append(key)
        return result(next(rates))

    pretraining.measure_again(runs, run)
    assert asked == [("mini", "float32", "X")] * 2
    assert runs["mini", "float32", "X"]["matrix_gflops_per_s"] == 455
    assert [key for key in runs if "measured_again" in runs[key]] == [("mini", "float32", "X")]


def test_a_machine_of_half_the_speed_changes_nothing():
    committed = everything.read(everything.RESULTS)
    assert {"pretraining", "serving", "data_prep"} <= set(committed)
    rates = everything.reference(everything.RESULTS)
    half = {part: {k: rate / 2 for k, rate in found.items()} for part, found in committed.items()}
    halved = {part: rate / 2 for part, rate in rates.items()}
    text = everything.report(committed, half, rates, halved)
    assert text.count("\n") == 3 and "\n0 of " in text

    label = "minilm, SST-2: official_bert, one text, texts/s"
    half["serving"][label] *= 0.5
    half["serving"]["another"] = 1.0
    *_, line, _, total = everything.report(committed, half, rates, halved).split("\n")
    assert line.startswith(f"| serving, {label} |") and line.endswith("| 0.50 | 0.50 |")
    assert total.startswith("1 of ") and total.endswith("; 1 have no committed figure")


@pytest.mark.parametrize("size", [{}, {"megabytes": 90.4}])
def test_a_table_of_latencies_has_sizes_where_they_are_known(size):
    row = {"contestant": "A", **size, "SST-2": {"p50_ms": 1.0, "p99_ms": 2.0, "texts_per_s": 30.0}}
    *_, header, line, cells, reason = serving.markdown("minilm", [row], {"B": "no"}).split("\n")
    assert ("MB" in header) == bool(size)
    assert cells == "| A | " + "90 | " * bool(size) + "1.0 | 2.0 | 30 |"
    assert header.count("|") == line.count("|") == 5 + bool(size)
    assert reason == "- B: did not run (no)"


def test_a_peer_stands_beside_this_projects_scores():
    theirs = {
        "BERT tiny, 0.0003, corrected/questions/1": 0.25,
        "BERT tiny, 0.0003, corrected/questions/2": 0.27,
        "a model that no table has, corrected/questions/1": 0.5,
    }
    lines = own_data_trainer.table(own_data_trainer.ours(), theirs).splitlines()
    assert lines[2] == "| BERT tiny, 0.0003 | questions | 29.8 | 26.0 | 1.4 |"
    assert lines[3] == "| a model that no table has | questions | not run | 50.0 | 0.0 |"
