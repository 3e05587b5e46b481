"""Shares that a data command prints, and the limits below which it stops.

What little is left of a text that was read by the wrong rules looks like any other text, and so do
words that a vocabulary does not know: only the shares tell.
"""

from collections.abc import Mapping

from official_bert.common.errors import UserError

LEAST_KEPT = 0.5  # of the characters read
MOST_UNKNOWN = 0.05  # of the tokens


def check_kept(kept: int, read: int, lost: Mapping[str, int], accept_loss: bool) -> None:
    """
    Args:
      kept, read: characters.
      lost: what went, by reason.

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
    """
    Args:
      unknown, total: tokens, or words.
      advice: what may be wrong.

    Raises:
      UserError: more than 5% are [UNK], unless `accept_loss`.
    """
    if not accept_loss and unknown > MOST_UNKNOWN * total:
        raise UserError(
            f"{unknown / total:.1%} of the text is [UNK]: {advice}. Pass --accept_loss to go on "
            "all the same"
        )


def by_reason(lost: Mapping[str, int]) -> list[str]:
    """The reasons, the largest first."""
    items = sorted(lost.items(), key=lambda item: (-item[1], item[0]))
    return [f"{reason}: {number:,}" for reason, number in items if number]
