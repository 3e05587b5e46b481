"""The results of runs and of a table's other cells, as results.json holds them."""

import dataclasses
from typing import Any

from experiments.training.folder.dataclass_json import of_json, optional, rest


@dataclasses.dataclass(kw_only=True)
class CellResults:
    """The results of any cell of a table.

    Attributes:
      seconds: of all its processes together.
      ended: when it ended, in seconds since 1970.
      main_metric: the one of `scores` that counts, where a task names it.
      more: JSON values of names that are no field's: the facts of a cell that has no class of its
        own, or what `Options` of an extension add to a run's.
    """

    seconds: float = 0.0
    ended: float = 0.0
    main_metric: str = optional("")
    more: dict[str, Any] = rest()

    @property
    def scores(self) -> dict[str, float]:
        """Return the scores by which a table judges: metric -> value."""
        return {}


@dataclasses.dataclass(kw_only=True)
class HeldoutResults(CellResults):
    """Scores of a pre-trained model on held-out records.

    Attributes:
      heldout: metric -> value.
      baseline: the same of a model that knows word frequencies alone, as far as it has them.
      examples: number of rows: of training in a pre-training's results, else of the held-out ones.
    """

    heldout: dict[str, float]
    baseline: dict[str, float]
    examples: int

    @property
    def scores(self) -> dict[str, float]:
        return self.heldout


@dataclasses.dataclass(kw_only=True)
class PretrainingResults(HeldoutResults):
    """The results of a pre-training.

    Attributes:
      steps, tokens: taken and read.
      train_seconds: of the steps alone.
      heldout: of the last phase.
      curve: losses and held-out metrics by step (`heldout.learning_curve`).
      best_step: the step with the best held-out loss.
      parameters: number of trained parameters.
      records: a description of each phase's records; none in results of earlier versions.
      model: path of the model folder; "" in an archive.
    """

    steps: int
    tokens: int
    train_seconds: float
    curve: list[dict]
    best_step: int = optional(-1)
    parameters: int
    records: list = optional(default_factory=list)
    model: str = optional("")


@dataclasses.dataclass(kw_only=True)
class FinetuningResults(CellResults):
    """The results of a fine-tuning. Earlier versions wrote none of the optional ones but `advice`.

    Attributes:
      dev: metric -> score on dev; `dev_before_tuning`: without the thresholds chosen on dev.
      baseline: metric -> score of the task's trivial baseline.
      scoring: a remark on how the task is scored.
      steps: planned; `stopped_early_after`: taken, where these are fewer.
      dev_mismatched, test: metric -> score on further splits, where these have labels.
      head: the sentence that says which head was trained.
      best_step: the step whose weights were kept; `best_by`: the metric that chose it.
      train_notes, dev_notes: name -> number of examples that were cut, left out, ...
      trained_examples, trained_tokens: read, repeated ones counted again.
      train_seconds: of the steps alone.
      predictions_file: path of the predictions on dev.
      files: name -> path of what else the run left.
      splits_without_predictions: split -> why it has none.
      advice: sentences for a run that learnt little.
    """

    task: str
    dev: dict[str, float]
    main_metric: str
    baseline: dict[str, float]
    scoring: str = optional("")
    train_examples: int
    dev_examples: int
    steps: int
    stopped_early_after: int | None = optional()
    dev_before_tuning: dict[str, float] = optional(default_factory=dict)
    dev_mismatched: dict[str, float] = optional(default_factory=dict)
    test: dict[str, float] = optional(default_factory=dict)
    head: str = optional("")
    best_step: int | None = optional()
    best_by: str = optional("")
    train_notes: dict = optional(default_factory=dict)
    dev_notes: dict = optional(default_factory=dict)
    trained_examples: int | None = optional()
    trained_tokens: int | None = optional()
    train_seconds: float | None = optional()
    predictions_file: str = optional("")
    files: dict[str, str] = optional(default_factory=dict)
    splits_without_predictions: dict[str, str] = optional(default_factory=dict)
    advice: list[str] = optional(default_factory=list)

    @property
    def scores(self) -> dict[str, float]:
        return self.dev

    def set_scores(self, split: str, scores: dict[str, float]) -> None:
        """Keep the scores on a split beside dev, under its name."""
        if split in ("dev_mismatched", "test"):
            setattr(self, split, scores)
        else:
            self.more[split] = scores


_OF_KINDS = {"pretrain": PretrainingResults, "finetune": FinetuningResults}


def of_cell(kind: str, values: dict, where: str) -> CellResults:
    """Return the results of a table's cell from its JSON values.

    Args:
      kind: of the cell.
      where: begins the message of an error.

    Raises:
      UserError: a field is missing or of another type.
    """
    others = HeldoutResults if "heldout" in values else CellResults
    return of_json(_OF_KINDS.get(kind, others), values, where)
