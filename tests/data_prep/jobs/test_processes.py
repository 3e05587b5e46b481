"""Work in several processes: order, how much is under way, and a process that dies."""

import os

import pytest

from data_prep.jobs.processes import Processes, WorkerDied


def double(number):
    return 2 * number


def end_at_three(number):
    if number == 3:
        os._exit(1)
    return number


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
        assert next(results) == 0
        assert len(taken) == 8


def test_a_process_that_dies_is_an_error_a_user_can_act_on():
    with Processes(2) as processes, pytest.raises(WorkerDied, match="run the same command again"):
        list(processes.map(end_at_three, range(9)))
