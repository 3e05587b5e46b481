"""A dev split out of the training file, for tasks whose own is too small to tell models apart.

What is held out must not be known from training. SST-2's training file holds phrases beside the
sentences that they stand in, and a pair's text may come back in other pairs. So examples that
share a text, or five words in a row of one, are kept on one side. (Phrases of fewer words may stand
inside a training text: they say little of it.)
"""

import collections
import hashlib

from official_bert.common.errors import UserError

_RUN = 5  # words in a row
# Of all examples: a larger group (questions that begin alike) stays in training as a whole.
_LARGEST_GROUP = 0.01


def split(examples: list, count: int) -> tuple[list, list]:
    """(training, dev): `count` examples for dev, both in the order given.

    Which ones is decided by hashes of their texts: always the same for the same file.

    Args:
      examples: with `text_a` and `text_b`, a text or None.
      count: at least 1.

    Raises:
      UserError: so many cannot be had.
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


def clusters(examples: list) -> list[int]:
    """For each example the first one that it belongs together with: they share a text, or, single
    texts, five words in a row (phrases of a sentence). Pairs that share five words of one of their
    texts ("What is the best way to") would be linked to ever more others.
    """
    cluster = list(range(len(examples)))
    for group in _groups(examples, _whole_texts_of_pairs):
        for index in group:
            cluster[index] = group[0]
    return cluster


def _groups(examples: list, shared=None) -> list[list[int]]:
    """The indices of examples that belong together, each group and all of them in file order."""
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
    text = min(examples[index].text_a.lower() for index in group)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
