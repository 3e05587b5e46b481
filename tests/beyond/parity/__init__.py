"""Checks of what is beyond the paper; to import them registers them."""

from tests.beyond.parity import (
    beyond_checks,
    elmo_checks,
    family_checks,
    lora_checks,
    seq2seq_checks,
    tokenizer_checks,
)

MODULES = {
    one.__name__
    for one in (
        beyond_checks,
        elmo_checks,
        family_checks,
        lora_checks,
        seq2seq_checks,
        tokenizer_checks,
    )
}
