"""Shares that a data command prints, and the limits below which it stops.

The small rest of a text that wrong rules leave looks like any other text, and so do words that a
vocabulary does not know. Only the shares tell.

An uncased vocabulary changes words: where the original lower-cases, it strips every non-spacing
mark. On Latin letters these are accents; in Hindi, Thai or Khmer, whose letters have no capitals,
they are vowels and tones: कुल (total) and कल (tomorrow) become the same.
"""

from collections.abc import Mapping

import regex

from official_bert.common.errors import UserError
from official_bert.tokenization.reference import decomposed

LEAST_KEPT = 0.5  # of the characters read
MOST_UNKNOWN = 0.05  # of the tokens
_MANY_MARKED = 0.01  # share of the words
_MARKED = regex.compile(r"[\p{Lo}--\p{Hangul}]\p{M}*\p{Mn}", regex.V1)


def check_kept(kept: int, read: int, lost: Mapping[str, int], accept_loss: bool) -> None:
    """Check that enough of a text was kept.

    Args:
      kept, read: characters.
      lost: characters that were left out, by reason.

    Raises:
      UserError: less than half was kept, unless `accept_loss`.
    """
    if not accept_loss and kept < LEAST_KEPT * read:
        reasons = "; ".join(by_reason(lost)[:5])
        raise UserError(
            f"only {kept / read:.0%} of the {read:,} characters of text were kept, by the language "
            f"and the layout that were asked for{f' ({reasons})' if reasons else ''}. Pass "
            "--accept_loss to go on all the same"
        )


def check_unknown(unknown: int, total: int, advice: str, accept_loss: bool) -> None:
    """Check that few enough tokens, or words, are unknown.

    Args:
      unknown, total: numbers of tokens, or of words.
      advice: the likely cause, for the message.

    Raises:
      UserError: more than 5% are [UNK], unless `accept_loss`.
    """
    if not accept_loss and unknown > MOST_UNKNOWN * total:
        raise UserError(
            f"{unknown / total:.1%} of the text is [UNK]: {advice}. Pass --accept_loss to go on "
            "all the same"
        )


def by_reason(lost: Mapping[str, int]) -> list[str]:
    """Return "reason: number" texts, the largest number first."""
    items = sorted(lost.items(), key=lambda item: (-item[1], item[0]))
    return [f"{reason}: {number:,}" for reason, number in items if number]


def loses_marks(text: str) -> bool:
    """Return whether letters without capitals lose marks in a text."""
    return not text.isascii() and bool(_MARKED.search(decomposed(text)))


def warning_of_marks(words: int, total: int) -> str:
    """Return a warning where many of all words lose marks; "" where few do."""
    if words <= _MANY_MARKED * total:
        return ""
    return (
        f"warning: {words / total:.0%} of the words lose marks of letters that have no capitals "
        "(vowel signs, tones), as in the original; --strip_accents=false keeps them"
    )
