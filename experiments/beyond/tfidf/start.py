"""Words weighted by their rarity and a linear classifier, by scikit-learn: a row without a network.

A gain over this row needs more than knowing which words a text has. Words and pairs of words weigh
the more the fewer texts have them (Salton and Buckley 1988); logistic regression, or ridge
regression for numbers, does the rest. Two texts u and v become [u; v; |u - v|; u * v], as in GLUE's
baselines (Wang et al. 2018, section 5).

A FinetuneConfig asks for it by `model="tfidf"`; its fields about networks do not matter then.
"""

import numpy as np

from experiments.training.finetuning.one_shot_models import OneShotModel
from official_bert.common.errors import UserError

NAME = "tfidf"
_NEVER = -1e9  # the score of a class that no training example has


class Tfidf(OneShotModel):
    """Words and a linear classifier in the place of a network."""

    head, does = "classification", "tells one or two texts apart"
    repeats = False

    def learn(self, config, task, train, logged):
        return learn(task, train), 0

    def planned_flops(self, config, bert, train_examples, dev_examples):
        return 0.0


def learn(task, examples):
    """Fit weights and classifier.

    Args:
      task: SequenceClassification.
      examples: TextExamples to learn from.

    Returns: function of examples -> predictions as `task.predictions` makes them.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    vectorizer.fit(text for example in examples for text in task.texts(example))
    scores = _SCORES[task.problem](
        _features(vectorizer, task, examples), [example.label for example in examples], task.labels
    )

    def answer(asked):
        logits = scores(_features(vectorizer, task, asked))
        return task.predictions(asked, [], {"logits": logits})

    return answer


def _features(vectorizer, task, examples):
    from scipy import sparse

    texts = zip(*(task.texts(example) for example in examples), strict=True)
    first, *second = (vectorizer.transform(side) for side in texts)
    if not second:
        return first
    both = [first, *second, abs(first - second[0]), first.multiply(second[0])]
    return sparse.hstack(both).tocsr()


def _single_label(features, golds, labels):
    from sklearn.linear_model import LogisticRegression

    index = {label: number for number, label in enumerate(labels)}
    known = [index[gold] for gold in golds]
    if len(set(known)) == 1:
        raise UserError(f"all training examples have the label {golds[0]}: nothing to learn")
    model = LogisticRegression(max_iter=1000).fit(features, known)

    def scores(asked):
        found = model.decision_function(asked)
        if found.ndim == 1:  # of the second of two classes, less the first's
            found = np.stack([np.zeros_like(found), found], axis=1)
        logits = np.full((len(found), len(labels)), _NEVER)
        logits[:, model.classes_] = found
        return logits

    return scores


def _multi_label(features, golds, labels):
    answers = [
        _single_label(features, [label in gold for gold in golds], [False, True])
        if 0 < sum(label in gold for gold in golds) < len(golds)
        else None
        for label in labels
    ]

    def scores(asked):
        never = np.full(asked.shape[0], _NEVER)
        return np.stack([never if a is None else a(asked)[:, 1] for a in answers], axis=1)

    return scores


def _regression(features, golds, labels):
    from sklearn.linear_model import Ridge

    return Ridge().fit(features, golds).predict


_SCORES = {
    "single_label": _single_label,
    "multi_label": _multi_label,
    "regression": _regression,
}
