"""The left-to-right language model that section 5.1 compares with: each token from those before."""

import dataclasses

from keras import ops

from official_bert.objectives.masked_lm import MaskedLM, restore_masked_tokens
from official_bert.randomness import PREDICTED_POSITIONS, fold_in, uniform


@dataclasses.dataclass(frozen=True)
class NextToken(MaskedLM):
    """Predicts the next token at every position of the text as it was before masking.

    Everything else is the masked language model's: head, loss, names.

    Attributes:
      fraction: share of the positions whose next token is predicted in a training step, drawn anew
        for every step; 1.0 is the language model of the paper, less is cheaper where the vocabulary
        is large beside the model.
    """

    fraction: float = 1.0

    name = "next_token"

    def corrupt(self, model, batch, seed):
        batch = restore_masked_tokens(batch)
        positions, ids, weights = self._drawn(batch["input_ids"][:, 1:], batch, seed)
        return {
            **batch,
            "masked_lm_positions": positions,
            "masked_lm_ids": ids,
            "masked_lm_weights": weights,
        }

    def pad(self, batch, rows):
        super().pad(batch, rows)
        batch["input_mask"][rows:, 1:] = 0  # real tokens count, masked or not

    def cloze(self, batch):
        # The piece at a position is predicted from the one before it; padding points at 0.
        positions = ops.maximum(batch["masked_lm_positions"] - 1, 0)
        return restore_masked_tokens(batch), positions

    def _drawn(self, ids, batch, seed, number=PREDICTED_POSITIONS):
        """Choose the tokens that are predicted: all, or as many as `fraction` says.

        Args:
          ids: int32 [B, L - 1], the tokens from the second on.
          batch: whose `input_mask` tells the padding.
          seed: of the step, int32 [2]; None outside training, where all are predicted.
          number: folded into the seed.

        Returns: (places in `ids`, tokens, weights), each [B, P].
        """
        weights = ops.cast(batch["input_mask"][:, 1:], "float32")
        rows, count = ops.shape(ids)
        positions = ops.broadcast_to(ops.arange(count, dtype="int32"), (rows, count))
        if seed is None or self.fraction >= 1:
            return positions, ids, weights
        # The positions with the largest of random numbers; padding's are all below zero.
        draws = uniform((rows, count), fold_in(seed, number)) + weights - 1
        if isinstance(count, int):
            most = max(1, round(self.fraction * count))
        else:  # in a graph of any length
            wanted = self.fraction * ops.cast(count, "float32")
            most = ops.maximum(ops.cast(ops.round(wanted), "int32"), 1)
        _, chosen = ops.top_k(draws, k=most)
        chosen = ops.cast(chosen, "int32")
        ids = ops.take_along_axis(ids, chosen, axis=1)
        return chosen, ids, ops.take_along_axis(weights, chosen, axis=1)
