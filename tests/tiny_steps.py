"""Small models of every objective and head, with a batch of each: what the steps of training,
evaluation and prediction are compiled of, on any backend and for any device."""

from functools import partial

import numpy as np
import tiny_runs

from experiments.training.finetuning.feature_tagger import FeatureTagger
from official_bert import BertEncoder
from official_bert.heads import BertClassifier, BertMultipleChoice, BertSpan, BertTagger
from official_bert.pretraining import BertPretrainer
from tests import guests

ROWS, LENGTH, PREDICTIONS, CHOICES = 8, 12, 4, 3
IDS = ("input_ids", "input_mask", "segment_ids")


def batch(*shape):
    return {name: np.ones(shape or (ROWS, LENGTH), np.int32) for name in IDS}


def records():
    made = {name: np.ones((ROWS, PREDICTIONS), np.int32) for name in (
        "masked_lm_positions", "masked_lm_ids", "span_starts", "span_ends",
    )}  # fmt: skip
    weights = {"masked_lm_weights": np.ones((ROWS, PREDICTIONS), np.float32)}
    return batch() | made | weights | {"next_sentence_labels": np.ones((ROWS, 1), np.int32)}


def pretrainer(seed, objectives, **fields):
    return BertPretrainer(tiny_runs.bert(**fields), objectives, seed=seed)


def head(seed, kind, *arguments, bert=None, **options):
    encoder = BertEncoder(tiny_runs.bert(**(bert or {})), seed=seed)
    return kind(encoder, *arguments, seed=seed, **options)


def features(seed):
    return FeatureTagger(tiny_runs.bert(), 3, "elmo", width=8, layers=1, seed=seed)


def ones(name, *shape, dtype=np.int32):
    return {name: np.ones(shape, dtype)}


LEFT = {"attention_direction": "left_to_right"}
FRACTION = {"name": "next_token", "fraction": 0.3}
LABELS = ones("label_ids", ROWS)
TAGS = ones("label_ids", ROWS, LENGTH)
CHOSEN = batch(ROWS, CHOICES, LENGTH) | LABELS
# Name -> (function of a seed that builds the model, batch, options of the step).
OWN = {
    "BERT": (partial(pretrainer, objectives=("masked_lm", "next_sentence")), records()),
    "No NSP": (partial(pretrainer, objectives=("masked_lm",)), records()),
    "left to right": (partial(pretrainer, objectives=("next_token",), **LEFT), records()),
    "a third of the tokens": (partial(pretrainer, objectives=(FRACTION,), **LEFT), records()),
    "classification": (partial(head, kind=BertClassifier, num_labels=3), batch() | LABELS),
    "regression": (
        partial(head, kind=BertClassifier, num_labels=1, problem="regression"),
        batch() | ones("label_ids", ROWS, dtype=np.float32),
    ),
    "several labels": (
        partial(head, kind=BertClassifier, num_labels=3, problem="multi_label"),
        batch() | ones("label_ids", ROWS, 3),
    ),
    "BiLSTM": (partial(head, kind=BertClassifier, num_labels=3, bilstm=True), batch() | LABELS),
    "span": (
        partial(head, kind=BertSpan),
        batch() | ones("start_positions", ROWS) | ones("end_positions", ROWS),
    ),
    "multiple choice": (partial(head, kind=BertMultipleChoice), CHOSEN),
    "tagging": (partial(head, kind=BertTagger, num_labels=3), batch() | TAGS),
    "windows": (partial(head, kind=BertClassifier, num_labels=3, windows="mean"), CHOSEN),
    "features": (
        features, batch() | TAGS | ones("features", ROWS, LENGTH, 2, 16, dtype=np.float16),
    ),
}  # fmt: skip
STEPS = {**OWN, **guests.added("steps", "STEPS", {})}
NAMES = guests.names(OWN, STEPS)
PLATFORMS = ("cuda", "tpu", "rocm")  # of JAX
PRECISIONS = ("float32", "mixed_bfloat16")
# Replicas of TensorFlow, side by side.
REPLICAS = ("BERT", "BiLSTM", "span", *guests.added("steps", "REPLICAS", ()))
CUDNN = ("BiLSTM", "features")  # where there is a GPU and no XLA


def table():
    """Markdown of docs/programs.md: which programs tests lower, and for what."""
    platforms, precisions = (", ".join(x) for x in (PLATFORMS, PRECISIONS))
    heads = ["step", f"JAX for {platforms}", "TensorFlow under XLA", "its replicas", "cuDNN"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in STEPS:
        more = ["mixed_bfloat16" * (name in some) for some in (REPLICAS, CUDNN)]
        lines.append(f"| {' | '.join([name, precisions, 'mixed_bfloat16', *more])} |")
    return "\n".join(lines)
