"""Masked-LM corruption inside a tf.data pipeline: new masks for every epoch.

The rules of `data_prep.pretraining.masking`, on batches of unmasked rows. The masks are a pure
function of (seed, number of the example in the run), so an interrupted run goes on with the same
ones.
"""

import tensorflow as tf

from data_prep.pretraining.masking_rules import MaskingRules


class DynamicMasking:
    """Adds the masked-LM features to batches of unmasked rows.

    Args:
      records: a `data_prep.records.Records` with dynamic masking; rates, probabilities and
        vocabulary come from its folder.
      batch_size: of all input pipelines together.
      seed: of the masks.

    Raises:
      UserError: the manifest lacks the rates, or the vocabulary is not the records' own.
    """

    def __init__(self, records, batch_size: int, seed: int):
        self._rules = MaskingRules.of(records)
        self._batch_size = batch_size
        self._seed = seed % 2**62

    def __call__(self, batch: dict, first_example, stretch: slice) -> dict:
        """Masks a batch.

        Args:
          batch: input_ids, input_mask, segment_ids, next_sentence_labels of some rows.
          first_example: int64 scalar, the number of the whole batch's first example in the run.
          stretch: which rows of the whole batch these are.

        Returns:
          The batch with input_ids corrupted, and masked_lm_positions, masked_lm_ids (int32) and
          masked_lm_weights (float32), [rows, max_predictions_per_seq].
        """
        rules = self._rules
        ids, real = batch["input_ids"], tf.cast(batch["input_mask"], tf.bool)
        slots = rules.slots
        numbers = tf.random.stateless_uniform(
            [self._batch_size, rules.length + 2 * slots],
            tf.stack([tf.constant(self._seed, tf.int64), tf.cast(first_example, tf.int64)]),
            alg="philox",
        )[stretch]
        numbers = numbers[: tf.shape(ids)[0]]  # the last batch may be short
        keys, fate, tokens = tf.split(numbers, [rules.length, slots, slots], axis=1)

        lengths = tf.reduce_sum(batch["input_mask"], axis=1)
        # In double precision, so that halves are rounded as the original rounds them.
        wanted = tf.round(tf.cast(lengths, tf.float64) * rules.prob)
        wanted = tf.clip_by_value(tf.cast(wanted, tf.int32), 1, rules.wanted_slots)
        candidates = real & (ids != rules.cls) & (ids != rules.sep)
        if rules.continues is None:
            positions, counts = self._choose_pieces(keys, candidates, wanted)
        else:
            positions, counts = self._choose_words(keys, candidates, wanted, ids)

        used = tf.range(slots) < counts[:, None]
        places = tf.where(used, positions, 0)
        originals = tf.where(used, tf.gather(ids, places, batch_dims=1), 0)
        random_ids = tf.cast(tokens * rules.vocab_size, tf.int32)
        random_ids = tf.minimum(random_ids, rules.vocab_size - 1)  # float32 may round up
        becomes = tf.where(fate < rules.mask_below, rules.mask, originals)
        becomes = tf.where(fate >= rules.same_below, random_ids, becomes)
        becomes = tf.where(used, becomes, rules.cls)  # slots without use write [CLS] where it is
        flat = places + tf.range(tf.shape(ids)[0])[:, None] * rules.length
        corrupted = tf.tensor_scatter_nd_update(
            tf.reshape(ids, [-1]), tf.reshape(flat, [-1, 1]), tf.reshape(becomes, [-1])
        )
        missing = [[0, 0], [0, rules.wanted_slots - slots]]
        return batch | {
            "input_ids": tf.reshape(corrupted, tf.shape(ids)),
            "masked_lm_positions": tf.pad(places, missing),
            "masked_lm_ids": tf.pad(originals, missing),
            "masked_lm_weights": tf.pad(tf.cast(used, tf.float32), missing),
        }

    def _choose_pieces(self, keys, candidates, wanted):
        """Random places of each row: int32 [rows, slots], ascending; the length where unused."""
        rules = self._rules
        keys = tf.where(candidates, keys, -1.0)
        _, places = tf.math.top_k(keys, rules.slots)
        counts = tf.minimum(wanted, tf.reduce_sum(tf.cast(candidates, tf.int32), axis=1))
        places = tf.where(tf.range(rules.slots) < counts[:, None], places, rules.length)
        return _ascending(places), counts

    def _choose_words(self, keys, candidates, wanted, ids):
        """As `_choose_pieces`, by whole words; a word that would overflow the budget is skipped."""
        rules = self._rules
        before = tf.pad(ids[:, :-1], [[0, 0], [1, 0]], constant_values=rules.cls)
        inside = (before != rules.cls) & (before != rules.sep)
        starts = candidates & ~(tf.gather(tf.constant(rules.continues), ids) & inside)
        word = tf.cumsum(tf.cast(starts, tf.int32), axis=1) - 1  # [rows, length]
        word = tf.where(candidates, word, rules.length)
        rows = tf.shape(ids)[0]
        flat = word + tf.range(rows)[:, None] * (rules.length + 1)
        sizes = tf.math.bincount(tf.reshape(flat, [-1]), minlength=rows * (rules.length + 1))
        sizes = tf.reshape(sizes, [rows, rules.length + 1])[:, :-1]
        words = tf.reduce_sum(tf.cast(starts, tf.int32), axis=1)

        # The first key of a row serves its first word, and so on: any order of words is as likely.
        keys = tf.where(tf.range(rules.length) < words[:, None], keys, -1.0)
        order = tf.argsort(keys, direction="DESCENDING", stable=True)
        ordered = tf.transpose(tf.gather(sizes, order, batch_dims=1))  # [length, rows]
        limit = tf.reduce_max(words)

        def undecided(step, room, _):
            return (step < limit) & tf.reduce_any((room > 0) & (step < words))

        def take(step, room, taken):
            size = ordered[step]
            fits = (size > 0) & (size <= room)
            return step + 1, room - tf.where(fits, size, 0), taken.write(step, fits)

        steps, _, taken = tf.while_loop(
            undecided,
            take,
            (0, wanted, tf.TensorArray(tf.bool, size=0, dynamic_size=True, element_shape=[None])),
        )
        taken = tf.transpose(taken.stack())  # [rows, steps]
        taken = tf.pad(taken, [[0, 0], [0, rules.length + 1 - steps]])
        # Back from the random order to the order of the words.
        inverse = tf.argsort(order, stable=True)
        inverse = tf.pad(inverse, [[0, 0], [0, 1]], constant_values=rules.length)
        chosen = tf.gather(tf.gather(taken, inverse, batch_dims=1), word, batch_dims=1) & candidates
        counts = tf.reduce_sum(tf.cast(chosen, tf.int32), axis=1)
        places = tf.where(chosen, tf.range(rules.length), rules.length)
        return _ascending(places)[:, : rules.slots], counts


def _ascending(places):
    # top_k is far faster than tf.sort on short rows of integers.
    return -tf.math.top_k(-places, tf.shape(places)[1]).values
