"""Files that fine-tuning leaves: predictions, scores of examples, analysis, report."""

from experiments.training import example_scores, finetune_report
from official_bert.common.files import make_folder, write_text


def write_dev(folder, task, examples, predictions, results):
    """Writes all that is known of the dev split, and its files into `results`.

    Args:
      folder: RunFolder.
      examples, predictions: of the dev split.
      results: what results.json will hold.

    Returns: what `Task.analysis` says of them.
    """
    results["predictions_file"] = write_predictions(folder, task, "dev", predictions, results)
    example_scores.save(folder.path / "example_scores.npz", task, examples, predictions)
    analysis = task.analysis(examples, predictions)
    if analysis:
        folder.write_json("analysis.json", analysis)
        results["files"]["analysis"] = str(folder.path / "analysis.json")
    return analysis


def write_predictions(folder, task, split, predictions, results):
    """Writes the predictions of a split in the task's own format; returns the first file's path."""
    place = folder.predictions / split
    make_folder(place)
    path = str(task.write(place, predictions)[0])
    results["files"][f"{split} predictions"] = path
    return path


def write_report(folder, results, analysis):
    """Writes report.md; `results` has all its scores by now."""
    write_text(folder.path / "report.md", finetune_report.markdown(results, analysis))
    results["files"]["report"] = str(folder.path / "report.md")
