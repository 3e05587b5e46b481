"""Model folders of classifiers that are no BERT: texts in, scores of classes out.

Such a folder has `model.json` as others, whose head is the classifier's name, `words.json`, the
words that it knows, and `weights.safetensors`, its numbers. `official_bert.load` opens it, and
`predict` asks it, as the command does; there is no network of tokens in it to export.
"""

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from official_bert.checkpoints import integrity
from official_bert.checkpoints.files import safetensors_files
from official_bert.checkpoints.model_folder import WEIGHTS_FILE
from official_bert.checkpoints.model_settings import MODEL_FILE
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_folder, write_json
from official_bert.common.json_files import field, list_of, read_json
from official_bert.export.text_answers import as_texts, class_of
from official_bert.extension import load as load_at
from official_bert.predict import Model
from official_bert.span_answers import shares

_WORDS = "words.json"


class TextScorer:
    """A classifier of texts that knows words.

    Attributes:
      fields: what `model.json` says of it beside the task.
      words: list[str].
      arrays: {name: array of numbers}.
    """

    fields: dict[str, Any]
    words: list[str]
    arrays: dict[str, np.ndarray]

    def __call__(self, columns: list[list[str]]) -> np.ndarray:
        """Return logits [rows, classes]; a number for regression, [rows, 1].

        Args:
          columns: the first text of each row and, for pairs, the second.
        """
        raise NotImplementedError


class TextScores:
    """The entry of an extension's `heads` for such a classifier.

    Args:
      name: of the head.
      rebuilt: "module:function" of (settings, words, arrays) -> `TextScorer`; raises ValueError or
        KeyError where they do not belong together.
    """

    def __init__(self, name: str, rebuilt: str):
        self.name, self._rebuilt = name, rebuilt

    def check(self, settings: dict[str, Any], path: Path) -> None:
        """Check the fields of a `model.json`; raise UserError where one is wrong."""
        if field(settings, "problem", str, path) != "regression":
            list_of(settings, "labels", str, path)

    def save(self, folder: Path, scorer: TextScorer, settings: dict[str, Any]) -> None:
        """Write a model folder; it appears under its name only when it is complete."""
        description = {**settings, **scorer.fields, "head": self.name}
        size = sum(4 * math.prod(array.shape) for array in scorer.arrays.values())
        with atomic_folder(folder, False, size) as temporary:
            safetensors_files.write(temporary / WEIGHTS_FILE, scorer.arrays)
            write_json(temporary / _WORDS, scorer.words)
            description = integrity.with_checksums(temporary, MODEL_FILE, description)
            write_json(temporary / MODEL_FILE, description)

    def load(self, folder: Path, settings: dict[str, Any]) -> "ScoringModel":
        """Read a model folder.

        Raises:
          UserError: a file is missing or damaged, or they do not belong together.
        """
        path = folder / WEIGHTS_FILE
        words = read_json(folder / _WORDS, list)
        with contextlib.ExitStack() as stack:
            shapes, read = safetensors_files.open_all([path], stack)
            integrity.check_folder(folder, MODEL_FILE, settings)
            arrays = {name: read(name) for name in shapes}
        for name, array in arrays.items():
            integrity.check_type(array.dtype.name, name, path)
            integrity.check_finite(array, name, path)
        rebuilt: Callable[..., TextScorer] = load_at(self._rebuilt)
        try:
            scorer = rebuilt(settings, words, arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{path}: does not fit {MODEL_FILE} and {_WORDS} beside it ({error})"
            ) from None
        return ScoringModel(None, None, scorer, self.name, None, settings)


class ScoringModel(Model):
    """A loaded `TextScorer`, in `model`; it has no encoder and no tokeniser."""

    def predict(self, texts, pairs=None, batch_size=32, max_length=None):
        """Answer as `Model.predict` does for a classifier; the last two options change nothing."""
        texts, one = as_texts(texts)
        pairs = [pairs] if one and pairs is not None else pairs
        is_pair = self.settings.get("pairs", False)
        if is_pair != (pairs is not None) or (is_pair and len(pairs) != len(texts)):
            raise UserError(f"the model reads {'two texts' if is_pair else 'one text'} a row")
        logits = self.model([texts, *([pairs] if is_pair else [])])
        problem, labels = self.settings["problem"], self.settings["labels"]
        rows = logits.reshape(-1) if problem == "regression" else logits
        if problem != "regression":
            rows = shares(rows) if problem == "single_label" else 1 / (1 + np.exp(-rows))
        found = [class_of(row, problem, labels) for row in rows]
        for answer in found if problem != "regression" else ():
            answer["probabilities"] = dict(zip(labels, answer["probabilities"], strict=True))
        return found[0] if one else found

    def embed(self, texts, *arguments, **options):
        raise UserError(f"a {self.head} has no vectors of texts: use predict")
