"""VideoBERT (Sun et al. 2019): visual words among the pieces, and whether clips go with a text.

Clips are words of a vocabulary (`visual_words`), whose rows of the token table begin as
the clusters' centroids and stay so. The table is tied, so the scores of visual words are products
with centroids too. Masks are `masked_lm`'s; `Alignment` is asked of rows of text and clips.
"""

import dataclasses

import numpy as np
from keras import ops

from official_bert.backend.variables import named_variables
from official_bert.config import BertConfig
from official_bert.encoder import BertEncoder
from official_bert.layers import Embeddings, Transformer
from official_bert.objectives.protocol import Choice, Loss
from official_bert.objectives.sentence_pair import add_head
from official_bert.pretraining import BertPretrainer


@dataclasses.dataclass(frozen=True)
class Alignment(Choice):
    """Predicts from the last state of [CLS] whether a row's clips are those of its text (1)."""

    name = "alignment"
    needs = ("alignment_labels", "alignment_weights")
    metrics = ("alignment_accuracy",)
    losses = {"alignment_loss": Loss()}

    def build(self, model, initializer):
        add_head(model, initializer, self.name)

    def call(self, model, batch, encoded):
        """Return {"alignment_logits": float32 [B, 2]}."""
        return {"alignment_logits": model.alignment(encoded["sequence_output"][:, 0])}

    def compared(self, batch, outputs):
        labels, weights = (batch[f"alignment_{name}"][:, 0] for name in ("labels", "weights"))
        return outputs["alignment_logits"], labels, weights


class _Embeddings(Embeddings):
    """The token table in two weights: of text, and of visual words."""

    def __init__(self, config, initializer, rows, frozen, **kwargs):
        text = dataclasses.replace(config, vocab_size=config.vocab_size - len(rows))
        super().__init__(text, initializer, **kwargs)
        self.visual_rows = self.add_weight(
            name="visual_rows",
            shape=rows.shape,
            initializer="zeros",
            trainable=not frozen,
            autocast=False,
        )
        self.visual_rows.assign(rows)

    @property
    def word_embeddings(self):
        """float32 [V, E], the visual words last."""
        # A sum, since under XLA the gradient of joined rows that are looked up has no fixed shape.
        text, visual = self.text_rows.shape[0], self.visual_rows.shape[0]
        padded = ops.pad(self.text_rows, ((0, visual), (0, 0)))
        return padded + ops.pad(self.visual_rows, ((text, 0), (0, 0)))

    @word_embeddings.setter
    def word_embeddings(self, rows):
        self.text_rows = rows


class _WithVisualWords(Transformer):
    def __init__(self, config, rows, frozen):
        super().__init__(config)
        self._rows, self._frozen = rows, frozen

    def embeddings(self, initializer, **kwargs):
        return _Embeddings(self.config, initializer, self._rows, self._frozen, **kwargs)


def pretrainer(config: BertConfig, rows, frozen: bool, seed=None) -> BertPretrainer:
    """Return a model of the objectives masked_lm and alignment.

    Args:
      config: `vocab_size` counts all ids, visual words last.
      rows: float [visual words, E] of the table.
      frozen: whether they stay as they are.
    """
    transformer = _WithVisualWords(config, np.asarray(rows, np.float32), frozen)
    encoder = BertEncoder(config, seed=seed, transformer=transformer)
    model = BertPretrainer(encoder, ("masked_lm", Alignment()), seed=seed)
    for part in (encoder.pooler, model.next_sentence):  # nothing reads them
        if part is not None:
            part.trainable = False
    return model


def begin_as(model: BertPretrainer, other, pieces: int) -> None:
    """Give a pretrainer of `pretrainer` the weights that it shares with another BERT of its sizes.

    Args:
      other: BertPretrainer, BertEncoder or a model with a head.
      pieces: of the vocabulary; the rows and biases behind them are `[>]`'s and the visual words'.
    """
    known = named_variables(other)
    for name, variable in named_variables(model).items():
        if name in known:
            array, begun = (np.array(ops.convert_to_numpy(x)) for x in (known[name], variable))
            rows = len(begun) if begun.shape == array.shape else pieces
            begun[:rows] = array[:rows]
            variable.assign(begun)


def rows_of_centroids(centroids, width: int) -> np.ndarray:
    """Map float [words, D] -> [words, width], of length 1 on average (root mean square).

    Centroids have neither the scale of a table nor, often, its width. They are turned to their own
    principal axes about their mean, of which the first `width` are kept, or zeros follow. Length 1
    is about that of a trained BERT's rows; BERT's initial ones are shorter, but grow, and beside
    them rows that stay so short would be lost.
    """
    x = np.asarray(centroids, np.float64) - np.mean(centroids, axis=0)
    x = x @ np.linalg.svd(x, full_matrices=False)[2][:width].T
    x = np.pad(x, ((0, 0), (0, width - x.shape[1])))
    return x / max(np.sqrt((x**2).sum(axis=1).mean()), 1e-12)
