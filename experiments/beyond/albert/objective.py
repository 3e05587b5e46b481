"""The order of two segments: which of them comes first (ALBERT, Lan et al. 2020, section 3.1)."""

import dataclasses

from keras import ops

from official_bert.losses import row_weights
from official_bert.objectives.protocol import Choice, Loss
from official_bert.objectives.sentence_pair import add_head
from official_bert.randomness import OF_EXTENSIONS, fold_in, uniform


@dataclasses.dataclass(frozen=True)
class SentenceOrder(Choice):
    """Predicts from the pooled output whether the segments were swapped (1) or not (0).

    Half of the rows are swapped, drawn anew in every step (in evaluation: every other row), so that
    records for next sentence prediction serve. The order of two segments that do not belong
    together is not asked for: rows whose B is random do not count.

    Attributes:
      random_as_swapped: rows whose B is random count, stay as they are and have the label 1, as in
        google-research/albert, whose records (packing "consecutive") have few of them.
    """

    random_as_swapped: bool = False

    name = "sentence_order"
    needs = ("next_sentence_labels",)
    metrics = ("sentence_order_accuracy",)
    of_pairs = True
    losses = {"sentence_order_loss": Loss()}
    names = (
        ("sentence_order/kernel", None, "sop_classifier.classifier.weight", None),
        ("sentence_order/bias", None, "sop_classifier.classifier.bias", None),
    )

    def build(self, model, initializer):
        add_head(model, initializer, "sentence_order")

    def why_not_of(self, made):
        if self.random_as_swapped and made.get("packing", "segments") in ("segments", "pairs"):
            return (
                "half of the second segments are random, and sentence_order with random_as_swapped "
                "takes them for swapped; make records with --packing=consecutive"
            )
        if made.get("separators", 1) > 1:
            return "two separators in a pair; sentence_order swaps pairs with one"
        return ""

    def corrupt(self, model, batch, seed):
        rows = ops.shape(batch["input_ids"])[0]
        if seed is None:
            swapped = ops.arange(rows, dtype="int32") % 2
        else:
            draws = uniform((rows,), fold_in(seed, OF_EXTENSIONS))
            swapped = ops.cast(draws < 0.5, "int32")
        follows = 1 - batch["next_sentence_labels"][:, 0]
        # A row with one segment has no order.
        pairs = ops.cast(ops.any(batch["segment_ids"] * batch["input_mask"] > 0, axis=1), "int32")
        labels, counted = swapped, follows * pairs
        if self.random_as_swapped:
            swapped = swapped * follows
            labels, counted = ops.maximum(swapped, 1 - follows), pairs
        return {
            **swap_segments(batch, swapped),
            "sentence_order_labels": labels,
            "sentence_order_weights": ops.cast(counted, "float32"),
        }

    def call(self, model, batch, encoded):
        """Return {"sentence_order_logits": float32 [B, 2]} and the labels and weights of the rows,
        [B]."""
        names = ("sentence_order_labels", "sentence_order_weights")
        logits = model.sentence_order(encoded["pooled_output"])
        return {"sentence_order_logits": logits, **{name: batch[name] for name in names}}

    def compared(self, batch, outputs):
        weights = outputs["sentence_order_weights"]
        weights = weights * row_weights(batch, weights)
        return outputs["sentence_order_logits"], outputs["sentence_order_labels"], weights


def swap_segments(batch, swapped):
    """Return a batch in which some rows [CLS] A [SEP] B [SEP] read [CLS] B [SEP] A [SEP].

    Args:
      batch: input_ids, input_mask, segment_ids int32 [B, L]; masked_lm_positions int32 [B, P] are
        moved with their tokens.
      swapped: int32 [B], 1 for the rows to change.
    """
    ids, mask = batch["input_ids"], batch["input_mask"]
    total = ops.sum(mask, axis=1, keepdims=True)  # [B, 1]
    # Tokens of B and of A, each with its [SEP].
    second = ops.sum(batch["segment_ids"] * mask, axis=1, keepdims=True)
    first = total - 1 - second
    change = ops.logical_and(swapped[:, None] > 0, second > 0)

    def moved(place, before, after):
        """Return the new positions of tokens when `before` of them and the `after` behind them swap
        places."""
        inside = ops.logical_and(change, ops.logical_and(place > 0, place < total))
        return ops.where(inside, ops.where(place <= before, place + after, place - before), place)

    place = ops.broadcast_to(ops.arange(ops.shape(ids)[1], dtype="int32"), ops.shape(ids))
    segments = ops.cast(ops.logical_and(place > second, place < total), "int32")
    return {
        **batch,
        # The token that comes to stand at a place is that of the place it would go back to.
        "input_ids": ops.take_along_axis(ids, moved(place, second, first), axis=1),
        "segment_ids": ops.where(change, segments, batch["segment_ids"]),
        "masked_lm_positions": moved(batch["masked_lm_positions"], first, second),
    }
