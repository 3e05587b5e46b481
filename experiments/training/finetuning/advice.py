"""Advice at the end of a fine-tuning that learnt little: its symptoms, and settings to try."""

from experiments.training.folder.run_results import FinetuningResults
from official_bert.common.errors import first_of

_MOST_NAMED = 5
_FEW_STEPS, _SMALL_BATCH = 50, 8


def of(config, task, results: FinetuningResults, analysis: dict) -> list[str]:
    """Return the sentences of advice; none for a run that is better than guessing.

    Args:
      config: FinetuneConfig.
      task: of `get_task`.
      results: of the run.
      analysis: what `Task.analysis` returned; its parts may be missing.
    """
    found = [*_guesses(results, task.baseline_is), *_never(analysis)]
    trials = _trials(config, task, results.steps)
    return [*found, f"try: {'; '.join(trials)}"] if found else []


def _guesses(results: FinetuningResults, baseline_is: str) -> list[str]:
    name, dev, baseline = results.main_metric, results.dev, results.baseline
    # Balanced class weights give up accuracy for macro F1: one score above guessing is enough.
    known = [one for one in (name, "macro_f1") if one in dev and one in baseline]
    if name not in known or any(_is_above(dev[one], baseline[one]) for one in known):
        return []
    score, trivial = dev[name], baseline[name]
    beside = "below" if score < trivial else "no better than"
    return [f"dev {name} {score:.4f} is {beside} the baseline ({trivial:.4f}) that {baseline_is}"]


def _is_above(score: float, trivial: float) -> bool:
    """Return whether a score is above a trivial one by a hundredth, or a tenth of the gain left."""
    return score >= 1 or score - trivial >= min(0.01, (1 - trivial) / 10)


def _never(analysis: dict) -> list[str]:
    """Return the classes that dev has and no prediction names."""
    if confusion := analysis.get("confusion"):
        labels, counts = confusion["labels"], confusion["counts"]
        predicted = [sum(row[i] for row in counts) for i in range(len(labels))]
        here = zip(labels, map(sum, counts), predicted, strict=True)
    else:  # several labels a text: a class with recall 0
        per_class = analysis.get("per_class") or {}
        here = ((label, s["support"], s["recall"]) for label, s in per_class.items())
    never = [f"{label} ({support})" for label, support, found in here if support and not found]
    if not never:
        return []
    return [f"never predicted (examples in dev): {first_of(never, _MOST_NAMED)}"]


def _trials(config, task, steps: int) -> list[str]:
    rate, epochs = config.learning_rate, config.num_train_epochs
    trials, batch = [], config.train_batch_size
    if not config.bias_correction:
        trials.append(
            "--config.bias_correction=true (without it Adam's first steps are some three times "
            "larger, which small data seldom survive)"
        )
    if steps < _FEW_STEPS and batch > _SMALL_BATCH:
        trials.append(f"--config.train_batch_size={_SMALL_BATCH}, since {batch} gave {steps} steps")
    trials.append(f"--config.learning_rate={rate / 3:.1g} or ={rate * 3:.1g}, in place of {rate:g}")
    trials.append(f"--config.num_train_epochs={2 * epochs:g}, in place of {epochs:g}")
    one_class = task.head["head"] == "classification" and task.head["problem"] == "single_label"
    if one_class and not config.class_weights:
        trials.append("--config.class_weights=balanced, where rare classes count as the others")
    return trials
