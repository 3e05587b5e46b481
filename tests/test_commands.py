"""How commands end: exit codes and one clear line, for every command of the project."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.__main__ import modules
from tests import test_options_in_messages

ROOT = Path(__file__).parent.parent
MAIN = """
from absl import flags
from data_prep.jobs import commands
from official_bert.common.errors import UserError
flags.DEFINE_integer("number", 1, "A number.")
def main(argv):
    {body}
commands.run(main)
"""


def run(body, *arguments):
    command = [sys.executable, "-c", MAIN.format(body=body), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize(
    "body, arguments, code, message",
    [
        ("print('done')", [], 0, ""),
        ("raise UserError('data.tsv line 3: bad')", [], 2, "error: data.tsv line 3: bad"),
        ("raise UserError('a' * 10**6 + '; do b')", [], 2, f"error: {'a' * 1993} ... "),
        ("raise UserError('a' * 10**6 + '; do b')", [], 2, f" {'a' * 1994}; do b\n"),
        ("raise KeyboardInterrupt", [], 130, "interrupted"),
        ("raise ValueError('deep')", [], 1, "failed: ValueError: deep"),
        ("raise FloatingPointError('the loss is nan')", [], 1, "failed: the loss is nan"),
        ("open('a' * 300)", [], 2, "too long"),
        ("import sys; sys.modules['keras'] = None; import keras", [], 2, "pip install"),
        ("import nosuch", [], 1, "nosuch"),
        (r"print('\udcff')", [], 0, ""),
        ("pass", ["--number=x"], 2, "--number"),
        ("pass", ["--nmber=2"], 2, "nmber"),
        ("pass", ["stray"], 2, "stray"),
    ],
)
def test_exit_codes(body, arguments, code, message):
    result = run(body, *arguments)
    assert result.returncode == code and message in result.stderr
    if code == 2 or "nan" in message:
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "body, redirected, code, message",
    [
        ("print('x' * 10**6)", "| head -c 1", 141, ""),
        ("print('few')", "> /dev/full", 2, "error: the disk: No space"),
        ("print('few'); raise UserError('bad')", "> /dev/full", 2, "error: bad"),
        ("raise UserError('bad')", "2> /dev/full", 2, ""),
        ("raise BrokenPipeError(32, 'of a worker')", "> /dev/null", 1, "of a worker"),
        ("import os; handle = os.open('/dev/zero', 0); raise SystemExit(handle < 3)",
         "<&- >&- 2>&-", 0, ""),
    ],
)  # fmt: skip
def test_streams_that_take_nothing(body, redirected, code, message):
    command = f'{sys.executable} -c "$BODY" {redirected}; exit ${{PIPESTATUS[0]}}'
    environment = os.environ | {"BODY": MAIN.format(body=body), "PYTHONUNBUFFERED": ""}
    options = {"capture_output": True, "text": True, "env": environment}
    ended = subprocess.run(["bash", "-c", command], cwd=ROOT, **options)
    assert ended.returncode == code and message in ended.stderr
    assert "Traceback" not in ended.stderr or code == 1
    assert "Exception ignored" not in ended.stderr


def test_a_working_folder_that_is_gone():
    body = "import os, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d); os.getcwd()"
    ended = run(body)
    assert ended.returncode == 2 and ended.stderr.startswith("error: the working folder: No such")


def official_bert(*arguments, folder):
    """Run the command as an installation's script does, which has no working folder on its path."""
    code = "from experiments.__main__ import main; main()"
    paths = filter(None, [os.environ.get("PYTHONPATH")])  # what a copy of the core needs
    command = [sys.executable, "-P", "-c", code, *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *paths])}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_one_name_for_all_commands(tmp_path):
    assert {*modules().values()} == {*test_options_in_messages.COMMANDS}
    for name in ("experiments", "data_prep", "official_bert"):  # the user's own
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('not ours')")
    ended = official_bert("finetune", "--config=text_classification", folder=tmp_path)
    assert ended.returncode == 2 and "error: --workdir is missing" in ended.stderr
    ended = official_bert("predict", "--output=x", folder=tmp_path)
    assert ended.returncode == 2 and "error: --model is missing: a model folder" in ended.stderr
    ended = official_bert("show-records", "nothing", folder=tmp_path)
    assert ended.returncode == 2 and "nothing" in ended.stderr and "Traceback" not in ended.stderr
    ended = official_bert("--help", folder=tmp_path)
    listed = [line.split()[0] for line in ended.stdout.splitlines()[2:]]
    assert ended.returncode == 0 and listed == [*modules()]
    ended = official_bert("fine", folder=tmp_path)
    assert ended.returncode == 2 and ended.stderr.startswith("error: no command 'fine'")
    help_of_one = official_bert("sentences", "--help", folder=tmp_path)
    assert "--output" in help_of_one.stdout and help_of_one.returncode == 0
