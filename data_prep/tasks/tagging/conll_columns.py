"""Columns of tags in CoNLL-2003's files: parts of speech, chunks and entities.

Entities and chunks are phrases of one or more words, written as IOB tags. A phrase counts if its
words and its kind are right, as in conlleval. A part of speech is one word's, scored by accuracy.
"""

import collections
from collections.abc import Callable

from data_prep.tasks import metrics
from official_bert.common.errors import UserError

# Letters of BIOES, BMES and BILOU.
_IOB2 = {"S-": "B-", "E-": "I-", "M-": "I-", "U-": "B-", "L-": "I-"}
_LETTERS = {"B", "I", *(prefix[0] for prefix in _IOB2)}


class _Column:
    """A column of tags.

    Attributes:
      name: value of the task's option `column`.
      feature: name in TFDS.
      fields: possible names in JSON files.
      baseline: function of training data, a list of (words, tags), and of sentences; it tags them.
      metrics: the main one first.
    """

    metrics: tuple[str, ...]

    def __init__(self, name: str, feature: str, fields: tuple[str, ...], baseline: Callable):
        self.name, self.feature, self.fields, self.baseline = name, feature, fields, baseline


class Phrases(_Column):
    """A column of IOB tags, which is IOB2 here.

    In files it may be IOB1 (B- only between adjacent phrases of one kind, as in CoNLL-2003), IOB2,
    or IOB2 with further letters for the last and for the only word of a phrase (BIOES and BMES: E-
    and S-, M- inside; BILOU: L- and U-).
    """

    metrics = ("f1", "precision", "recall", "accuracy")

    def kind(self, tag: str) -> str:
        """Return the kind of a tag: "LOC" for "B-LOC" and "I-LOC", "O" for "O"."""
        return tag[2:] or "O"

    def is_tag(self, tag: str) -> bool:
        of_phrase = tag[:2] in ("B-", "I-", *_IOB2) and self.kind(tag) != "O"
        return tag == "O" or of_phrase

    def check(self, tag: str, kinds, where: str) -> None:
        """Check a tag.

        Raises: UserError: it is not an IOB tag, or its kind is not among `kinds` (None: any).
        """
        if tag in _LETTERS:
            raise UserError(
                f"{where}: the tag {tag!r} names no kind of phrase; write it as {tag}-KIND, such "
                f"as {tag}-DISEASE"
            )
        if not self.is_tag(tag):
            raise UserError(
                f"{where}: {tag!r} is not an IOB tag (--task_options.tag_column= says which column "
                "holds the tags; single words' tags are --task_options.column=part_of_speech)"
            )
        _check_kind(self.kind(tag), tag, kinds if kinds is None else kinds | {"O"}, where)

    def as_read(self, tags) -> tuple[str, ...]:
        return tuple(to_iob2([_IOB2.get(tag[:2], tag[:2]) + tag[2:] for tag in tags]))

    def as_labels(self, names: list[str]) -> list[str]:
        """Return the labels for tags that a user named: the tags, or their IOB2 where they are
        BIOES."""
        return self.labels(names) if any(name[:2] in _IOB2 for name in names) else names

    def labels(self, tags) -> list[str]:
        """Return O first, then B- and I- of each kind among the tags."""
        kinds = sorted({self.kind(tag) for tag in tags} - {"O"})
        return ["O", *(f"{prefix}-{kind}" for kind in kinds for prefix in "BI")]

    def phrases(self, tags) -> list[tuple[str, int, int]]:
        """Return (kind, first word, word after the last) of each phrase."""
        return entities(tags)

    def score(self, gold, predicted) -> dict[str, float]:
        return metrics.entity_scores(gold, predicted)

    def per_class(self, gold, predicted) -> dict:
        return metrics.entity_per_class(gold, predicted)


class Words(_Column):
    """A column of tags of single words, without IOB's letters."""

    metrics = ("accuracy",)

    def kind(self, tag: str) -> str:
        return tag

    def is_tag(self, tag: str) -> bool:
        return bool(tag)

    def check(self, tag: str, kinds, where: str) -> None:
        _check_kind(tag, tag, kinds, where)

    def as_read(self, tags) -> tuple[str, ...]:
        return tuple(tags)

    def as_labels(self, names: list[str]) -> list[str]:
        return names

    def labels(self, tags) -> list[str]:
        return sorted(set(tags))

    def phrases(self, tags) -> list[tuple[str, int, int]]:
        return [(tag, index, index + 1) for index, tag in enumerate(tags)]

    def score(self, gold, predicted) -> dict[str, float]:
        return {"accuracy": metrics.tag_accuracy(gold, predicted)}

    def per_class(self, gold, predicted) -> dict:
        flat = [[tag for tags in lines for tag in tags] for lines in (gold, predicted)]
        return metrics.per_class(*flat, sorted(set(flat[0])))


def to_iob2(tags) -> list[str]:
    """Return tags in IOB2, where every entity begins with B-.

    IOB1 (B- only between adjacent entities of a type) and IOB2 are both read right, since in both
    an I- behind O or another type begins an entity.
    """
    result, previous = [], "O"
    for tag in tags:
        begins = tag[:2] == "I-" and (previous == "O" or previous[2:] != tag[2:])
        result.append(f"B-{tag[2:]}" if begins else tag)
        previous = tag
    return result


def entities(tags) -> list[tuple[str, int, int]]:
    """Return (type, first word, word after the last) of each entity, as conlleval reads tags."""
    found, start = [], None
    for index, tag in enumerate([*tags, "O"]):
        if start is not None and (tag[:2] != "I-" or tag[2:] != tags[start][2:]):
            found.append((tags[start][2:], start, index))
            start = None
        if tag != "O" and start is None:
            start = index
    return found


def _check_kind(kind: str, tag: str, kinds, where: str) -> None:
    if kinds is not None and kind not in kinds:
        raise UserError(
            f"{where}: the tag {tag} is not among the training tags, "
            f"which are of the types {', '.join(sorted(set(kinds) - {'O'}))} "
            "(--task_options.labels= lists all tags)"
        )


def _most_frequent_phrases(train, words) -> list[list[str]]:
    """Tag the phrases of the training data with their most frequent kind, the longest first.

    This is the shared task's own baseline for entities.
    """
    counted = collections.defaultdict(collections.Counter)
    for sentence, tags in train:
        for kind, first, end in entities(tags):
            counted[tuple(sentence[first:end])][kind] += 1
    kinds = {phrase: counts.most_common(1)[0][0] for phrase, counts in counted.items()}
    longest = max(map(len, kinds), default=0)
    return [_tag_phrases(sentence, kinds, longest) for sentence in words]


def _tag_phrases(words, kinds: dict, longest: int) -> list[str]:
    tags, index = ["O"] * len(words), 0
    while index < len(words):
        for length in range(min(longest, len(words) - index), 0, -1):
            kind = kinds.get(tuple(words[index : index + length]))
            if kind:
                tags[index] = f"B-{kind}"
                tags[index + 1 : index + length] = [f"I-{kind}"] * (length - 1)
                break
        else:
            length = 1
        index += length
    return tags


def _most_frequent_tags(train, words) -> list[list[str]]:
    """Return each word's most frequent training tag; unknown words get the most frequent of all."""
    counted = collections.defaultdict(collections.Counter)
    for sentence, tags in train:
        for word, tag in zip(sentence, tags, strict=True):
            counted[word][tag] += 1
    every = sum(counted.values(), collections.Counter())
    unknown = every.most_common(1)[0][0]
    best = {word: counts.most_common(1)[0][0] for word, counts in counted.items()}
    return [[best.get(word, unknown) for word in sentence] for sentence in words]


# Chunks cover nearly every word, so known words tell more than known phrases.
COLUMNS = {
    column.name: column
    for column in (
        Phrases(
            "entities", "ner", ("tags", "ner_tags", "entities", "labels"), _most_frequent_phrases
        ),
        Phrases("chunks", "chunks", ("chunk_tags", "chunks"), _most_frequent_tags),
        Words("part_of_speech", "pos", ("pos_tags", "part_of_speech"), _most_frequent_tags),
    )
}
