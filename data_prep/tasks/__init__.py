"""The benchmarks of section 4 and the user's own data, behind one protocol (see `task.py`).

    task = get_task("mrpc", data_dir="glue_data")
    examples = task.examples("dev")
    features = featurize.featurize(task, examples, tokenizer, max_seq_length=128)
    for rows, batch in batches.eval_batches(features, batch_size=32): ...
    task.score(examples, task.predictions(examples, features, outputs))

Modules of tasks are imported when they are asked for, so that listing the names costs nothing.
"""

import importlib
import inspect

from data_prep.tasks.task import Task
from official_bert.errors import UserError

# name: (module of this package, class, options that the name stands for)
TASKS = {
    "text_classification": ("text_classification", "TextClassification", {}),
    "cola": ("glue", "Glue", {"task": "cola"}),
    "sst2": ("glue", "Glue", {"task": "sst2"}),
    "mrpc": ("glue", "Glue", {"task": "mrpc"}),
    "stsb": ("glue", "Glue", {"task": "stsb"}),
    "qqp": ("glue", "Glue", {"task": "qqp"}),
    "mnli": ("glue", "Glue", {"task": "mnli"}),
    "qnli": ("glue", "Glue", {"task": "qnli"}),
    "rte": ("glue", "Glue", {"task": "rte"}),
    "wnli": ("glue", "Glue", {"task": "wnli"}),
    "squad_v1.1": ("squad", "Squad", {"version": "1.1"}),
    "squad_v2.0": ("squad", "Squad", {"version": "2.0"}),
    "swag": ("swag", "Swag", {}),
    "codah": ("swag", "Codah", {}),
    "conll2003": ("conll", "Conll", {}),
}
_OTHER_NAMES = {
    "squad": "squad_v1.1",
    "squad1": "squad_v1.1",
    "squad2": "squad_v2.0",
    "ner": "conll2003",
}


def get_task(name: str, data_dir: str = "", **task_options) -> Task:
    """The task of that name; reads no file yet.

    Case, `-`, `_` and `.` do not matter in the name ("SST-2" is "sst2"). `data_dir` is the folder
    of the official files; empty means TFDS for the tasks that TFDS has.

    Raises:
      UserError: unknown name or option; the message lists the valid ones.
    """
    known = {_plain(key): key for key in TASKS} | {_plain(k): v for k, v in _OTHER_NAMES.items()}
    if _plain(name) not in known:
        raise UserError(f"unknown task {name!r}; the tasks are {', '.join(TASKS)}")
    name = known[_plain(name)]
    module, class_name, fixed = TASKS[name]
    task_class = getattr(importlib.import_module(f"data_prep.tasks.{module}"), class_name)
    valid = set(inspect.signature(task_class).parameters) - {"data_dir", *fixed}
    unknown = sorted(set(task_options) - valid)
    if unknown:
        raise UserError(
            f"unknown option {', '.join(unknown)} of task {name}; "
            f"its options are {', '.join(sorted(valid))}"
        )
    task = task_class(data_dir, **fixed, **task_options)
    task.name = name
    return task


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(".", "")
