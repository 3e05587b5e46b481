"""Stateless randomness: dropout masks as a pure function of (seed, step, replica, layer).

A seed is an int32 tensor [2]: a number for the run and replica, and a number for the step. Layers
fold their own number into it. No state is kept, so a resumed run draws what the uninterrupted run
would have drawn, recomputed activations see the mask they saw before, and replicas differ. (Keras'
own Dropout keeps a counter in a variable, which tf.distribute mirrors: all replicas of a
MirroredStrategy draw the same mask.)
"""

import keras
from keras import ops

from official_bert.backend import place_hash, replicas

# Seeds of neighbouring layers lie this far apart. Keras on PyTorch seeds its generator with the sum
# of both numbers, so the distance must exceed the number of steps for (layer, step) pairs to stay
# distinct.
_LAYER_STRIDE = 1_000_003
_SEED_RANGE = 2**30

# How dropout masks are drawn. Checkpoints note it, since a run goes on with masks of one kind.
MASKS = "hash of the place"

# The numbers that `fold_in` folds into a step's seed. An encoder of L blocks has 0 for its
# embeddings and 1 to 3 L for its blocks, three each; heads begin beyond the deepest encoder.
SECOND_ENCODER = 450  # plus an encoder's numbers; for an extension's second encoder
HEAD_DROPOUT = 900
FEATURE_DROPOUT = 950  # plus the number of the BiLSTM that reads the vectors
OF_EXTENSIONS = 980  # to 999: of extensions' objectives
PREDICTED_POSITIONS = 1000  # of left-to-right models; plus 1 of what reads right to left


def make_seed(run_seed, step, replica=0):
    """Return the seed of one training step on one replica.

    Args:
      run_seed: int, or int32 scalar tensor.
      step: int, or int32 scalar tensor; the number of the step (of the micro-step when gradients
        are accumulated).
      replica: int, or int32 scalar tensor.

    Returns:
      int32 tensor [2].
    """
    run_seed = ops.cast(run_seed, "int32") + 7_368_787 * ops.cast(replica, "int32")
    return ops.stack([ops.mod(run_seed, _SEED_RANGE), ops.cast(step, "int32")])


def fold_in(seed, number: int):
    """Return the seed of part `number` of something that has `seed`; None stays None
    (inference)."""
    if seed is None:
        return None
    return seed + ops.convert_to_tensor([number * _LAYER_STRIDE, 0], dtype="int32")


def next_seed(generator: keras.random.SeedGenerator):
    """Draw a seed from a model's generator, for callers that pass none (`fit`, user code)."""
    run_seed, step = ops.unstack(ops.cast(generator.next(), "int32"), num=2)
    return make_seed(run_seed, step, replicas.number())


def dropout(x, rate: float, seed):
    """Zero each number of `x` with probability `rate` and divide the others by 1 - rate.

    A mask is a hash of the seed and the place (`backend.place_hash`): the same numbers are dropped
    on every backend. The rate is rounded to a multiple of 2**-16.

    Args:
      x: float tensor of any shape.
      rate: float in [0, 1).
      seed: int32 tensor [2], or None to return `x` unchanged (inference).
    """
    if seed is None or rate == 0:
        return x
    if keras.backend.backend() == "tensorflow":
        from official_bert.backend.tensorflow_kernels import dropout as tensorflow_dropout

        return tensorflow_dropout(x, rate, seed)
    if keras.backend.backend() == "jax":
        from official_bert.backend.jax_kernels import dropout as jax_dropout

        return jax_dropout(x, rate, place_hash.keys(seed))
    return x * place_hash.factors(x, rate, place_hash.keys(seed))


def uniform(shape, seed):
    """Return float32 numbers in [0, 1) that depend on the seed alone."""
    return keras.random.uniform(shape, seed=_GivenSeed(seed))


class _GivenSeed(keras.random.SeedGenerator):
    """Makes Keras' random functions use a seed that is already known."""

    def __init__(self, seed):
        self._seed = seed

    def next(self, ordered=True):
        dtype = "int32" if keras.backend.backend() == "tensorflow" else "uint32"
        return ops.cast(self._seed, dtype)
