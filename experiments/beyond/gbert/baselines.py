"""Answers to G-BERT's task without a network, as the first that a reader would try.

`model="gbert-last-visit"` gives the medications of the visit before. `model="gbert-linear"` asks a
logistic regression for each medication, of scikit-learn with its default settings: it reads the
diagnoses of this visit, and of all visits before it the share that had each diagnosis and each
medication. `model="gbert-linear-medications"` reads those medications alone, and
`model="gbert-linear-categories"` beside each diagnosis all that is above it in the ontology.
"""

import numpy as np

from experiments.beyond.common.baselines import WithoutNetwork

_CERTAIN = 20.0  # the logit of a medication that is given, or is not


class VisitBaseline(WithoutNetwork):
    """The last visit's medications, or a linear model."""

    head, does = "medications", "reads visits"

    def learn(self, config, task, train, logged):
        if config.model == "gbert-last-visit":
            return lambda asked: task.predictions(asked, [], {"logits": last_visit(task, asked)}), 0
        logits = linear(task, train, config.model.removeprefix("gbert-linear").lstrip("-"))
        return lambda asked: task.predictions(asked, [], {"logits": logits(asked)}), 0


def last_visit(task, patients) -> np.ndarray:
    """Return logits [visits asked for, medications], high for those of the visit before."""
    before = [given for p in patients for _, given in p.visits[:-1]]
    return _CERTAIN * (2 * _shares([[given] for given in before], task.medications) - 1)


def linear(task, train, reads: str = ""):
    """Fit the regressions on all training visits but a patient's first.

    Args:
      reads: "" for both kinds of codes, "medications" for these alone, "categories" for both and
        what is above diagnoses.

    Returns: function of patients -> logits [visits asked for, medications].
    """
    from sklearn.linear_model import LogisticRegression

    parents = task.parents if reads == "categories" else {}

    def read(diagnoses) -> set[str]:
        found, queue = set(), [*diagnoses]
        while queue:
            if (code := queue.pop()) and code not in found:
                found.add(code)
                queue.append(parents.get(code, ""))
        return found

    known = sorted({code for p in train for ds, _ in p.visits for code in read(ds)})

    def features(patients):
        asked = [(p.visits[:i], p.visits[i]) for p in patients for i in range(1, len(p.visits))]
        parts = [_shares([[ms for _, ms in before] for before, _ in asked], task.medications)]
        if reads != "medications":
            parts.append(_shares([[read(ds) for ds, _ in before] for before, _ in asked], known))
            parts.append(_shares([[read(now)] for _, (now, _) in asked], known))
        return np.concatenate(parts, axis=1)

    seen = features(train)
    given = [[ms] for p in train for _, ms in p.visits[1:]]
    labels = _shares(given, task.medications).T  # [medications, visits]
    models = [
        LogisticRegression(max_iter=1000).fit(seen, of) if 0 < of.sum() < len(of) else None
        for of in labels
    ]

    def logits(patients):
        asked = features(patients)
        always = [_CERTAIN * (2 * of[0] - 1) * np.ones(len(asked)) for of in labels]
        found = [
            m.decision_function(asked) if m else a for m, a in zip(models, always, strict=True)
        ]
        return np.stack(found, axis=1)

    return logits


def _shares(visits: list, codes: list[str]) -> np.ndarray:
    """Return float64 [rows, codes]: of several visits' sets of codes a row, the share with each.

    Codes that are not listed do not count.
    """
    place = {code: i for i, code in enumerate(codes)}
    found = np.zeros((len(visits), len(codes)))
    for row, sets in zip(found, visits, strict=True):
        for one in sets:
            np.add.at(row, [place[code] for code in one if code in place], 1 / len(sets))
    return found
