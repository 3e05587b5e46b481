"""Questions about pairs of segments to pre-trained models, without fine-tuning.

A model that learnt next sentence prediction and one that learnt the order of sentences (ALBERT,
Table 5) have the same head, two scores from the pooled output: "these two belong together as they
stand" and "they do not". Both can therefore be asked both questions.
"""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from experiments.tables.planning.ablation import Question
from experiments.training.finetuning import example_scores
from experiments.training.pretraining.zero_shot_probes import opened
from official_bert.common.errors import UserError
from official_bert.objectives import objective

QUESTIONS = ("next_sentence", "sentence_order")


@dataclasses.dataclass(frozen=True)
class Pairs(Question):
    """A question of `QUESTIONS`; the metric is its name and "_accuracy"."""

    question: str = "next_sentence"

    kind, asked_of = "pairs", QUESTIONS

    @property
    def part(self):
        return self.question

    def fields(self, bert):
        return {"question": self.question}


def cell(config: dict, folder: Path) -> dict:
    """Ask a pre-trained model about pairs."""
    question, heldout = config["question"], f"{config['records']}/heldout"
    found = pairs(config["model"], heldout, question, config["max_examples"])
    sums = pair_statistics(found, question)
    example_scores.write(folder / "example_scores.npz", sums)
    correct, label = (
        float(np.average(found[name], weights=found["weight"])) for name in ("correct", "label")
    )
    metric = f"{question}_accuracy"
    return {
        "heldout": {metric: correct},
        "baseline": {metric: max(label, 1 - label)},
        "examples": int(found["weight"].sum()),
    }


def pairs(model, records, question, max_examples=0, batch_size=64):
    """Ask a pre-trained model about the pairs of records.

    Args:
      model: model folder of a pre-training with one of `QUESTIONS` among its objectives.
      records: folder or glob of held-out records for next sentence prediction.
      question: which of `QUESTIONS`: whether B is random, or whether the two were swapped, which
        every other pair is.
      max_examples: how many to use, rounded up to whole batches; 0: all.
      batch_size: examples of a batch, an even number; does not change the result.

    Returns: float64 arrays [examples]: "correct" and "label" (0 or 1), and "weight", 0 for pairs
      that the question is not asked of: the order of segments that do not belong together.
    Raises:
      UserError: the model has no head for pairs, or the records do not fit it.
    """
    from official_bert.backend.compiled import compiled

    loaded, batches = opened(model, records, max_examples, batch_size)
    learnt = [one.name for one in loaded.model.objectives if one.name in QUESTIONS]
    if not learnt:
        raise UserError(f"{model} was pre-trained without an objective of {', '.join(QUESTIONS)}")
    head = getattr(loaded.model, learnt[0])
    asked, either = objective(question), SimpleNamespace(**dict.fromkeys(QUESTIONS, head))

    def answers(batch):
        shown = asked.corrupt(loaded.model, batch, None)
        outputs = asked.call(either, shown, loaded.model.encoder(shown, training=False))
        logits = outputs[f"{question}_logits"]
        return {
            "logits": logits,
            "label": outputs.get(f"{question}_labels", shown["next_sentence_labels"][:, 0]),
            "weight": outputs.get(f"{question}_weights", logits[:, 0] * 0 + 1),
        }

    ask = compiled(loaded.model, answers)
    found = [ask(batch) for batch in batches]
    joined = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
    label, logits = joined["label"], joined["logits"]
    correct = logits.argmax(axis=1) == label
    return {
        name: values.astype(np.float64)
        for name, values in (("correct", correct), ("label", label), ("weight", joined["weight"]))
    }


def pair_statistics(found, question):
    """Return the sums of each record, as `example_scores` keeps them: metric -> (measure,
    [examples, 2]).

    Args:
      found: of `pairs`.
    """
    weight = found["weight"]
    table = np.stack([found["correct"] * weight, weight], axis=1)
    return {f"{question}_accuracy": ("mean", table)}
