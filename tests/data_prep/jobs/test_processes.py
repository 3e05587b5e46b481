"""Work in several processes: order, how much is under way, and a process that dies."""

import os
import subprocess
import sys

import pytest

from data_prep.jobs.processes import Processes, WorkerDied


def double(number):
    return 2 * number


def end_at_three(number):
    if number == 3:
        os._exit(1)
    return number


_SCRIPT = """
import sys, types
sys.modules["jax"] = types.ModuleType("jax")  # as if it had threads: processes are not forked
from data_prep.jobs.processes import Processes

def own(number):
    return -number

with Processes(2) as processes:
    print(list(processes.map({function}, range(-9, 0))))
"""


def run_script(tmp_path, function):
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT.format(function=function))
    command = [sys.executable, str(script)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_a_script_without_a_main_guard_is_run_once(tmp_path):
    done = run_script(tmp_path, "abs")
    assert done.stdout == f"{[*range(9, 0, -1)]}\n", done.stderr


def test_a_script_whose_functions_are_needed_is_told_to_guard_them(tmp_path):
    done = run_script(tmp_path, "own")
    assert done.returncode == 1 and "WorkerDied" in done.stderr
    assert 'put all but definitions below if __name__ == "__main__":' in done.stderr


@pytest.mark.parametrize("number", [1, 2])
def test_results_are_those_of_one_process(number):
    with Processes(number) as processes:
        assert list(processes.map(double, range(40))) == list(range(0, 80, 2))
        found = processes.map(double, iter(range(40)), in_order=False)
        assert sorted(found) == list(range(0, 80, 2))


def test_items_are_taken_as_results_are_asked_for():
    taken = []
    with Processes(2) as processes:
        results = processes.map(double, (taken.append(i) or i for i in range(100)))
        assert next(results) == 0 and len(taken) == 8


def test_a_process_that_dies_is_an_error_a_user_can_act_on():
    with Processes(2) as processes, pytest.raises(WorkerDied, match="run the same command again"):
        list(processes.map(end_at_three, range(9)))
