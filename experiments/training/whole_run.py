"""A fine-tuning run of what no `Trainer` trains step by step; it leaves no model."""

import importlib.util
import time

from experiments.training import finetune_report
from experiments.training.examples import read_examples, read_others
from official_bert.common.errors import UserError


def run(config, folder, task, examples, learn, head: str) -> dict:
    """Learns, and leaves the files that fine-tuning leaves.

    Args:
      config: FinetuneConfig.
      folder: RunFolder.
      task: Task.
      examples: {split: examples} of what is read already.
      learn: function of training examples -> (function of examples -> predictions, steps).
      head: what the results call it.

    Returns: what results.json holds.
    """
    started = time.perf_counter()
    folder.write_versions(config.seed, {})
    train, dev = (
        examples.get(split) or read_examples(task, split, config) for split in ("train", "dev")
    )
    answer, steps = learn(train)
    train_seconds = time.perf_counter() - started
    predictions = answer(dev)
    results = {
        "task": task.name,
        "dev": task.score(dev, predictions),
        "main_metric": task.metrics[0],
        "baseline": task.baseline(train, dev),
        "head": head,
        "steps": steps,
        "train_examples": len(train),
        "dev_examples": len(dev),
        "train_notes": task.notes.get("train", {}),
        "dev_notes": task.notes.get("dev", {}),
        "train_seconds": round(train_seconds, 2),
        "files": {},
    }
    analysis = finetune_report.write_dev(folder, task, dev, predictions, results)
    others, missing = read_others(task, config, examples)
    if missing:
        results["splits_without_predictions"] = missing
    for split, asked in others.items():
        predictions = answer(asked)
        if split.startswith("dev"):
            results[split] = task.score(asked, predictions)
        finetune_report.write_predictions(folder, task, split, predictions, results)
    finetune_report.write_report(folder, results, analysis)
    results["seconds"] = round(time.perf_counter() - started, 2)
    return folder.finish(results)


def check_scikit_learn(config) -> None:
    """Raises UserError where scikit-learn is missing, which the model of a FinetuneConfig needs."""
    if importlib.util.find_spec("sklearn") is None:
        raise UserError(
            f"--config.model={config.model} needs scikit-learn: pip install 'official-bert[words]'"
        )
