"""Whole words by their letters out of WordPiece ids, so that ELMo is trained on BERT's records."""

import numpy as np
from keras import ops

from experiments.beyond.elmo.shape import MAX_CHARACTERS, PADDING, character_ids
from official_bert.tokenization.tokenizer import BertTokenizer

_LETTERS = MAX_CHARACTERS - 2
_BEGINS, _ENDS = character_ids(["a"])[0, [0, 2]].tolist()


class WordsOfPieces:
    """Joins the pieces of words."""

    def __init__(self, tokenizer: BertTokenizer):
        pieces = [piece.removeprefix("##") for piece in tokenizer.vocab]
        spelt = character_ids(pieces, tokenizer.special.cls, tokenizer.special.sep)[:, 1:-1]
        # Letters alone: zeros in the place of what ends a word, and behind it.
        spelt[(spelt == _ENDS) | (spelt == PADDING)] = 0
        self._letters = spelt[:, : np.flatnonzero(spelt.any(axis=0))[-1] + 1]
        self._continues = np.array([piece.startswith("##") for piece in tokenizer.vocab])
        self._special = np.isin(tokenizer.vocab, tokenizer.special)
        self._unknown = tokenizer.unk_id

    def __call__(self, ids, mask) -> dict:
        """
        Args:
          ids, mask: int32 [B, L].

        Returns:
          {"character_ids": int32 [B, L, 50], "input_ids": of the word where it is one piece, of
          [UNK] where it is several, int32 [B, L], "input_mask": int32 [B, L]}, with fewer words a
          row than there were pieces.
        """

        def of_piece(table):
            return ops.take(ops.convert_to_tensor(table.astype("int32")), ids, axis=0)

        # A text may have been cut inside a word: no word begins before [CLS] or [SEP].
        special = of_piece(self._special)
        behind = ops.concatenate([ops.ones_like(special[:, :1]), special[:, :-1]], axis=1)
        starts = mask * (1 - of_piece(self._continues) * (1 - behind))
        word = ops.maximum(ops.cumsum(starts, axis=1) - 1, 0)
        # The last piece of each word: those of it and of the words before, less one.
        number = ops.arange(ops.shape(ids)[1], dtype="int32")[:, None]
        last = ops.sum(ops.cast(word[:, None] <= number, "int32"), axis=2) - 1

        def of_words(x):
            """Return the sums over the pieces of each word; row by row, so that devices can share
            rows."""
            places = last if len(x.shape) == 2 else last[..., None]
            sums = ops.take_along_axis(ops.cumsum(x, axis=1), places, axis=1)
            return sums - ops.concatenate([ops.zeros_like(sums[:, :1]), sums[:, :-1]], axis=1)

        letters = of_piece(self._letters) * mask[..., None]  # [B, L, C]
        count = ops.sum(ops.cast(letters > 0, "int32"), axis=-1)
        before = ops.cumsum(count, axis=1) - count  # letters in the row, then in the word
        before = before - ops.take_along_axis(of_words(starts * before), word, axis=1)
        where = before[..., None] + ops.arange(letters.shape[-1], dtype="int32")
        spread = ops.one_hot(where, _LETTERS, dtype="int32") * letters[..., None]
        spelt = of_words(ops.sum(spread, axis=2))  # [B, L, 48]
        spelt = ops.pad(spelt, ((0, 0), (0, 0), (1, 1)))
        end = ops.minimum(of_words(count), _LETTERS)[..., None] + 1
        at = ops.arange(MAX_CHARACTERS, dtype="int32")
        spelt = ops.where(at == end, _ENDS, ops.where(at > end, PADDING, spelt))
        pieces = of_words(mask)
        return {
            "character_ids": ops.where(at == 0, _BEGINS, spelt),
            "input_ids": ops.where(pieces > 1, self._unknown, of_words(starts * ids)),
            "input_mask": ops.cast(pieces > 0, "int32"),
        }
