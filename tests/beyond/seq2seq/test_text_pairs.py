"""Pairs of aligned files: what belongs together stays so, splits share no source; SWORD by name;
SQuAD's questions by article."""

import csv
import json
import os

import pytest
from in_process import call

from experiments.beyond.seq2seq import text_pairs
from official_bert.common.errors import UserError


@pytest.fixture
def files(tmp_path):
    """400 lines each, of which two are the same and one is empty."""
    sources = [f"línea  {i}" for i in range(400)]
    sources[7] = sources[300] = "dos veces"
    sources[8] = " "
    targets = [f"line {i}" + " long" * (i % 40) for i in range(400)]
    for name, lines in (("a.es", sources), ("b.en", targets)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(tmp_path / "a.es"), str(tmp_path / "b.en"), tmp_path / "pairs"


def read(folder, split):
    with open(folder / f"{split}.tsv", encoding="utf-8", newline="") as file:
        return [tuple(row.values()) for row in csv.DictReader(file, delimiter="\t")]


def made(source, target, output, sword="", **options):
    return text_pairs.make(text_pairs.aligned(source, target, sword), output, **options)


def test_aligned_lines(files):
    *sides, output = files
    counts = made(*sides, output, share=0.2)
    splits = {split: read(output, split) for split in ("train", "dev", "test")}
    assert counts == {**{name: len(rows) for name, rows in splits.items()}, "left out": 1}
    assert 40 < counts["dev"] < 120 and 40 < counts["test"] < 120
    everything = [pair for rows in splits.values() for pair in rows]
    assert len(everything) == 399 and ("línea 9", "line 9" + 9 * " long") in everything
    sources = [{source for source, _ in rows} for rows in splits.values()]
    assert not sources[0] & sources[1] and not sources[0] & sources[2]
    assert sum("dos veces" in found for found in sources) == 1


def test_short_pairs_alone(files):
    *sides, output = files
    counts = made(*sides, output, share=0.2, max_words=10)
    assert counts["left out"] == 1 + sum(i % 40 > 8 for i in range(400)), "and the empty one"
    assert all(len(target.split()) <= 10 for _, target in read(output, "train"))


def test_what_is_refused(files, tmp_path):
    source, target, output = files
    (tmp_path / "c.en").write_text("one\n")
    with pytest.raises(UserError, match=r"a\.es has 400 lines, .*c\.en 1"):
        made(source, str(tmp_path / "c.en"), output)
    with pytest.raises(UserError, match="no pair is left for"):
        made(str(tmp_path / "c.en"), str(tmp_path / "c.en"), output)
    with pytest.raises(UserError, match="--share=0.5"):
        made(source, target, output, share=0.5)
    pytest.importorskip("pysword")
    with pytest.raises(UserError, match="no folder of SWORD modules"):
        made("sword:KJV", target, output, sword=tmp_path)
    (tmp_path / "mods.d").mkdir()
    with pytest.raises(UserError, match="sword:KJV: .* has no module"):
        made("sword:KJV", target, output, sword=tmp_path)
    os.mkfifo(tmp_path / "mods.d" / "pipe.conf")
    with pytest.raises(UserError, match=r"pipe\.conf: is not a file"):
        made("sword:KJV", target, output, sword=tmp_path)
    assert not output.exists()


def test_a_damaged_module_is_not_taken_for_one_without_text():
    unpacked = text_pairs._unpacked(lambda testament, number: b"text" * (number < 2), "sword:KJV")
    assert unpacked("ot", 1) == b"text"
    with pytest.raises(UserError, match="sword:KJV: part 2 of ot is missing or damaged"):
        unpacked("ot", 2)


def test_a_folder_in_the_way_is_refused_before_anything_is_read(files, monkeypatch, capsys):
    source, target, output = files
    output.mkdir()
    (output / "mine").write_text("mine")
    monkeypatch.setattr(text_pairs, "_texts", lambda *_: pytest.fail("it was read"))
    options = ("--source=" + source, "--target=" + target, f"--output={output}")
    assert call(text_pairs, *options) == 2
    assert "exists already; choose another" in capsys.readouterr().err


def test_questions_of_squad(tmp_path):
    """The sentence that holds the answer, or both where it spans two; an article is in one split.
    An answer that is nowhere is counted."""
    context = "Ann went home. It was  late. Bob stayed."
    asked = [("late", 23, "When?"), ("home. It", 9, "Where?"), ("nobody", 3, "Who?")]
    qas = [
        {"id": str(i), "question": ask, "answers": [{"text": text, "answer_start": start}]}
        for i, (text, start, ask) in enumerate(asked)
    ]
    articles = [
        {"title": f"Article {i}", "paragraphs": [{"context": context, "qas": qas}] * 2}
        for i in range(20)
    ]
    (tmp_path / "squad.json").write_text(json.dumps({"version": "1.1", "data": articles}))
    found = list(text_pairs.questions([str(tmp_path / "squad.json")]))
    assert found[:3] == [
        ("Article 0", "late: It was  late. ", "When?"),
        ("Article 0", "home. It: Ann went home. It was  late. ", "Where?"),
        ("Article 0", "", "Who?"),
    ]
    counts = text_pairs.make(found, tmp_path / "pairs", share=0.3)
    assert counts.pop("left out") == 40 and sum(counts.values()) == 80
    assert all(count and count % 4 == 0 for count in counts.values()), "an article has four"
    assert read(tmp_path / "pairs", "dev")[:2] == [
        ("late: It was late.", "When?"),
        ("home. It: Ann went home. It was late.", "Where?"),
    ]
