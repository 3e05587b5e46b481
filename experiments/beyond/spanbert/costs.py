"""FLOPs of SpanBERT's head, from shapes."""


def span_boundary(bert, options, rows: int, length: int, masked: int) -> float:
    """Return the FLOPs of one forward pass: a wider dense layer, then a language-model head."""
    wide = 2 * bert.hidden_size * (2 * bert.hidden_size + options.get("position_size", 200))
    return rows * masked * wide + bert.head_flops(rows * masked)
