"""Pairs of aligned files: what belongs together stays so, splits share no source; SWORD by name."""

import csv

import pytest

from data_prep import text_pairs
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


def test_aligned_lines(files):
    *sides, output = files
    counts = text_pairs.make(*sides, output, share=0.2)
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
    counts = text_pairs.make(*sides, output, share=0.2, max_words=10)
    assert counts["left out"] == 1 + sum(i % 40 > 8 for i in range(400)), "and the empty one"
    assert all(len(target.split()) <= 10 for _, target in read(output, "train"))


def test_what_is_refused(files, tmp_path):
    source, target, output = files
    (tmp_path / "c.en").write_text("one\n")
    with pytest.raises(UserError, match=r"a\.es has 400 lines, .*c\.en 1"):
        text_pairs.make(source, str(tmp_path / "c.en"), output)
    with pytest.raises(UserError, match="no pair is left for"):
        text_pairs.make(str(tmp_path / "c.en"), str(tmp_path / "c.en"), output)
    with pytest.raises(UserError, match="--share=0.5"):
        text_pairs.make(source, target, output, share=0.5)
    pytest.importorskip("pysword")
    with pytest.raises(UserError, match="no folder of SWORD modules"):
        text_pairs.make("sword:KJV", target, output, sword=tmp_path)
    (tmp_path / "mods.d").mkdir()
    with pytest.raises(UserError, match="sword:KJV: .* has no module"):
        text_pairs.make("sword:KJV", target, output, sword=tmp_path)
    assert not output.exists()
