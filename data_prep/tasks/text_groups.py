"""Groups of examples that share text, and splits of examples that divide no group.

Training must not see held-out texts. SST-2's training file holds phrases beside their sentences,
and a pair's text may recur in other pairs. So examples that share a text, or five consecutive words
of one, are kept on one side. (Shorter phrases may occur inside a training text: they tell little of
it.)
"""

import collections

from data_prep.tasks.files.reading import text_hash
from official_bert.common.errors import UserError

_RUN = 5  # consecutive words
# Share of all examples: a larger group (questions that begin alike) stays in training as a whole.
_LARGEST_GROUP = 0.01


def dev_from_train(examples: list, count: int) -> tuple[list, list]:
    """Return (train, dev): `count` examples for dev, the others for training, in order.

    Hashes of their texts decide, so the same file always gives the same dev examples.

    Args:
      examples: with `text_a` and `text_b`, a text or None.
      count: at least 1.

    Raises:
      UserError: so many cannot be held out.
    """
    groups = _groups(examples)
    largest = max(1, int(_LARGEST_GROUP * len(examples)))
    held_out: set[int] = set()
    for group in sorted(groups, key=lambda group: _digest(examples, group)):
        if len(group) <= min(largest, count - len(held_out)):
            held_out.update(group)
    if len(held_out) < count or count == len(examples):
        raise UserError(
            f"dev_from_train={count}: of {len(examples)} training examples at most "
            f"{min(len(held_out), len(examples) - 1)} can be held out without sharing text "
            "with the others"
        )
    train = [example for index, example in enumerate(examples) if index not in held_out]
    return train, [examples[index] for index in sorted(held_out)]


def folds(examples: list, count: int) -> list[int]:
    """Return the part, from 1 to `count`, of each example; hashes of texts decide.

    The parts are of nearly equal size; clusters of `clusters_of_texts` stay together.

    Raises:
      UserError: there are fewer groups of examples that share a text than parts.
    """
    clusters = clusters_of_texts(examples)
    members, sizes, part = collections.Counter(clusters), [0] * count, {}
    if len(members) < count:
        raise UserError(
            f"folds={count}: of {len(examples)} examples those that share a text stay together, "
            f"in {len(members)} groups; at most so many folds can be had"
        )
    for first in sorted(members, key=lambda first: (-members[first], _digest(examples, [first]))):
        part[first] = sizes.index(min(sizes))
        sizes[part[first]] += members[first]
    return [1 + part[cluster] for cluster in clusters]


def clusters_of_texts(examples: list) -> list[int]:
    """Return for each example the index of the first example of its cluster.

    Examples of a cluster share a text or, if they are single texts, five consecutive words (phrases
    of a sentence). For pairs, five words of one text ("What is the best way to") would link ever
    more others.
    """
    cluster = list(range(len(examples)))
    for group in _groups(examples, _whole_texts_of_pairs):
        for index in group:
            cluster[index] = group[0]
    return cluster


def _groups(examples: list, shared=None) -> list[list[int]]:
    """Return groups of examples' indices that belong together, all in file order."""
    shared = shared or _runs
    parent = list(range(len(examples)))

    def first_of(index: int) -> int:
        while parent[index] != index:
            parent[index] = index = parent[parent[index]]
        return index

    owner: dict[tuple[str, ...], int] = {}
    for index, example in enumerate(examples):
        for run in shared(example):
            one, two = first_of(index), first_of(owner.setdefault(run, index))
            parent[max(one, two)] = min(one, two)
    groups = collections.defaultdict(list)
    for index in range(len(examples)):
        groups[first_of(index)].append(index)
    return list(groups.values())


def _runs(example):
    for text in (example.text_a, example.text_b or ""):
        words = text.lower().split()
        for start in range(max(bool(words), len(words) - _RUN + 1)):
            yield tuple(words[start : start + _RUN])


def _whole_texts_of_pairs(example):
    if example.text_b is None:
        return _runs(example)
    return [text.lower() for text in (example.text_a, example.text_b)]


def _digest(examples: list, group: list[int]) -> bytes:
    return text_hash(min(examples[index].text_a.lower() for index in group))
