"""A kind of start that needs no network: every text gets the label that most have."""

import contextlib
from collections import Counter

import numpy as np

from experiments.training.finetuning.one_shot_models import OneShotModel
from official_bert import extension
from official_bert.extension import Extension

NAME = "majority"


class Majority(OneShotModel):
    """The most frequent label of the training examples."""

    head, does = "classification", "tells texts apart"
    repeats = False

    def learn(self, config, task, train, logged):
        counts = Counter(example.label for example in train)
        logits = np.array([[float(counts[label]) for label in task.labels]])

        def answer(asked):
            return task.predictions(asked, [], {"logits": logits.repeat(len(asked), axis=0)})

        return answer, 0


@contextlib.contextmanager
def registered():
    """Add it to the extensions that are here."""
    known = extension._manifest
    one = Extension("majority", starts={NAME: f"{__name__}:Majority"})
    extension._manifest = lambda: (*known(), one)
    extension.extensions.cache_clear()
    try:
        yield
    finally:
        extension._manifest = known
        extension.extensions.cache_clear()
