"""Medications of a visit (G-BERT's task): patients as lists of visits, visits as sets of codes.

A folder holds train.jsonl, dev.jsonl, perhaps test.jsonl, one patient a line,

    {"patient": "7", "visits": [{"diagnoses": ["4019"], "medications": ["C09"]}, ...]}

and ontology.tsv, a code or what stands above codes and its parent a line. Asked are the medications
of each visit but a patient's first; patients of one visit serve pre-training. Medications are the
codes that training patients have as such.
"""

import collections
import dataclasses
import functools

import numpy as np

from data_prep.tasks.files import reading
from data_prep.tasks.task import Task, find_file, head_of
from official_bert.common.errors import UserError
from official_bert.common.json_files import field, list_of, shorten

KINDS = ("diagnoses", "medications")
_OF_SETS = ("f1", "jaccard", "pr_auc")
_MOST_LEVELS = 64  # of an ontology


@dataclasses.dataclass(frozen=True)
class Patient:
    """`visits`: (diagnoses, medications), sorted codes, in the order of time."""

    id: str
    visits: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


class Visits(Task):
    """Patients in, medications of every visit but the first out."""

    name = "visits"
    metrics = (*_OF_SETS, "unseen_f1")
    scoring = (
        "each visit by itself, then means of a patient's visits, then of patients; unseen_f1: of "
        "visits with a new illness in codes that training has not"
    )
    threshold = 0.3
    also_read = ("ontology.tsv",)

    def __init__(self, data_dir: str = ""):
        super().__init__(data_dir)
        self._medications: list[str] = []

    @property
    def head(self):
        return head_of("medications", self.medications, "multi_label")

    def settings(self):
        return {}

    @property
    def medications(self) -> list[str]:
        """The codes that are told apart."""
        if not self._medications:
            patients = self.examples("train")
            self._medications = sorted({m for p in patients for _, ms in p.visits for m in ms})
        return self._medications

    @functools.cached_property
    def diagnoses(self) -> frozenset[str]:
        """The codes of diagnoses that training patients have."""
        return frozenset(d for p in self.examples("train") for ds, _ in p.visits for d in ds)

    @functools.cached_property
    def parents(self) -> dict[str, str]:
        """The `ontology`, read once."""
        return self.ontology()

    def ontology(self) -> dict[str, str]:
        """Return {code or what is above codes: its parent, "" at a root}; what is a parent comes in
        too.

        Raises:
          UserError: a line has no two columns, a code has two parents, is above itself, or has more
            levels above it than any ontology.
        """
        path, parents = find_file(self.data_dir, ["ontology.tsv"], "ontology"), {}
        for number, line in reading.read_lines(path):
            if not line.strip():
                continue
            code, *rest = line.split("\t")
            if len(rest) != 1 or not code or parents.get(code, rest[0]) != rest[0]:
                raise UserError(f"{path} line {number}: expected a code, a tab, its one parent")
            parents[code] = rest[0]
        parents |= {above: "" for above in [*parents.values()] if above and above not in parents}
        for code in parents:
            above = code
            for _ in range(_MOST_LEVELS):
                above = above and parents[above]
            if above:
                told = f"is above itself, or below more than {_MOST_LEVELS} others"
                raise UserError(f"{path}: {code} {told}")
        return parents

    def _read_split(self, split):
        path, found = find_file(self.data_dir, [f"{split}.jsonl"], f"the {split} split"), {}
        parents, kind_of = self.parents, {}
        if split != "train":
            for kind, codes in zip(KINDS, (self.diagnoses, self.medications), strict=True):
                kind_of |= dict.fromkeys(codes, kind)
        for number, row in reading.json_lines(reading.Lines(path)):
            if row is None:
                continue
            where = f"{path} line {number}"
            name = str(field(row, "patient", (str, int), where))
            visits = [
                tuple(tuple(sorted({*list_of(v, kind, str, where)})) for kind in KINDS)
                for v in list_of(row, "visits", dict, where)
            ]
            for kind, codes in ((k, sets[i]) for sets in visits for i, k in enumerate(KINDS)):
                _check_codes(codes, kind, parents, kind_of, where)
            if name in found:
                raise UserError(f"{where}: patient {name} is there twice; all visits are one line")
            found[name] = Patient(name, tuple(visits))
        found = list(found.values())
        if split == "train":
            if not any(visit[1] for patient in found for visit in patient.visits[1:]):
                told = "no patient has a second visit with a medication"
                raise UserError(f"{path}: {told}; there is nothing to learn")
            return found
        asked = [patient for patient in found if len(patient.visits) > 1]
        self.notes[split] = {"patients of one visit, not asked about": len(found) - len(asked)}
        if known := {p.id for p in asked} & {p.id for p in self.examples("train")}:
            self.notes[split]["patients that train.jsonl has too"] = len(known)
        return asked

    def features(self, example, tokenizer, max_seq_length):
        raise UserError("task visits has codes, no texts: it is for --config.model=gbert alone")

    def predictions(self, examples, features, outputs):
        """Return one dictionary a patient: "visits", for each but the first the "medications" and
        the "probabilities" of all, from `outputs["logits"]`, a row a visit that is asked for."""
        probabilities = iter(1 / (1 + np.exp(-np.asarray(outputs["logits"], np.float64))))
        return [
            {"id": patient.id, "visits": [self._answer(next(probabilities)) for _ in visits]}
            for patient, visits in ((patient, patient.visits[1:]) for patient in examples)
        ]

    def _answer(self, row):
        chosen = np.flatnonzero(row >= self.threshold)
        return {
            "medications": [self.medications[i] for i in chosen],
            "probabilities": [float(p) for p in row],
        }

    def score(self, examples, predictions):
        """Return means over patients of their means over visits: F1, Jaccard, average precision;
        and the F1 of those with `begins_unseen`, where there are any."""
        each, unseen = [], []
        for patient, prediction in zip(examples, predictions, strict=True):
            gold = [set(medications) for _, medications in patient.visits[1:]]
            found = zip(gold, prediction["visits"], strict=True)
            scores = [set_scores(truth, v, self.medications) for truth, v in found]
            each.append(np.mean([[one[name] for name in _OF_SETS] for one in scores], axis=0))
            begins = begins_unseen(patient, self.diagnoses, self.parents)[1:]
            if any(begins):
                unseen.append(np.mean([s["f1"] for s, b in zip(scores, begins, strict=True) if b]))
        means = dict(zip(_OF_SETS, map(float, np.mean(each, axis=0)), strict=True))
        return means | ({"unseen_f1": float(np.mean(unseen))} if unseen else {})

    def is_labelled(self, examples):
        """Return whether every visit that is asked for has medications."""
        return all(given for patient in examples for _, given in patient.visits[1:])

    def baseline(self, train_examples, examples):
        """Score an answer that is the same for every visit: what more than the threshold of the
        training visits have."""
        visits = [visit for patient in train_examples for visit in patient.visits]
        counts = collections.Counter(m for _, medications in visits for m in medications)
        answer = self._answer(np.array([counts[m] / len(visits) for m in self.medications]))
        everyone = [{"visits": [answer] * len(patient.visits[1:])} for patient in examples]
        return self.score(examples, everyone)


def _check_codes(codes, kind: str, parents, kind_of: dict[str, str], where: str) -> None:
    """Check that the ontology has a set's codes, and that none was of the other kind so far."""
    for code in codes:
        if code not in parents:
            raise UserError(f"{where}: {shorten(code)} is not in ontology.tsv")
        if (other := kind_of.setdefault(code, kind)) != kind:
            told = f"{shorten(code)} is among {kind}, and was among {other} before"
            raise UserError(f"{where}: {told}; give one of the two another code")


def begins_unseen(patient: Patient, trained, parents: dict[str, str]) -> list[bool]:
    """Return of each visit whether it has a category that no visit before has, by codes alone that
    training has not; training has other codes of the category.

    Args:
      trained: the diagnoses of training patients.
    """
    taught, before, found = {parents[code] for code in trained} - {""}, set(), []
    for diagnoses, _ in patient.visits:
        now = {parents[code] for code in diagnoses}
        known = {parents[code] for code in diagnoses if code in trained}
        found.append(bool((now & taught) - known - before))
        before |= now
    return found


def set_scores(gold: set, found: dict, labels: list[str]) -> dict[str, float]:
    """Return f1, jaccard and pr_auc (average precision) of one set; 1 where there is nothing to
    find and nothing is found.

    Args:
      found: {"medications": those that are chosen, "probabilities": of all `labels`}.
    """
    from sklearn.metrics import average_precision_score

    chosen = set(found["medications"])
    hits, either = len(gold & chosen), len(gold | chosen)
    truth = [label in gold for label in labels]
    precision = average_precision_score(truth, found["probabilities"]) if any(truth) else 1.0
    f1 = 2 * hits / (len(gold) + len(chosen)) if either else 1.0
    scores = {"f1": f1, "jaccard": hits / either if either else 1.0, "pr_auc": precision}
    return {name: float(score) for name, score in scores.items()}
