"""Figures of pages: baselines' scores are those of their reports, lines those of folders."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "baselines.md"


def test_scores_of_the_page_are_the_reports():
    lines = re.findall(r"^\| \[.*\]\((.*report\.md)\) \|.*\|(.*\|.*)\|$", PAGE.read_text(), re.M)
    assert len(lines) == 9
    for link, told in lines:
        report = (PAGE.parent / link).read_text()
        scores = re.findall(r"(\w.*?)(?:\\\*)? (\d+\.\d+)(?=,? )", told)
        assert len(scores) >= 2, told
        for row, score in scores:
            assert re.search(rf"^\|.*\b{re.escape(row)} \|.*\b{score}\b", report, re.M), (
                row,
                score,
            )


def test_lines_of_the_family_are_about_those_of_their_folders():
    beyond, checked = ROOT / "experiments" / "beyond", 0
    for row in re.findall(r"^\| .* \|$", (ROOT / "docs" / "family.md").read_text(), re.M):
        *_, where, told, _ = row.split("|")
        folders = [beyond / name for name in re.findall(r"`(\w+)`", where)]
        folders = [folder for folder in folders if folder.is_dir()]
        numbers = [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", told)]
        for folder, number in zip(folders, numbers, strict=False):
            lines = sum(len(path.read_text().splitlines()) for path in folder.glob("*.py"))
            assert abs(lines - number) <= lines / 10, (folder.name, lines)
            checked += 1
    assert checked == 14
