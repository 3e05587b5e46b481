"""Random numbers for the data: functions of (seed, purpose, block, duplication) alone.

They never depend on the order of work or the number of workers. Only the raw 64-bit output of the
Philox generator is used, which its definition fixes; numpy's own ways to draw floats, integers and
permutations may change between versions. So a seed gives the same records on every machine.
"""

import numpy as np
from numpy.random import Philox

# Purposes of streams. Each has its own streams, so that other masking options leave pairs and order
# as they are.
PAIRS, ORDER, MASKS = range(3)


class RandomStream:
    """One stream of random numbers, fixed by its four coordinates.

    Args:
      seed: any integer; taken modulo 2**64.
      purpose: PAIRS, ORDER or MASKS.
      block: index of the block of documents, below 2**40.
      duplication: index of the pass over the corpus, below 2**16.
    """

    def __init__(self, seed: int, purpose: int = 0, block: int = 0, duplication: int = 0):
        coordinates = (purpose << 56) | (block << 16) | duplication
        key = np.array([seed % 2**64, coordinates], np.uint64)
        self._generator = Philox(key=key)

    def raw(self, size: int) -> np.ndarray:
        """Return uint64 [size], every bit random."""
        return self._generator.random_raw(size)


def uniform(raw: np.ndarray) -> np.ndarray:
    """Return float64 in [0, 1) from the upper 53 bits of uint64 numbers."""
    return (raw >> np.uint64(11)) * 2.0**-53


def below(raw: np.ndarray, bound) -> np.ndarray:
    """Return int64 in [0, bound) from uint64 numbers; `bound` is a number or an array alike."""
    return (uniform(raw) * bound).astype(np.int64)
