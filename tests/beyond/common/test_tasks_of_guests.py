"""Tasks of systems beyond the paper keep what every task keeps."""

import pickle
import subprocess
import sys

import pytest

from data_prep.tasks import get_task
from official_bert.extension import names

TASKS = names("tasks")


@pytest.mark.parametrize("name", TASKS)
def test_every_name_gives_its_task_without_reading_files(name):
    task = get_task(name, data_dir="/nowhere")
    assert task.name == name and task.metrics and "train" in task.splits
    pickle.loads(pickle.dumps(task))  # worker processes receive it


@pytest.mark.parametrize("name", [name for name in TASKS if name != "visits"])
def test_settings_make_the_task_again(name):
    task = get_task(name, data_dir="/nowhere")
    again = get_task(name, **task.settings())
    assert again.head == task.head and again.input_fields == task.input_fields


def test_tasks_import_neither_keras_nor_tensorflow_nor_scikit_learn():
    code = (
        "import sys; from data_prep.tasks import get_task; from official_bert.extension import "
        "names; [get_task(name) for name in names('tasks')]\n"
        "print({'keras', 'tensorflow', 'sklearn', 'scipy'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"
