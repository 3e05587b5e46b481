"""Texts compared by their vectors: cosines, and ranks of the right ones."""

import dataclasses
from typing import Any

import numpy as np

_CHUNK = 1024  # rows that are compared at a time


@dataclasses.dataclass(frozen=True)
class TextVectors:
    """Vectors of texts.

    Attributes:
      place: {text: row}.
      matrix: rows of length 1, float [N, D], dense or one of scipy's sparse matrices.
    """

    place: dict[str, int]
    matrix: Any

    @classmethod
    def of(cls, texts, vectors) -> "TextVectors":
        """Return the vectors of texts, one a text; of equal texts the first counts."""
        place: dict[str, int] = {}
        for row, text in enumerate(texts):
            place.setdefault(text, row)
        vectors = np.asarray(vectors, np.float64)
        return cls(
            place, vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        )

    @classmethod
    def of_words(cls, known, texts) -> "TextVectors":
        """Return TF-IDF vectors of texts; words are weighted by those of `known` too."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = list(dict.fromkeys(texts))
        weighing = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True).fit([*known, *texts])
        return cls({text: row for row, text in enumerate(texts)}, weighing.transform(texts))

    def similarities(self, first: list[str], second: list[str]) -> np.ndarray:
        """Return cosines, float64 [first, second]."""
        rows, columns = ([self.place[text] for text in texts] for texts in (first, second))
        found = self.matrix[rows] @ self.matrix[columns].T
        return found if isinstance(found, np.ndarray) else found.toarray()

    def cosines(self, pairs: list[tuple[str, ...]]) -> list[float]:
        """Return the cosine of the first two texts of each."""
        return [float(self.similarities([one], [two])[0, 0]) for one, two, *_ in pairs]

    def ranks(self, examples: list[tuple[str, ...]]) -> list[int]:
        """Return the rank of each example's second text among all second and further texts, from 1.

        A text of several examples is one candidate. Other right answers of the same first text are
        left out, and of equal cosines the right one counts last: vectors that are all the same have
        no luck.

        Args:
          examples: texts; "" is absent.
        """
        candidates = list(dict.fromkeys(text for each in examples for text in each[1:] if text))
        place = {text: column for column, text in enumerate(candidates)}
        right: dict[str, set[int]] = {}
        for first, second, *_ in examples:
            right.setdefault(first, set()).add(place[second])
        found = []
        for start in range(0, len(examples), _CHUNK):
            chunk = examples[start : start + _CHUNK]
            rows = self.similarities([each[0] for each in chunk], candidates)
            for (first, second, *_), row in zip(chunk, rows, strict=True):
                above = row >= row[place[second]]
                above[list(right[first])] = False
                found.append(1 + int(above.sum()))
        return found


def retrieval_scores(ranks: list[int], most: int) -> dict[str, float]:
    """Return the mean reciprocal rank, and the shares of ranks of at most 1 and `most`."""
    found = np.asarray(ranks)
    return {
        "mrr": float(np.mean(1 / found)),
        "recall_at_1": float(np.mean(found <= 1)),
        f"recall_at_{most}": float(np.mean(found <= most)),
    }
