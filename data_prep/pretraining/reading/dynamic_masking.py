"""Masked-LM corruption of batches of unmasked rows: new masks for every epoch.

The rules are those of `masking`. The masks are a pure function of (seed, number of the example in
the run), so an interrupted run continues with the same masks. Masks of single pieces can be made by
jax.numpy on a device too (`jax_masking`): `xp` is numpy or jax.numpy.
"""

import os
from dataclasses import dataclass

import numpy as np

from data_prep.jobs import vocabularies
from data_prep.pretraining import masking
from data_prep.pretraining.reading import philox
from official_bert.common.json_files import field


@dataclass(frozen=True)
class MaskingRules:
    """The options of records with dynamic masking, as numbers.

    Attributes:
      length: tokens of a row; wanted_slots: slots for predictions; slots: those that a row can
        fill.
      prob: share of the tokens to predict.
      mask_below, same_below: a uniform number below the first makes [MASK]; else, below the second,
        it keeps the token; else it draws one.
      vocab_size, cls, sep, mask: size and special ids of the vocabulary.
      continues: bool [vocab_size], which entries continue a word; None without whole-word masking.
    """

    length: int
    wanted_slots: int
    slots: int
    prob: float
    mask_below: float
    same_below: float
    vocab_size: int
    cls: int
    sep: int
    mask: int
    continues: np.ndarray | None

    @property
    def wanted(self) -> np.ndarray:
        """The number of predictions for each length of a row, int32 [length + 1]."""
        lengths = np.arange(self.length + 1)
        return masking.prediction_counts(lengths, self.prob, self.wanted_slots).astype(np.int32)

    @property
    def numbers(self) -> int:
        """The number of random numbers for a row."""
        return self.length + 2 * self.slots

    @classmethod
    def of(cls, records) -> "MaskingRules":
        """Return the rules of a `data_prep.records.RecordSet`; its folder has the vocabulary.

        Raises:
          UserError: the manifest lacks an option, or the vocabulary is not its own.
        """
        path = os.path.join(records.folder, "manifest.json")
        options = field(records.manifest, "options", dict, path)
        for name in ("masked_lm_prob", "mask_rate", "same_rate"):
            field(options, name, (int, float), f"{path}: options")
        digest = field(records.manifest, "vocab_sha256", str, path)
        tokenizer = vocabularies.load_tokenizer(
            vocabularies.find_vocabulary(records.folder), digest
        )
        whole_words = field(options, "do_whole_word_mask", bool, f"{path}: options")
        return cls(
            records.max_seq_length,
            records.max_predictions_per_seq,
            min(records.max_predictions_per_seq, records.max_seq_length),
            options["masked_lm_prob"],
            options["mask_rate"],
            options["mask_rate"] + options["same_rate"],
            tokenizer.vocab_size,
            tokenizer.cls_id,
            tokenizer.sep_id,
            tokenizer.mask_id if options["masked_lm_prob"] else tokenizer.cls_id,
            tokenizer.continues if whole_words else None,
        )


def mask(batch: dict, first_example: int, rules: MaskingRules, batch_size: int, seed: int) -> dict:
    """Mask a batch.

    Args:
      batch: input_ids, input_mask, segment_ids, next_sentence_labels, int32, of `batch_size` rows,
        or of fewer if it is the last.
      first_example: number of its first example in the run.
      rules, batch_size, seed: those of the run.

    Returns:
      The batch with input_ids corrupted, and masked_lm_positions, masked_lm_ids (int32) and
      masked_lm_weights (float32), [rows, max_predictions_per_seq].
    """
    numbers = philox.uniform((batch_size, rules.numbers), (seed % 2**62, first_example))
    return mask_with(numbers[: len(batch["input_ids"])], batch, rules)


def mask_with(numbers, batch: dict, rules: MaskingRules, xp=np) -> dict:
    """Mask a batch as `mask` does, with random numbers that are drawn already.

    Args:
      numbers: float32 [rows, rules.numbers] in [0, 1).
      xp: numpy, or jax.numpy where whole words are not masked together.
    """
    ids, real = batch["input_ids"], batch["input_mask"].astype(bool)
    slots = rules.slots
    keys, fate, tokens = xp.split(numbers, [rules.length, rules.length + slots], axis=1)

    wanted = xp.asarray(rules.wanted)[batch["input_mask"].sum(axis=1)]
    candidates = real & (ids != rules.cls) & (ids != rules.sep)
    if rules.continues is None:
        positions, counts = _choose_pieces(keys, candidates, wanted, rules, xp)
    else:
        positions, counts = _choose_words(keys, candidates, wanted, ids, rules)

    used = xp.arange(slots) < counts[:, None]
    places = xp.where(used, positions, 0)
    originals = xp.where(used, xp.take_along_axis(ids, places, axis=1), 0)
    random_ids = (tokens * np.float32(rules.vocab_size)).astype(np.int32)
    random_ids = xp.minimum(random_ids, rules.vocab_size - 1)  # float32 may round up
    becomes = xp.where(fate < np.float32(rules.mask_below), rules.mask, originals)
    becomes = xp.where(fate >= np.float32(rules.same_below), random_ids, becomes)
    becomes = xp.where(used, becomes, rules.cls)  # unused slots write [CLS] over [CLS]
    missing = ((0, 0), (0, rules.wanted_slots - slots))
    return batch | {
        "input_ids": _written(ids, places, becomes.astype(np.int32), xp),
        "masked_lm_positions": xp.pad(places.astype(np.int32), missing),
        "masked_lm_ids": xp.pad(originals.astype(np.int32), missing),
        "masked_lm_weights": xp.pad(used.astype(np.float32), missing),
    }


def _written(ids, places, values, xp):
    if xp is not np:
        return xp.put_along_axis(ids, places, values, axis=1, inplace=False)
    ids = ids.copy()
    np.put_along_axis(ids, places, values, axis=1)
    return ids


def _choose_pieces(keys, candidates, wanted, rules, xp):
    """Choose random places in each row: [rows, slots], ascending; the length where unused."""
    keys = xp.where(candidates, keys, np.float32(-1))
    stable = {"kind": "stable"} if xp is np else {"stable": True}
    places = xp.argsort(-keys, axis=1, **stable)[:, : rules.slots]
    counts = xp.minimum(wanted, candidates.sum(axis=1))
    places = xp.where(xp.arange(rules.slots) < counts[:, None], places, rules.length)
    return xp.sort(places, axis=1), counts


def _choose_words(keys, candidates, wanted, ids, rules):
    """Choose whole words; a word that would overflow the budget is skipped."""
    rows, length = ids.shape
    before = np.pad(ids[:, :-1], ((0, 0), (1, 0)), constant_values=rules.cls)
    inside = (before != rules.cls) & (before != rules.sep)
    starts = candidates & ~(rules.continues[ids] & inside)
    word = np.where(candidates, np.cumsum(starts, axis=1) - 1, length)  # [rows, length]
    flat = word + np.arange(rows)[:, None] * (length + 1)
    sizes = np.bincount(flat.ravel(), minlength=rows * (length + 1)).reshape(rows, length + 1)
    words = starts.sum(axis=1)

    # The first key of a row is its first word's, and so on: all orders of words are equally likely.
    keys = np.where(np.arange(length) < words[:, None], keys, np.float32(-1))
    order = np.argsort(-keys, axis=1, kind="stable")
    taken = masking.taken_words(order, words, sizes, wanted)
    chosen = np.take_along_axis(taken, word, axis=1) & candidates
    return masking.places(chosen, rules.slots)[0], chosen.sum(axis=1)
