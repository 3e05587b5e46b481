"""The GLUE leaderboard's zip file, and the two averages over GLUE."""

import os
import zipfile

from official_bert.errors import UserError
from official_bert.files import atomic_write

FILES = (
    "CoLA.tsv",
    "SST-2.tsv",
    "MRPC.tsv",
    "STS-B.tsv",
    "QQP.tsv",
    "MNLI-m.tsv",
    "MNLI-mm.tsv",
    "QNLI.tsv",
    "RTE.tsv",
    "WNLI.tsv",
    "AX.tsv",
)


# Table 1 has nine columns: MNLI twice, no WNLI; F1 for QQP and MRPC, Spearman for STS-B.
PAPER_COLUMNS = (
    ("mnli", "accuracy"),
    ("mnli_mismatched", "accuracy"),
    ("qqp", "f1"),
    ("qnli", "accuracy"),
    ("sst2", "accuracy"),
    ("cola", "matthews"),
    ("stsb", "spearman"),
    ("mrpc", "f1"),
    ("rte", "accuracy"),
)
# The leaderboard has nine tasks: WNLI counts, the two MNLI sets and the two metrics of a task are
# averaged first.
LEADERBOARD_TASKS = (
    (("cola", "matthews"),),
    (("sst2", "accuracy"),),
    (("mrpc", "f1"), ("mrpc", "accuracy")),
    (("stsb", "pearson"), ("stsb", "spearman")),
    (("qqp", "f1"), ("qqp", "accuracy")),
    (("mnli", "accuracy"), ("mnli_mismatched", "accuracy")),
    (("qnli", "accuracy"),),
    (("rte", "accuracy"),),
    (("wnli", "accuracy"),),
)


def paper_average(scores: dict[str, dict[str, float]]) -> float:
    """Table 1's average of `{task: {metric: score}}`; MNLI mismatched is "mnli_mismatched".

    Raises:
      UserError: a column is missing.
    """
    return _mean([_score(scores, task, metric) for task, metric in PAPER_COLUMNS])


def leaderboard_average(scores: dict[str, dict[str, float]]) -> float:
    """The leaderboard's score. Raises like `paper_average`."""
    return _mean(
        [_mean([_score(scores, *column) for column in columns]) for columns in LEADERBOARD_TASKS]
    )


def write_zip(paths: list[str], zip_path: str, allow_missing: bool = False) -> list[str]:
    """Zips prediction files (as `Glue.write` names them); returns the names that are missing.

    The leaderboard takes only complete submissions.

    Raises:
      UserError: files are missing (unless allowed), unknown, or given twice.
    """
    by_name = {}
    for path in paths:
        name = os.path.basename(path)
        if name not in FILES:
            raise UserError(f"{path}: not a GLUE submission file ({', '.join(FILES)})")
        if name in by_name:
            raise UserError(f"{name} is given twice: {by_name[name]} and {path}")
        by_name[name] = path
    missing = [name for name in FILES if name not in by_name]
    if missing and not allow_missing:
        raise UserError(f"the submission lacks {', '.join(missing)}")
    with atomic_write(zip_path, "wb") as file, zipfile.ZipFile(file, "w") as archive:
        for name in FILES:
            if name in by_name:
                # A fixed date, so that equal predictions give equal bytes.
                info = zipfile.ZipInfo(name, (2018, 10, 11, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = 0o644 << 16
                with open(by_name[name], "rb") as source:
                    archive.writestr(info, source.read())
    return missing


def _score(scores, task: str, metric: str) -> float:
    if metric not in scores.get(task, {}):
        raise UserError(f"the average needs {metric} of {task}")
    return scores[task][metric]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
