"""The GLUE leaderboard's zip file, and two averages over GLUE's dev scores.

    python -m data_prep.tasks.submission --runs='runs/glue/*' --output=submission.zip

takes the predictions of finished fine-tuning runs, one for each task, made with
--config.predict_test=true. The MNLI run predicts the diagnostic set. The leaderboard takes only
complete submissions; --allow_missing zips whatever there is. Each average is printed if all its
tasks are there.
"""

import os
import zipfile
from statistics import fmean

from data_prep.jobs import checked_json, commands, walk
from data_prep.jobs.outputs import check_outputs
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_write

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
# The leaderboard has nine tasks: WNLI counts, and the two MNLI sets, or the two metrics of a task,
# are averaged first.
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
    """Return table 1's average of `{task: {metric: score}}`; MNLI mismatched is "mnli_mismatched".

    Raises:
      UserError: a column is missing.
    """
    return fmean([_score(scores, task, metric) for task, metric in PAPER_COLUMNS])


def leaderboard_average(scores: dict[str, dict[str, float]]) -> float:
    """Return the leaderboard's score; errors are those of `paper_average`."""
    return fmean(
        [fmean([_score(scores, *column) for column in columns]) for columns in LEADERBOARD_TASKS]
    )


def dev_scores(runs: list[str]) -> dict[str, dict[str, float]]:
    """Return {task: {metric: score}} of finished fine-tuning runs, for the averages.

    Raises:
      UserError: a folder is not a finished run, or a task has two.
    """
    scores = {}
    for run in runs:
        results = _results(run)
        task = results["task"]
        if task in scores:
            raise UserError(f"{run}: a second run of {task}; give one of each task")
        scores[task] = results["dev"]
        if "dev_mismatched" in results:
            scores["mnli_mismatched"] = results["dev_mismatched"]
    return scores


def find_predictions(runs: list[str]) -> list[str]:
    """Return the submission files in folders of fine-tuning runs, without those of dev splits.

    Raises:
      UserError: a folder is not a finished run, or holds no predictions for a test set.
    """
    found = []
    for run in runs:
        _results(run)
        paths = walk.matches(os.path.join(run, "predictions", "*", "*.tsv"))
        paths = [path for path in paths if _split(path).startswith("test") or _split(path) == "ax"]
        if not paths:
            raise UserError(
                f"{run} has no predictions for a test set; run it again with "
                "--config.predict_test=true --overwrite"
            )
        found += sorted(paths)
    return found


def write_zip(
    paths: list[str], zip_path: str, allow_missing: bool = False, overwrite: bool = False
) -> list[str]:
    """Zip prediction files (as `Glue.write` names them); return the names that are missing.

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
    with atomic_write(zip_path, "wb", overwrite) as file, zipfile.ZipFile(file, "w") as archive:
        for name in FILES:
            if name in by_name:
                # A fixed date, so that equal predictions give equal bytes.
                info = zipfile.ZipInfo(name, (2018, 10, 11, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = 0o644 << 16
                with open(by_name[name], "rb") as source:
                    archive.writestr(info, source.read())
    return missing


def _results(run: str) -> dict:
    path = os.path.join(run, "results.json")
    results = checked_json.read(path, finite=False) if os.path.isfile(path) else {}
    if "task" not in results or "dev" not in results:
        raise UserError(f"{run} is not the folder of a finished fine-tuning run")
    return results


def _score(scores, task: str, metric: str) -> float:
    if metric not in scores.get(task, {}):
        raise UserError(f"the average needs {metric} of {task}")
    return scores[task][metric]


def _split(path: str) -> str:
    return os.path.basename(os.path.dirname(path))


def main(_) -> None:
    from absl import flags

    values = flags.FLAGS
    runs = sorted(path for pattern in values.runs for path in walk.matches(pattern, folders=True))
    if not runs:
        raise UserError(f"--runs: nothing matches {', '.join(values.runs)}")
    runs = [path for path in runs if os.path.isdir(path)]
    scores = dev_scores(runs)
    paths = find_predictions(runs)
    check_outputs(paths, files=[values.output], overwrite=values.overwrite)
    missing = write_zip(paths, values.output, values.allow_missing, values.overwrite)
    print(f"{values.output}: {len(paths)} files")
    if missing:
        print(f"missing, the leaderboard will not take it: {', '.join(missing)}")
    averages = {"the paper's average": paper_average, "the leaderboard's": leaderboard_average}
    for name, average in averages.items():
        try:
            print(f"dev, {name}: {100 * average(scores):.1f}")
        except UserError as error:
            print(f"dev, {name}: none, {error}")


def _define_flags() -> None:
    from absl import flags

    flags.DEFINE_list("runs", None, "Folders of fine-tuning runs, or globs.", required=True)
    flags.DEFINE_string("output", None, "The zip file to write.", required=True)
    flags.DEFINE_bool("overwrite", False, "Rename what stands at --output to NAME.~1~ first.")
    flags.DEFINE_bool("allow_missing", False, "Write it even if tasks are missing.")


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
