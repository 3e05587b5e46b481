"""Numbers, intervals and lists of a report as text."""

from collections.abc import Sequence

from experiments.tables.judging.intervals import Effect

MINUS = "\N{MINUS SIGN}"


def interval(effect: Effect | None, digits: int = 2) -> str:
    """Return "+3.50 [1.25, 5.75]", or the mean alone without an interval."""
    if effect is None:
        return ""
    shown = "" if effect.low is None else f" {bounds((effect.low, effect.high), digits)}"
    if shown and effect.pretrain_seeds == 1 and effect.restarts <= 1:
        shown += ", examples only"
    return signed(effect.mean, digits) + shown


def bounds(ends: Sequence[float], digits: int = 2) -> str:
    """Return "[1.25, 5.75]"."""
    return f"[{number(ends[0], digits)}, {number(ends[1], digits)}]"


def count(many: int, thing: str) -> str:
    return f"{many} {thing}" + ("" if many == 1 else "s")


def are(many: int, thing: str = "") -> str:
    return f"{count(many, thing) if thing else many} {'is' if many == 1 else 'are'}"


def join(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def number(value: float, digits: int = 1) -> str:
    shown = f"{value:,.{digits}f}"
    if float(shown.replace(",", "")) == 0:
        shown = shown.lstrip("-")
    return shown.replace("-", MINUS)


def signed(value: float, digits: int = 1) -> str:
    shown = number(value, digits)
    return shown if shown.startswith(MINUS) else f"+{shown}"
