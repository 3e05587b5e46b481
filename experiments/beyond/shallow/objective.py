"""The language models of a shallow concatenation (section 5.1), one in each direction."""

import dataclasses

from keras import ops

from official_bert.common.errors import UserError
from official_bert.objectives import refuse_direction
from official_bert.objectives.masked_lm import MaskedLM, restore_masked_tokens
from official_bert.objectives.next_token import NextToken
from official_bert.randomness import PREDICTED_POSITIONS


@dataclasses.dataclass(frozen=True)
class AdjacentTokens(NextToken):
    """Predicts the next token from the half that reads left to right, and the one before from the
    half that reads right to left; the loss is the mean of both.

    The halves share the token table and the head (Peters et al. 2018, section 3.1) and nothing
    else: neither loss has a gradient for the blocks of the other.
    """

    name = "adjacent_tokens"

    def build(self, model, initializer):
        if (config := model.encoder.config).language_model != self.name:
            refuse_direction(self.name, config)
        super().build(model, initializer)
        others = [one.name for one in model.objectives if "masked_lm_ids" in one.needs]
        if len(others) > 1:
            raise UserError(f"only one of the objectives {', '.join(others)} can predict pieces")

    def corrupt(self, model, batch, seed):
        batch = self.as_read(model, restore_masked_tokens(batch))
        ids = batch["input_ids"]
        after = self._drawn(ids[:, 1:], batch, seed)
        before = self._drawn(ids[:, :-1], batch, seed, PREDICTED_POSITIONS + 1)
        # In `call` the states of the second half stand behind those of the first; a token is
        # predicted from the one behind it.
        before = (before[0] + ops.shape(ids)[1] + 1, *before[1:])
        names = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
        both = (ops.concatenate(two, axis=1) for two in zip(after, before, strict=True))
        return {**batch, **dict(zip(names, both, strict=True))}

    def as_read(self, model, batch):
        """Return the text as the encoder reads it."""
        return batch

    def call(self, model, batch, encoded):
        """Return the outputs of `MaskedLM.call`, for the next tokens, then for those before."""
        halves = ops.split(encoded["sequence_output"], 2, axis=-1)
        states = ops.concatenate(halves, axis=1)  # [B, 2 L, H / 2]
        return MaskedLM.call(self, model, batch, {"sequence_output": states})
