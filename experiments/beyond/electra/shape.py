"""The shape of ELECTRA's generator; needs no Keras."""

from official_bert.config import BertConfig


def narrower(bert: BertConfig, share: float) -> BertConfig:
    """Return the shape of a model as deep as another and `share` as wide, on embedding tables of
    the same width (Clark et al. 2020, section 3.2)."""
    heads = max(1, round(share * bert.num_attention_heads))
    width = bert.hidden_size // bert.num_attention_heads * heads
    return bert.replaced(
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=max(1, round(bert.intermediate_size * width / bert.hidden_size)),
        embedding_size=bert.embedding_width,
    )
