"""Weights of languages in a corpus of several: the exponential smoothing of multilingual BERT.

A language with the share p of the text gets the share p^s / sum of p^s. With s = 0.7, as in
multilingual BERT, English at 21% of Wikipedia falls and Icelandic, a thousand times smaller, rises
several times. The language of a file is its folder: corpus/en/*.txt, corpus/is/*.txt.
"""

import os

from official_bert.common.errors import UserError


def language_of(path: str) -> str:
    """Return the name of the folder that a file lies in."""
    return os.path.basename(os.path.dirname(path))


def check(exponent: float) -> None:
    """Raise UserError unless the exponent is above 0 and at most 1."""
    if not 0 < exponent <= 1:
        raise UserError(
            f"language_exponent={exponent}: must be above 0 (all languages alike) and at most 1 "
            "(as the text has them)"
        )


def weights(sizes: dict[str, float], exponent: float) -> dict[str, float]:
    """Return the factor for each language's text that gives it its smoothed share.

    Args:
      sizes: size of each language's text, in any unit. The factors keep the sum of the sizes.
    """
    total = sum(sizes.values())
    smoothed = {name: (size / total) ** exponent for name, size in sizes.items() if size}
    scale = sum(smoothed.values())
    return {name: value / scale * total / sizes[name] for name, value in smoothed.items()}
