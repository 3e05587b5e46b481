"""Words weighted by their rarity and a linear classifier, by scikit-learn: a row without a network.

A gain over this row needs more than knowing which words a text has. Words and pairs of words weigh
the more the fewer texts have them (Salton and Buckley 1988); logistic regression, or ridge
regression for numbers, does the rest. Two texts u and v become [u; v; |u - v|; u * v], as in GLUE's
baselines (Wang et al. 2018, section 5).

A FinetuneConfig asks for it by `model="tfidf"`; its fields about networks do not matter then.
"""

import numpy as np

from experiments.beyond.common.baselines import UNSAVED, WithoutNetwork
from experiments.beyond.common.text_scores import TextScorer, TextScores
from official_bert.common.errors import UserError

NAME = "tfidf"
_NEVER = -1e9  # the score of a class that no training example has


class Tfidf(WithoutNetwork):
    """Words and a linear classifier in the place of a network."""

    head, does = "classification", "tells one or two texts apart"
    leaves = UNSAVED

    def learn(self, config, task, train, logged):
        return learn(task, train), 0


def learn(task, examples):
    """Fit weights and classifier.

    Args:
      task: SequenceClassification.
      examples: TextExamples to learn from.

    Returns: `Answers`, a function of examples -> predictions as `task.predictions` makes them.
    """
    vectorizer = _vectorizer()
    vectorizer.fit(text for example in examples for text in task.texts(example))
    read = _features(vectorizer, _columns(task, examples))
    golds = [example.label for example in examples]
    weights, bias = _LEARN[task.problem](read, golds, task.labels)
    fields = {"problem": task.problem, "pairs": len(task.texts(examples[0])) == 2}
    return Answers(task, WordWeights(fields, vectorizer, weights, bias))


class WordWeights(TextScorer):
    """Weighted words, and the linear classifier that reads them.

    Args:
      weights: float64 [classes, features]; regression has one row.
      bias: float64 [classes].
    """

    def __init__(self, fields, vectorizer, weights, bias):
        self.fields, self._vectorizer, self._weights, self._bias = fields, vectorizer, weights, bias
        self.words = vectorizer.get_feature_names_out().tolist()
        self.arrays = {"idf": vectorizer.idf_, "weights": weights, "bias": bias}

    def __call__(self, columns):
        return _features(self._vectorizer, columns) @ self._weights.T + self._bias


class Answers:
    """The answers of `WordWeights` to a task's examples."""

    def __init__(self, task, scorer):
        self._task, self.scorer = task, scorer

    def __call__(self, asked):
        logits = self.scorer(_columns(self._task, asked))
        return self._task.predictions(asked, [], {"logits": logits})

    def save(self, folder, settings):
        HEAD.save(folder, self.scorer, settings)


def rebuilt(settings, words, arrays) -> WordWeights:
    """Return the `WordWeights` of a model folder; ValueError where its parts do not fit."""
    vectorizer = _vectorizer(vocabulary=words)
    vectorizer.idf_ = arrays["idf"]
    weights, bias = arrays["weights"], arrays["bias"]
    classes = len(settings["labels"]) or 1
    features = len(words) * (4 if settings["pairs"] else 1)
    if weights.shape != (classes, features) or bias.shape != (classes,):
        raise ValueError(f"weights are {weights.shape}, expected {(classes, features)}")
    return WordWeights({}, vectorizer, weights, bias)


def _vectorizer(**options):
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, **options)


def _columns(task, examples) -> list[list[str]]:
    return [list(texts) for texts in zip(*map(task.texts, examples), strict=True)]


def _features(vectorizer, columns):
    from scipy import sparse

    first, *second = map(vectorizer.transform, columns)
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
    weights, bias = np.zeros((len(labels), features.shape[1])), np.full(len(labels), _NEVER)
    found = model.coef_, model.intercept_
    if len(model.classes_) == 2:  # of the second of two classes, less the first's
        found = [np.concatenate([np.zeros_like(x), x]) for x in found]
    weights[model.classes_], bias[model.classes_] = found
    return weights, bias


def _multi_label(features, golds, labels):
    weights, bias = np.zeros((len(labels), features.shape[1])), np.full(len(labels), _NEVER)
    for number, label in enumerate(labels):
        has = [label in gold for gold in golds]
        if 0 < sum(has) < len(has):
            found = _single_label(features, has, [False, True])
            weights[number], bias[number] = found[0][1], found[1][1]
    return weights, bias


def _regression(features, golds, labels):
    from sklearn.linear_model import Ridge

    model = Ridge().fit(features, golds)
    return model.coef_.reshape(1, -1), np.reshape(model.intercept_, (1,))


HEAD = TextScores(NAME, "experiments.beyond.tfidf.start:rebuilt")
_LEARN = {
    "single_label": _single_label,
    "multi_label": _multi_label,
    "regression": _regression,
}
