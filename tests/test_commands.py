"""How commands end: exit codes and one clear line, for every command of the project."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAIN = """
from absl import flags
from official_bert.common import commands
from official_bert.common.errors import UserError
flags.DEFINE_integer("number", 1, "A number.")
def main(argv):
    {body}
commands.run(main)
"""


def run(body, *arguments):
    return subprocess.run(
        [sys.executable, "-c", MAIN.format(body=body), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    "body, arguments, code, message",
    [
        ("print('done')", [], 0, ""),
        ("raise UserError('data.tsv line 3: bad')", [], 2, "error: data.tsv line 3: bad"),
        ("raise KeyboardInterrupt", [], 130, "interrupted"),
        ("raise ValueError('deep')", [], 1, "failed: ValueError: deep"),
        ("open('a' * 300)", [], 2, "too long"),
        (r"print('\udcff')", [], 0, ""),
        ("pass", ["--number=x"], 2, "--number"),
        ("pass", ["--nmber=2"], 2, "nmber"),
        ("pass", ["stray"], 2, "stray"),
    ],
)
def test_exit_codes(body, arguments, code, message):
    result = run(body, *arguments)
    assert result.returncode == code and message in result.stderr
    if code == 2:
        assert "Traceback" not in result.stderr
