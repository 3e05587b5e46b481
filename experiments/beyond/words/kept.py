"""The model folders of CBOW and BiLSTMs on word vectors: weights, and the vectors of all words."""

import functools

import numpy as np

from experiments.beyond.common.text_scores import TextScorer, TextScores
from experiments.beyond.common.words import WordTokenizer
from experiments.beyond.words.start import BILSTM, CBOW, WordStart
from official_bert.backend.compiled import compiled
from official_bert.backend.variables import named_variables
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS

_VECTORS, _ROWS = "vectors", 32
_REBUILT = "experiments.beyond.words.kept:rebuilt"


class WordScorer(TextScorer):
    """A `TextClassifier` with its words and their vectors.

    Args:
      start: WordStart.
      model: of `start.model`.
      settings: of `model.json`; its max_seq_length is the most words of a row.
    """

    def __init__(self, start: WordStart, model, settings):
        self._start, self._model, self._length = start, model, settings["max_seq_length"]
        self.fields = {
            "problem": model.problem,
            "num_labels": model.num_labels,
            "pairs": start.pairs,
            "width": start.width,
        }
        self.words = start.tokenizer.vocab[len(SPECIAL_TOKENS) :]

    @property
    def arrays(self):
        from keras import ops

        found = named_variables(self._model)
        weights = {name: ops.convert_to_numpy(variable) for name, variable in found.items()}
        return {_VECTORS: self._start.vectors, **weights}

    @functools.cached_property
    def _logits(self):
        return compiled(self._model, lambda batch: self._model(batch)["logits"])

    def __call__(self, columns):
        found = []
        for first in range(0, len(columns[0]), _ROWS):
            some = [column[first : first + _ROWS] for column in columns]
            batch = self._start.tokenizer(
                *some, max_length=self._length, padding=8, truncation="head"
            )
            found.append(self._logits(self._start.complete(batch)))
        return np.concatenate(found)


def save(folder, start: WordStart, model, settings) -> None:
    """Write a model folder."""
    HEADS[start.name].save(folder, WordScorer(start, model, settings), settings)


def rebuilt(settings, words, arrays) -> WordScorer:
    """Return the `WordScorer` of a model folder; ValueError where its parts do not fit."""
    tokenizer, vectors = WordTokenizer(words), arrays.pop(_VECTORS)
    if vectors.ndim != 2 or len(vectors) != tokenizer.vocab_size:
        raise ValueError(f"{len(vectors)} vectors of {tokenizer.vocab_size} words")
    start = WordStart(
        settings["head"], tokenizer, vectors, settings["width"], 0.0, settings["pairs"]
    )
    head = {"num_labels": settings["num_labels"], "problem": settings["problem"]}
    model = start.model(None, head, seed=0)
    variables = named_variables(model)
    shapes = {name: tuple(variable.shape) for name, variable in variables.items()}
    if shapes != {name: array.shape for name, array in arrays.items()}:
        raise ValueError(f"its weights are not those of a {settings['head']} of these sizes")
    for name, variable in variables.items():
        variable.assign(arrays[name])
    return WordScorer(start, model, settings)


CBOW_HEAD, BILSTM_HEAD = TextScores(CBOW, _REBUILT), TextScores(BILSTM, _REBUILT)
HEADS = {CBOW: CBOW_HEAD, BILSTM: BILSTM_HEAD}
