"""The benchmarks of section 4 and users' own data, behind one protocol (see `task.py`).

    task = get_task("mrpc", data_dir="glue_data")
    examples = task.examples("dev")
    features = featurize.featurize(task, examples, tokenizer, max_seq_length=128)
    for rows, batch in batches.eval_batches(features, batch_size=32): ...
    task.score(examples, task.predictions(examples, features, outputs))

Begin with `task`, the protocol, then a task: `classification.glue`, `question_answering.squad`,
`tagging.conll`. `split_files` finds the files of splits and `text_groups` holds examples out;
`featurize`, `feature_set` and `batches` lead to the model, `metrics` back from it. Modules of tasks
are imported on first use, so that listing the names costs nothing.
"""

import importlib
import inspect
import os

from data_prep.tasks.task import Task
from official_bert.common.errors import UserError, meant
from official_bert.common.typed import typed
from official_bert.extension import find, names

# name: (module of this package, class, options that the name implies); extensions add others
TASKS = {
    "text_classification": ("classification.text_classification", "TextClassification", {}),
    "cola": ("classification.glue", "Glue", {"task": "cola"}),
    "sst2": ("classification.glue", "Glue", {"task": "sst2"}),
    "mrpc": ("classification.glue", "Glue", {"task": "mrpc"}),
    "stsb": ("classification.glue", "Glue", {"task": "stsb"}),
    "qqp": ("classification.glue", "Glue", {"task": "qqp"}),
    "mnli": ("classification.glue", "Glue", {"task": "mnli"}),
    "qnli": ("classification.glue", "Glue", {"task": "qnli"}),
    "rte": ("classification.glue", "Glue", {"task": "rte"}),
    "wnli": ("classification.glue", "Glue", {"task": "wnli"}),
    "squad_v1.1": ("question_answering.squad", "Squad", {"version": "1.1"}),
    "squad_v2.0": ("question_answering.squad", "Squad", {"version": "2.0"}),
    "swag": ("classification.swag", "Swag", {}),
    "codah": ("classification.swag", "Codah", {}),
    "conll2003": ("tagging.conll", "Conll", {}),
}
_OTHER_NAMES = {
    "squad": "squad_v1.1",
    "squad1": "squad_v1.1",
    "squad2": "squad_v2.0",
    "ner": "conll2003",
}


def get_task(name: str, data_dir: str = "", **task_options) -> Task:
    """Return the task with a name; no file is read yet.

    Case, `-`, `_` and `.` do not matter in the name ("SST-2" is "sst2"). `data_dir` is the folder
    of the official files; empty means TFDS for the tasks that TFDS has.

    Raises:
      UserError: unknown name or option (the message lists the valid ones), or an option's value is
        not of the type that the task's constructor declares.
    """
    name, task_class, fixed = _find(name)
    valid = options_of(name)
    unknown = sorted(set(task_options) - set(valid))
    if unknown:
        raise UserError(
            f"unknown option {', '.join(unknown)} of task {name}{meant(unknown[0], valid)}; "
            f"its options are {', '.join(sorted(valid))}"
            + (f"; {task_class.about_windows}" if "windows" in unknown else "")
        )
    for option, value in task_options.items():
        hint = valid[option].annotation
        value = os.fspath(value) if isinstance(value, os.PathLike) else value
        try:
            task_options[option] = typed(value, hint, digits=True)
        except TypeError as error:
            raise UserError(f"option {option} of task {name} is {value!r}, {error}") from None
    task = task_class(data_dir, **fixed, **task_options)
    task.name = name
    return task


def task_names() -> list[str]:
    """Return the names of all tasks, those of extensions too."""
    return [*TASKS, *names("tasks")]


def class_of(name: str) -> type[Task]:
    """Return the class of a task.

    Raises:
      UserError: there is no such task.
    """
    return _find(name)[1]


def options_of(name: str) -> dict[str, inspect.Parameter]:
    """Return the options of a task: {name: its parameter, with default and type}.

    Raises:
      UserError: there is no such task.
    """
    _, task_class, fixed = _find(name)
    found = {}
    for constructor in _constructors(task_class):
        given = inspect.signature(constructor).parameters
        found |= {key: p for key, p in given.items() if p.kind is p.KEYWORD_ONLY}
    return {key: p for key, p in found.items() if key not in fixed}


def docstring_of(name: str) -> str:
    """Return the docstrings of a task's constructors, which describe its options."""
    documented = (each.__doc__ or "" for each in _constructors(_find(name)[1]))
    return "\n\n".join(map(inspect.cleandoc, documented))


def _constructors(task_class) -> list:
    """Return the constructors that take a task's options, inherited ones first.

    A constructor with `**options` hands these on to the next.
    """
    found = []
    for each in (vars(one).get("__init__") for one in task_class.__mro__):
        if each is not None:
            found.insert(0, each)
            if inspect.getfullargspec(each).varkw is None:
                break
    return found


def _find(name: str):
    """Return (name in the registry, class, options that the name implies)."""
    known = {_plain(key): key for key in task_names()}
    known |= {_plain(key): value for key, value in _OTHER_NAMES.items()}
    name = known.get(_plain(name), name)
    if name not in TASKS:
        return name, find("tasks", name, TASKS), {}
    module, class_name, fixed = TASKS[name]
    return name, getattr(importlib.import_module(f"data_prep.tasks.{module}"), class_name), fixed


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(".", "")
