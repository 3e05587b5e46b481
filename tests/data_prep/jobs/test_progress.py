"""Bars in log files."""

import io
import re

import pytest
from tqdm import tqdm

from data_prep.jobs import progress


@pytest.fixture
def clock(monkeypatch):
    """Return the time of lines: `clock[0]`, in seconds."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(("total", "shown"), [(100, [31, 61, 91, 100]), (91, [31, 61, 91])])
def test_a_bar_in_a_log_file_is_a_line_now_and_then(monkeypatch, clock, total, shown):
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    with progress.progress_bar(True, total=total, desc="steps", mininterval=0, miniters=1) as bar:
        for _ in range(total):
            bar.update()
            clock[0] += 1
    lines = log.getvalue().split("\n")
    done = [int(number) for number in re.findall(r"(\d+)/", log.getvalue())]
    assert lines.pop() == "" and all(line.startswith("steps: ") for line in lines)
    assert done == shown


def test_what_is_said_between_stands_on_its_own_line(monkeypatch, clock):
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    with progress.progress_bar(True, total=2) as bar:
        tqdm.write("a word", file=log)
        bar.update(2)
    said, shown, end = log.getvalue().split("\n")
    assert said == "a word" and "2/2" in shown and end == ""


def test_a_terminal_gets_the_bar_itself(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    assert progress.stream() is terminal
