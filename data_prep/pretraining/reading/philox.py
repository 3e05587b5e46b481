"""TensorFlow's stateless random numbers, in numpy: equal seeds give equal bits.

The generator is Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
From a counter of four words of 32 bits and a key of two it makes four random words. TensorFlow's
seed, two int64, is scrambled by one such block into the key and the counter's upper half; the lower
half counts the blocks.
"""

import numpy as np

_WORD = 0xFFFFFFFF
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
KEY_STEPS = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
# The key under which TensorFlow scrambles a seed.
_SCRAMBLING_KEY = 0x3EC8F720, 0x02461E29


def uniform(shape, seed) -> np.ndarray:
    """Return float32 [shape] in [0, 1), as `tf.random.stateless_uniform(shape, seed,
    alg="philox")`."""
    words = _words(int(np.prod(shape)), seed)
    # 23 bits become the mantissa of a float between 1 and 2.
    floats = ((words & 0x7FFFFF) | 0x3F800000).astype(np.uint32).view(np.float32)
    return (floats - np.float32(1)).reshape(shape)


def integers(size: int, seed) -> np.ndarray:
    """Return int64 [size] of 64 random bits, as `stateless_uniform` with minval and maxval None."""
    words = _words(2 * size, seed)
    return (words[::2] | words[1::2] << np.uint64(32)).view(np.int64)


def fold(seed: int, *numbers: int) -> tuple[int, int]:
    """Fold the numbers of a place in the data into the run's seed, one after another.

    This is `tf.random.experimental.stateless_fold_in`.
    """
    folded = seed % 2**62, 0
    for number in numbers:
        folded = int(integers(1, folded)[0]), int(number)
    return folded


def permutation(size: int, seed) -> np.ndarray:
    """Return a permutation, int64 [size], that depends on the seed alone, not on versions."""
    return np.argsort(integers(size, seed), kind="stable")


def state(seed) -> np.ndarray:
    """Return the state of a seed, uint32 [4]: the key, and the upper half of the counter."""
    first, second = (int(number) % 2**64 for number in seed)
    counter = [first & _WORD, first >> 32, second & _WORD, second >> 32]
    words = _block([np.array([word], np.uint64) for word in counter], _SCRAMBLING_KEY)
    return np.concatenate(words).astype(np.uint32)


def _words(count, seed):
    """Return uint64 [count], each with 32 random bits."""
    *key, third, fourth = map(int, state(seed))
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    zeros = np.zeros_like(blocks)
    counter = [blocks, zeros, zeros + np.uint64(third), zeros + np.uint64(fourth)]
    return np.stack(_block(counter, key), axis=1).ravel()[:count]


def _block(counter, key):
    """Map the counter's four arrays of words to four of random words."""
    a, b, c, d = counter
    key = list(key)
    for _ in range(ROUNDS):
        of_a, of_c = a * np.uint64(MULTIPLIERS[0]), c * np.uint64(MULTIPLIERS[1])
        a, b, c, d = (
            (of_c >> np.uint64(32)) ^ b ^ np.uint64(key[0]),
            of_c & np.uint64(_WORD),
            (of_a >> np.uint64(32)) ^ d ^ np.uint64(key[1]),
            of_a & np.uint64(_WORD),
        )
        key = [(word + step) & _WORD for word, step in zip(key, KEY_STEPS, strict=True)]
    return a, b, c, d
