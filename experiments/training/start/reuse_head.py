"""The head of the model that fine-tuning starts from: kept, reordered by label, or new.

Fine-tuning a fine-tuned model goes on from its head where it fits the task: the same kind, the same
labels. Otherwise the head is new. Every run says at its start which of the two it is, and why.
"""

import re

from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.options import class_of, names_for
from official_bert.common.errors import first_of

# Transformers' names for labels without names.
_NAMELESS = re.compile(r"LABEL_\d+")


def difference(theirs, ours, bilstm):
    """Say why a model's head does not fit a task; "" where it fits.

    Args:
      theirs: settings of the model's `model.json`, or None.
      ours: `Task.head`.
      bilstm: whether the new model has a BiLSTM below its head.
    """
    kind = (theirs or {}).get("head", "none")
    if kind in ("none", "pretraining"):
        return "the model has none"
    if kind != ours["head"]:
        return f"the model's is for {kind}, the task's for {ours['head']}"
    if bool(theirs.get("bilstm")) != bilstm:
        return f"the model's has {'a' if theirs.get('bilstm') else 'no'} BiLSTM"
    if bool(theirs.get("mean_pooling")) != bool(ours.get("mean_pooling")):
        return f"the model's has {'' if theirs.get('mean_pooling') else 'no '}mean pooling"
    for name in sorted({*theirs, *ours} & {*names_for(FinetuneConfig)}):
        default = getattr(class_of(FinetuneConfig, name)(), name)
        their, our = theirs.get(name, default), ours.get(name, default)
        if their != our:
            return f"the model's {name} is {their}, the one asked for {our}"
    if kind == "classification" and theirs.get("problem", "single_label") != ours["problem"]:
        return f"the model's is {theirs['problem']}, the task's {ours['problem']}"
    if kind in ("classification", "tagging"):
        names, wanted = _labels(theirs), list(ours.get("labels") or [])
        if (names and wanted and set(names) != set(wanted)) or (
            theirs["num_labels"] != ours["num_labels"]
        ):
            return f"the model's labels are {_few(theirs, names)}, the task's {_few(ours, wanted)}"
    return ""


def arrays(theirs, ours, weights):
    """Return the head's arrays with the task's order of labels; the last two are kernel and
    bias."""
    names, wanted = _labels(theirs), list(ours.get("labels") or [])
    if not names or not wanted or names == wanted:
        return weights
    order = [names.index(label) for label in wanted]
    *others, kernel, bias = weights
    return [*others, kernel[:, order], bias[order]]


def sentence(path, why_not):
    """Return the line that a start prints: "head: loaded from PATH" or "head: new, ..."."""
    return f"head: new ({why_not})" if why_not else f"head: loaded from {path}"


def _labels(settings):
    names = [str(name) for name in settings.get("labels") or []]
    return [] if all(map(_NAMELESS.fullmatch, names)) else names


def _few(settings, names):
    return first_of(names, 10) if names else f"{settings['num_labels']} without names"
