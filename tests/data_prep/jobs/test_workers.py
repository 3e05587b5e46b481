"""The removal of files that a task uses up, whatever happens in between."""

from unittest import mock

import pytest

from data_prep.jobs import checked_json, storage, workers
from official_bert.common.files import write_text


@pytest.fixture
def task(tmp_path):
    write_text(tmp_path / "part", "3")
    return {"part": str(tmp_path / "part"), "summary": str(tmp_path / "summary")}


def double(task):
    return {"number": 2 * int(storage.read_bytes(task["part"])), "used_up": [task["part"]]}


def test_used_up_files_go_when_the_summary_is_there(task, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(checked_json, "write", mock.Mock(side_effect=KeyboardInterrupt))
        workers.run_task(double, task)
    assert storage.exists(task["part"])  # else the task could not be done again

    workers.run_task(double, task)
    assert workers.summaries([task]) == [{"number": 6}]
    assert not storage.exists(task["part"])


def test_a_task_that_is_done_is_not_repeated(task):
    """Clusters repeat a whole bundle of tasks when a machine is lost."""
    for _ in range(2):
        workers.run_task(double, task)
    assert workers.summaries([task]) == [{"number": 6}]
