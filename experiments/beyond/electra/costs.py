"""FLOPs of ELECTRA's generator and scores, from shapes."""

from experiments.beyond.electra.shape import narrower


def replaced_token(bert, options, rows: int, length: int, masked: int) -> float:
    """Return the FLOPs of one forward pass of the generator and of the scores of all tokens."""
    generator = narrower(bert, options.get("generator", 0.25))
    scores = rows * length * 2 * bert.hidden_size * (bert.hidden_size + 1)
    pieces = generator.head_flops(rows * masked)
    return generator.encoder_flops(rows, length) + pieces + scores
