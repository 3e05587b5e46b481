"""FLOPs of texts that are written, from shapes."""


def written_flops(bert, sequences: int, length: int) -> float:
    """Return the FLOPs of one forward pass of encoder and decoder, on sources and targets of that
    length; cross attention counts as two thirds of a block's four products. An estimate for GRUs.
    """
    cross = sequences * length * bert.num_hidden_layers * 2 * 4 * bert.hidden_size**2
    return 2 * bert.encoder_flops(sequences, length) + cross + bert.head_flops(sequences * length)
