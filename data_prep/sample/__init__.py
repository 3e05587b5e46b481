"""The embedded sample: a small corpus and five small tasks, for runs without a network.

README.md and LICENSES.md beside this file tell its contents, its origin and its licences.
"""

from pathlib import Path

from official_bert.common.errors import UserError, check_choice

_FOLDER = Path(__file__).resolve().parent


def corpus_files(name: str = "*") -> list[str]:
    """Return the corpus's files (8.9 MB of text): gzip, one sentence a line, blank lines between
    documents.

    They hold no passage of the tasks' dev sets.

    Args:
      name: a file's name without ".txt.gz", or a pattern; "*" matches all.

    Raises:
      UserError: there is no such file.
    """
    files = [str(path) for path in sorted((_FOLDER / "corpus").glob(f"{name}.txt.gz"))]
    if not files:
        raise UserError(f"the sample's corpus has no file {name}.txt.gz")
    return files


def task_names() -> list[str]:
    """Return the names of the tasks that `task_dir` knows."""
    return sorted(path.name for path in (_FOLDER / "tasks").iterdir() if path.is_dir())


def task_dir(name: str) -> str:
    """Return the folder with a task's training and dev examples.

    "qnli": train.tsv.gz and dev.tsv.gz in GLUE's format;
    "sms_spam": train.tsv and dev.tsv with the columns text, label (ham, spam);
    "snli": train.tsv and dev.tsv with premise, hypothesis, label (entailment, neutral,
    contradiction); "squad": train-v1.1.json and dev-v1.1.json in SQuAD's format; "names": train.txt
    and valid.txt in CoNLL-2003's format, names in text.

    Raises:
      UserError: there is no such task.
    """
    check_choice("task", name, task_names(), "the sample")
    return str(_FOLDER / "tasks" / name)
