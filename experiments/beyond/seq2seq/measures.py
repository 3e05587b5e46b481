"""BLEU of sums over examples, in points of 100."""

import numpy as np


def bleu(sums):
    """Return BLEU [...] of sums [..., 10]: matches and n-grams of one to four words, words, words
    of the targets. Where no n-gram of a length matches, a half, a quarter, ... counts
    as found, as in sacrebleu."""
    matches, grams = sums[..., :4], np.maximum(sums[..., 4:8], 1e-12)
    none = matches <= 0
    shares = np.where(none, 0.5 ** np.cumsum(none, axis=-1), matches) / grams
    brevity = np.exp(np.minimum(0, 1 - sums[..., 9] / np.maximum(sums[..., 8], 1e-12)))
    found = 100 * brevity * np.exp(np.log(shares).mean(axis=-1))
    return np.where(none.all(axis=-1) | (sums[..., 4:8] <= 0).any(axis=-1), 0.0, found)


def bleu_gap(sums):
    """Return the BLEU of a part of the examples above that of another, of sums [..., 20]."""
    return bleu(sums[..., :10]) - bleu(sums[..., 10:])
