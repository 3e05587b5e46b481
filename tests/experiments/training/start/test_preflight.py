"""Runs that cannot begin say so before TensorFlow is loaded, and name the flag that mends it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from wrong_starts import FINETUNING, PRETRAINING, cases

ROOT = Path(__file__).parents[4]
MESSAGES = cases(FINETUNING) | cases(PRETRAINING)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Return (folder of the data, what the process of all cases printed)."""
    folder = tmp_path_factory.mktemp("data")
    script = Path(__file__).with_name("wrong_starts.py")
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests" / "experiments")))
    command, places = [sys.executable, str(script), str(folder)], {"PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | places)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", MESSAGES)
def test_what_is_wrong_is_said_with_its_flag(answers, name):
    folder, printed = answers
    expected = MESSAGES[name].replace("{}", re.escape(str(folder)))
    assert re.search(expected, printed["said"][name])


def test_none_of_them_loads_tensorflow(answers):
    _, printed = answers
    assert printed["loaded"] == [] and set(printed["said"]) == set(MESSAGES)
