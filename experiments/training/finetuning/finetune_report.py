"""Files that a fine-tuning leaves: predictions, scores of examples, analysis, and its report."""

from data_prep.tasks.batches import sizes_of
from experiments.training.finetuning import example_scores
from experiments.training.folder.run_results import FinetuningResults
from official_bert.common.files import make_folder, remove, write_text
from official_bert.common.markdown import markdown_table, plain


def markdown(results: FinetuningResults, analysis: dict) -> str:
    """Return the text of a run's report.md.

    Args:
      results: of the run.
      analysis: what `Task.analysis` returned; any of its parts may be missing.
    """
    advice = "\n".join(f"- {line}" for line in results.advice)
    parts = [_scores(results), advice, _notes(results), *of_analysis(analysis)]
    return "\n\n".join(part for part in parts if part) + "\n"


def of_analysis(analysis: dict) -> list[str]:
    """Return the tables of an analysis: confusion matrix, scores of each class, mistakes."""
    tables = {"confusion": _confusion, "per_class": _per_class, "mistakes": _mistakes}
    return [table(analysis[name]) for name, table in tables.items() if analysis.get(name)]


def scores(results: FinetuningResults) -> list[tuple[str, str, str]]:
    """Return (name, score, score of the trivial baseline or "") of every score."""
    baseline = results.baseline
    rows = [
        (metric, f"{value:.4f}", f"{baseline[metric]:.4f}" if metric in baseline else "")
        for metric, value in results.dev.items()
    ]
    for name in ("dev_before_tuning", "dev_mismatched", "test"):
        rows += [(f"{name}: {k}", f"{v:.4f}", "") for k, v in getattr(results, name).items()]
    return rows


def notes(results: FinetuningResults) -> list[str]:
    """List what was cut, left out or not predicted, a line a split."""
    lines = []
    for split, counts in (("train", results.train_notes), ("dev", results.dev_notes)):
        counted = [f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items() if count]
        if counted:
            lines.append(f"{split}: {', '.join(counted)}")
    if by := results.best_by:
        others = [name for name in results.dev if name != by]
        instead = f"; --config.best_metric= names another ({', '.join(others)})" if others else ""
        lines.append(f"weights: those of step {results.best_step}, the best by {by}{instead}")
    for split, why in results.splits_without_predictions.items():
        lines.append(f"{split}: no predictions, {why}")
    return lines


def _scores(results: FinetuningResults) -> str:
    title = f"# {results.task}, {results.dev_examples:,} dev examples"
    scoring = f"\n\n{results.scoring}." if results.scoring else ""
    return f"{title}\n\n{_table('score', 'dev', 'trivial baseline', rows=scores(results))}{scoring}"


def _notes(results: FinetuningResults) -> str:
    lines = [
        f"Trained on {results.train_examples:,} examples, {results.steps:,} steps; "
        f"{results.train_seconds:.0f} s."
    ]
    return "  \n".join([*lines, *(f"{line}." for line in map(plain, notes(results)))])


def _confusion(confusion: dict) -> str:
    labels = [str(label) for label in confusion["labels"]]
    rows = [
        (label, *map(str, counts))
        for label, counts in zip(labels, confusion["counts"], strict=True)
    ]
    table = _table("true \\ predicted", *labels, rows=rows)
    return f"## Confusion matrix\n\n{table}"


def _per_class(per_class: dict) -> str:
    rows = [
        (label, *(f"{scores[name]:.3f}" for name in ("precision", "recall", "f1")),
         str(scores["support"]))
        for label, scores in per_class.items()
    ]  # fmt: skip
    table = _table("class", "precision", "recall", "F1", "examples", rows=rows)
    return f"## Each class\n\n{table}"


def _mistakes(mistakes: list[dict]) -> str:
    size = "confidence" if "confidence" in mistakes[0] else "error"
    rows = [
        (f"{m[size]:.3f}", _shown(m["gold"]), _shown(m["predicted"]), _shown(m["text"], 300))
        for m in mistakes
    ]
    table = _table(size, "true", "predicted", "text", rows=rows)
    return f"## Most confident mistakes\n\n{table}"


def _table(*header, rows) -> str:
    return "\n".join(markdown_table([[plain(cell) for cell in row] for row in (header, *rows)]))


def _shown(value, longest=80) -> str:
    """Return a value on one line, cut where it is long."""
    if isinstance(value, (list, tuple)):
        value = " / ".join(map(str, value))
    text = " ".join(str(value).split())
    return text if len(text) <= longest else text[: longest - 3] + "..."


def results_of(task, train, dev, scores, **others) -> FinetuningResults:
    """Return the results of a fine-tuning.

    Args:
      train, dev: examples.
      scores: of dev.
      others: further fields.
    """
    return FinetuningResults(
        task=task.name,
        dev=scores,
        main_metric=task.metrics[0],
        scoring=task.scoring or "",
        baseline=task.baseline(train, dev),
        train_examples=int(sizes_of(train).sum()),
        dev_examples=int(sizes_of(dev).sum()),
        **others,
    )


def model_settings(config, task, results) -> dict:
    """Return what the `model.json` of a fine-tuned model says of its task and its scores."""
    names = ("dev", "baseline", "train_examples", "dev_examples")
    return {
        "labels": list(task.head.get("labels") or []),
        "max_seq_length": config.max_seq_length,
        "task": {"name": task.name, "options": task.settings()},
        "fine_tuning": {name: getattr(results, name) for name in names},
    }


def write_dev(folder, task, examples, predictions, results):
    """Write predictions, scores by example and analysis of dev.

    Args:
      folder: RunFolder.
      examples, predictions: of the dev split.
      results: of the run; gets the names of the files.

    Returns: what `Task.analysis` says of them.
    """
    results.predictions_file = write_predictions(folder, task, "dev", predictions, results)
    example_scores.save(folder.path / "example_scores.npz", task, examples, predictions)
    analysis = task.analysis(examples, predictions)
    if analysis:
        folder.write_json("analysis.json", analysis)
        results.files["analysis"] = str(folder.path / "analysis.json")
    return analysis


def write_predictions(folder, task, split, predictions, results):
    """Write the predictions of a split in the task's own format; return the first file's path."""
    output = folder.predictions / split
    remove(output)
    make_folder(output)
    path = str(task.write(output, predictions)[0])
    results.files[f"{split} predictions"] = path
    return path


def write_report(folder, results, analysis):
    """Write report.md and add it to `results`, which has all scores by now."""
    write_text(folder.path / "report.md", markdown(results, analysis), own=True)
    results.files["report"] = str(folder.path / "report.md")
