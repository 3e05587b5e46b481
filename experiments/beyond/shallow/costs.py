"""FLOPs of language models in both directions, from shapes."""

from experiments.training.settings.flops import next_tokens


def both_directions(bert, options, rows: int, length: int, masked: int) -> float:
    """Return the FLOPs of the scores of the tokens behind and before each."""
    return 2 * next_tokens(bert, options, rows, length, masked)
