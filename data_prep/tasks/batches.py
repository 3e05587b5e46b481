"""Batches of features, padded to buckets of lengths, in an order that the seed alone decides.

Users' texts are short: where the longest of a batch has 30 tokens, padding to 128 is four times the
work. Lengths are rounded up to multiples (of 32 unless told otherwise), so that a compiled step is
reused; `buckets=None` pads everything to the features' maximum, the static shapes that TPUs need.

Every batch has exactly `batch_size` rows. Missing ones, in the one short batch of an epoch, are
padding with `example_weights` 0, so that shapes stay few and replicas get equal shares.
"""

from collections.abc import Iterator

import numpy as np

# Fields that models read; a feature's other fields are for `Task.predictions`.
_MODEL_FIELDS = ("input_ids", "segment_ids", "label_ids", "start_positions", "end_positions")


def sizes_of(examples: list) -> np.ndarray:
    """Return how many examples each counts as, int64 [n]; one of several sentences has a `size`."""
    return np.array([getattr(example, "size", 1) for example in examples], np.int64)


def sample(examples: list, limit: int) -> list:
    """Return at most `limit` examples (0: all), always the same, in their order.

    They are drawn, since files may be sorted. If the last one that is drawn has more sentences than
    are wanted, it is cut to the first ones.
    """
    sizes = sizes_of(examples)
    if not limit or limit >= sizes.sum():
        return examples
    order = _permutation(np.random.Philox(key=[0, 0]), len(examples))
    before = np.cumsum(sizes[order]) - sizes[order]
    chosen = sorted(order[before < limit])
    left = {i: limit - taken for i, taken in zip(order, before, strict=True)}
    return [examples[i] if sizes[i] <= left[i] else examples[i].first(left[i]) for i in chosen]


class TrainBatches:
    """The batches of all epochs, by step; reading can start at any step at no cost.

    Within an epoch every feature appears exactly once. The order is drawn anew each epoch: features
    are permuted, stably sorted by bucket, cut into batches, and the batches permuted.

    Attributes:
      steps_per_epoch: ceil(features / batch_size).
    """

    def __init__(
        self,
        features,
        batch_size: int,
        seed: int,
        buckets: int | None = 32,
        multiple_of: int | None = None,
    ):
        """
        Args:
          features: a `FeatureSet`.
          batch_size: rows of every batch.
          seed: 0 <= seed < 2**63.
          buckets: features share batches if their lengths round up to the same multiple of this;
            None: any do.
          multiple_of: a batch is padded to the next multiple of this (at most the features'
            maximum); None: the bucket's length. A smaller one saves work where a step takes any
            length. Buckets stay coarse: where the length tells the label, as in spam, batches of
            equal lengths would hold one label each.
        """
        if not len(features):
            raise ValueError("no features to train on")
        self.features, self.batch_size, self.seed = features, batch_size, seed
        self.steps_per_epoch = num_batches(len(features), batch_size)
        self._lengths = bucket_lengths(features, buckets)
        self._padded = bucket_lengths(features, multiple_of) if multiple_of else self._lengths
        self._epoch_rows: tuple[int, list[np.ndarray]] = (-1, [])

    def batch(self, step: int) -> dict[str, np.ndarray]:
        """Return the batch of a step, counted from 0 over all epochs."""
        rows = self.rows(step)
        return make_batch(self.features, rows, self.batch_size, int(self._padded[rows].max()))

    def rows(self, step: int) -> np.ndarray:
        """Return the feature indices of a step's batch."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if self._epoch_rows[0] != epoch:
            self._epoch_rows = (epoch, self._order(epoch))
        return self._epoch_rows[1][position]

    def from_step(self, first: int, last: int) -> Iterator[dict[str, np.ndarray]]:
        """Yield the batches of steps first, first + 1, ..., last - 1."""
        for step in range(first, last):
            yield self.batch(step)

    def _order(self, epoch: int) -> list[np.ndarray]:
        count, size = len(self.features), self.batch_size
        bits = np.random.Philox(key=[self.seed, epoch])
        order = _permutation(bits, count)
        order = order[np.argsort(self._lengths[order], kind="stable")]
        # The short batch may be anywhere; at the end it would always hold the longest texts.
        sizes = np.full(self.steps_per_epoch, size)
        short = int(bits.random_raw() % self.steps_per_epoch)
        sizes[short] -= self.steps_per_epoch * size - count
        cut = np.split(order, np.cumsum(sizes)[:-1])
        return [cut[index] for index in _permutation(bits, self.steps_per_epoch)]


def eval_batches(
    features, batch_size: int, buckets: int | None = 32
) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Yield (feature indices, batch) over all features, the longest first.

    A batch has `batch_size` rows, of which the first len(indices) are real. `OutputCollector` puts
    the outputs back in order.
    """
    lengths = bucket_lengths(features, buckets)
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        yield rows, make_batch(features, rows, batch_size, int(lengths[rows].max()))


class OutputCollector:
    """Collects the outputs of `eval_batches` in the order of the features, for
    `Task.predictions`."""

    def __init__(self, num_features: int):
        self._rows = num_features
        self._outputs: dict[str, list] = {}

    def add(self, rows: np.ndarray, outputs: dict) -> None:
        """Keep the first len(rows) rows of each output [B, ...], of any type that numpy can
        read."""
        for name, values in outputs.items():
            kept = self._outputs.setdefault(name, [None] * self._rows)
            for row, value in zip(rows, np.asarray(values), strict=False):
                kept[row] = value

    def outputs(self) -> dict[str, list[np.ndarray]]:
        """Return {name: one array for each feature}.

        Raises:
          ValueError: a feature has no outputs.
        """
        for name, kept in self._outputs.items():
            missing = sum(value is None for value in kept)
            if missing:
                raise ValueError(f"{missing} features have no {name}")
        return self._outputs


def num_batches(num_features: int, batch_size: int) -> int:
    """Return the number of batches of one epoch."""
    return -(-num_features // batch_size)


def bucket_lengths(features, buckets: int | None) -> np.ndarray:
    """Return the padded length of each feature, [len(features)]."""
    if buckets is None:
        return np.full(len(features), features.max_seq_length)
    rounded = -(-features.lengths // buckets) * buckets
    return np.minimum(rounded, features.max_seq_length)


def make_batch(features, rows, batch_size: int, length: int) -> dict[str, np.ndarray]:
    """Return features `rows` as arrays [batch_size, length].

    For multiple choice they are [batch_size, C, length].

    int32 `input_ids`, `input_mask`, `segment_ids`, the labels that the features have (float32 where
    they are numbers, -1 where a token has none) and float32 `example_weights` [batch_size]. Padding
    rows hold one token, since the softmax over an empty mask is undefined.
    """
    batch = {}
    for name in _MODEL_FIELDS:
        if name in features.columns:
            fill = -1 if name == "label_ids" else 0
            batch[name] = features.columns[name].padded(rows, batch_size, length, fill)
    batch["input_mask"] = features.columns["input_ids"].mask(rows, batch_size, length)
    batch["input_mask"][len(rows) :, ..., 0] = 1
    batch["example_weights"] = (np.arange(batch_size) < len(rows)).astype(np.float32)
    if "label_ids" in batch and batch["label_ids"].ndim == 1:
        batch["label_ids"][len(rows) :] = 0  # a class that exists; its weight is 0
    return batch


def _permutation(bits: np.random.Philox, count: int) -> np.ndarray:
    # Raw bits are a fixed stream; Generator.permutation may change between numpy versions.
    return np.argsort(bits.random_raw(count), kind="stable")
