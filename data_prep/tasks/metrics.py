"""The scores of section 4, from scikit-learn, scipy and seqeval, from 0 (or -1) to 1.

The libraries are imported on first use, since scikit-learn alone takes a second.
"""

import numpy as np


def classification_scores(gold: list, predicted: list, labels: list) -> dict[str, float]:
    """Return accuracy, f1, macro_f1 and matthews.

    `f1` is only for two labels, of which the second is the positive one. A class that is never
    predicted has precision and F1 zero; one that is neither in `gold` nor predicted has no F1 and
    does not count in the mean.
    """
    from sklearn import metrics

    scores = {
        "accuracy": metrics.accuracy_score(gold, predicted),
        "macro_f1": metrics.f1_score(gold, predicted, average="macro", zero_division=0),
        "matthews": _matthews(gold, predicted),
    }
    if len(labels) == 2:
        scores["f1"] = metrics.f1_score(
            gold, predicted, labels=labels, pos_label=labels[1], average="binary", zero_division=0
        )
    return _floats(scores)


def regression_scores(gold: list[float], predicted: list[float]) -> dict[str, float]:
    """Return pearson, spearman (0 where one side is constant) and mean_squared_error."""
    from scipy import stats

    gold, predicted = np.asarray(gold, np.float64), np.asarray(predicted, np.float64)
    constant = len(gold) < 2 or np.ptp(gold) == 0 or np.ptp(predicted) == 0
    return _floats(
        {
            "pearson": 0.0 if constant else stats.pearsonr(gold, predicted).statistic,
            "spearman": 0.0 if constant else stats.spearmanr(gold, predicted).statistic,
            "mean_squared_error": np.mean((gold - predicted) ** 2),
        }
    )


def multi_label_scores(gold: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return micro_f1, macro_f1 and exact_match of two 0/1 arrays [examples, labels].

    A label that neither an example nor a prediction has does not count in macro_f1.
    """
    from sklearn import metrics

    columns = np.flatnonzero(np.any(gold, axis=0) | np.any(predicted, axis=0))
    if not len(columns):  # no label in any example or prediction
        return {"micro_f1": 0.0, "macro_f1": 0.0, "exact_match": 1.0}
    padded = _padded(gold), _padded(predicted)

    def f1(average):
        return metrics.f1_score(*padded, labels=columns, average=average, zero_division=0)

    return _floats(
        {
            "micro_f1": f1("micro"),
            "macro_f1": f1("macro"),
            "exact_match": np.mean(np.all(gold == predicted, axis=1)),
        }
    )


def ranking_scores(gold: np.ndarray, ranked: np.ndarray, ks=(1, 5)) -> dict[str, float]:
    """Return precision_at_K, recall_at_K and f1_at_K of the K likeliest labels of each example.

    They are counted over all examples (Lee and Hsiang 2020, "PatentBERT").

    Args:
      gold: 0/1 [examples, labels].
      ranked: [examples, labels], numbers that are higher for likelier labels.
      ks: values of K; only those below the number of labels count.
    """
    order, scores = np.argsort(-ranked, axis=1, kind="stable"), {}
    for k in (k for k in ks if k < gold.shape[1]):
        hits, given = np.take_along_axis(gold, order[:, :k], axis=1).sum(), k * len(gold)
        scores[f"precision_at_{k}"] = hits / given
        scores[f"recall_at_{k}"] = hits / max(1, gold.sum())
        scores[f"f1_at_{k}"] = 2 * hits / (given + gold.sum())  # the harmonic mean of both
    return _floats(scores)


def entity_scores(gold: list[list[str]], predicted: list[list[str]]) -> dict[str, float]:
    """Return f1, precision and recall of entities (micro), and accuracy of tokens, from IOB tags.

    seqeval's default mode reads tags as conlleval does: an I- after O or after another type begins
    an entity too.
    """
    import warnings

    from seqeval import metrics

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no entity predicted: the scores of 0 say so
        return _floats(
            {
                "f1": metrics.f1_score(gold, predicted, zero_division=0),
                "precision": metrics.precision_score(gold, predicted, zero_division=0),
                "recall": metrics.recall_score(gold, predicted, zero_division=0),
                "accuracy": metrics.accuracy_score(gold, predicted),
            }
        )


def tag_accuracy(gold: list[list[str]], predicted: list[list[str]]) -> float:
    """Return the share of words with the right tag."""
    right = [
        truth == answer
        for tags, answers in zip(gold, predicted, strict=True)
        for truth, answer in zip(tags, answers, strict=True)
    ]
    return float(np.mean(right))


def entity_per_class(gold, predicted) -> dict[str, dict[str, float]]:
    """Return {entity type: {"precision", "recall", "f1", "support"}} of IOB tag sequences."""
    import warnings

    from seqeval import metrics

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = metrics.classification_report(gold, predicted, output_dict=True, zero_division=0)
    return {
        kind: _of_class(*(values[n] for n in ("precision", "recall", "f1-score", "support")))
        for kind, values in report.items()
        if not kind.endswith(" avg")
    }


def confusion(gold: list, predicted: list, labels: list) -> dict:
    """Return {"labels", "counts"}; counts have a row for each gold label, a column for each
    predicted."""
    from sklearn import metrics

    counts = metrics.confusion_matrix(gold, predicted, labels=labels)
    return {"labels": [str(label) for label in labels], "counts": counts.tolist()}


def per_class(gold, predicted, labels: list) -> dict[str, dict[str, float]]:
    """Return {label: {"precision", "recall", "f1", "support"}}.

    For multi-label, `gold` and `predicted` are 0/1 arrays.
    """
    from sklearn import metrics

    which = labels
    if isinstance(gold, np.ndarray) and gold.ndim == 2:
        gold, predicted, which = _padded(gold), _padded(predicted), range(len(labels))
    values = metrics.precision_recall_fscore_support(
        gold, predicted, labels=list(which), zero_division=0
    )
    return {str(label): _of_class(*found) for label, *found in zip(labels, *values, strict=True)}


def _of_class(precision, recall, f1, support) -> dict[str, float]:
    scores = {"precision": precision, "recall": recall, "f1": f1}
    return {**_floats(scores), "support": int(support)}


def _padded(columns: np.ndarray) -> np.ndarray:
    """Add an empty column, since scikit-learn reads a single column as a task of two classes."""
    return np.pad(columns, ((0, 0), (0, 1)))


def _matthews(gold: list, predicted: list) -> float:
    from sklearn import metrics

    # With one class on either side the denominator is 0; the coefficient is taken as 0.
    if len(set(gold)) < 2 or len(set(predicted)) < 2:
        return 0.0
    return metrics.matthews_corrcoef(gold, predicted)


def _floats(scores: dict) -> dict[str, float]:
    return {name: float(value) for name, value in scores.items()}


def classification_sums(golds, predicted, positive: str | None) -> dict:
    """Return accuracy, and of two classes MCC and F1, as `Task.statistics` has them.

    Args:
      golds, predicted: labels as texts.
      positive: the second of two labels; None where there are more.
    """
    golds, predicted = np.array(golds), np.array(predicted)
    right = (golds == predicted).astype(np.float64)
    found = {"accuracy": ("mean", np.stack([right, np.ones(len(right))], axis=1))}
    if positive is not None:
        g, p = golds == positive, predicted == positive
        table = np.stack([g & p, ~g & ~p, ~g & p, g & ~p], axis=1).astype(np.float64)
        found |= {"matthews": ("matthews", table), "f1": ("f1", table[:, [0, 2, 3]])}
    return found


def correlation_sums(golds, predicted) -> dict:
    """Return both correlations of float64 [examples], in the form of `Task.statistics`."""
    from scipy.stats import rankdata

    def sums(x, y):
        # Centred values keep the digits of the sums.
        x, y = x - x.mean(), y - y.mean()
        return np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1)

    return {
        "pearson": ("pearson", sums(golds, predicted)),
        # Ranks are among all examples, not drawn anew: near enough for an interval.
        "spearman": ("pearson", sums(rankdata(golds), rankdata(predicted))),
    }
