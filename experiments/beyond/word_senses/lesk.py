"""Simplified Lesk (Kilgarriff and Rosenzweig 2000): the sense whose gloss shares most words with
the context.

    python -m experiments.finetune --config=word_senses --config.data_dir=/usr/share/wordnet \\
        --config.model=lesk --workdir=runs/lesk

Words of scikit-learn's list of English stop words do not count, nor does the word in question; of
glosses that share as many the first is chosen, the most frequent sense.
"""

import itertools
import re

from experiments.beyond.common.baselines import WithoutNetwork
from official_bert.common.errors import UserError

_MARKED = re.compile(r'" [^"]+ "')  # the word in question, in its context


class Lesk(WithoutNetwork):
    """Counts of common words in the place of a network."""

    head, does = "classification", "chooses word senses"
    leaves = "it leaves scores and predictions, no model, and answers the words of dev alone"

    def check_finetuning(self, config, task):
        if task.name != "word_senses":
            raise UserError(f"--config.model=lesk {self.does}; the task is {config.task}")
        return super().check_finetuning(config, task)

    def learn(self, config, task, train, logged):
        return answer, 0


def answer(asked) -> list[dict]:
    """Return the predictions for pairs of a context and a gloss; those of a context follow each
    other."""
    found = []
    for _, pairs in itertools.groupby(asked, key=lambda pair: pair.id.rpartition("/")[0]):
        pairs = list(pairs)
        shared = [
            len(_words(_MARKED.sub(" ", pair.text_a)) & _words(pair.text_b.partition(" : ")[2]))
            for pair in pairs
        ]
        chosen = shared.index(max(shared))
        for place, pair in enumerate(pairs):
            yes = float(place == chosen)
            label = "yes" if yes else "no"
            found.append({"id": pair.id, "label": label, "probabilities": [1 - yes, yes]})
    return found


def _words(text: str) -> set[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return {*re.findall(r"[^\W\d_]+", text.lower())} - ENGLISH_STOP_WORDS
