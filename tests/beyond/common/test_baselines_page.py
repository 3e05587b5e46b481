"""The scores on the page of baselines are those of the reports that it links to."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "baselines.md"


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
