"""RoBERTa (Liu et al. 2019): BERT with one segment, byte pairs, and two positions never used.

XLM-RoBERTa differs in its tokeniser alone.
"""

from experiments.beyond.common.names import CLASSIFIER, own_activation
from official_bert.checkpoints.member import SIZES, Backbone, Member


def _from_keras_hub(theirs, place: str, do_lower_case: bool | None):
    from experiments.beyond.byte_pair.files import pair_of, pieces_of
    from experiments.beyond.byte_pair.tokenizer import BytePairTokenizer

    where = f"{place}: the tokenizer's vocabulary"
    merges = [pair_of(merge, where) for merge in theirs.merges if "#version" not in merge]
    pieces = pieces_of(theirs.vocabulary, where)
    return BytePairTokenizer(pieces, merges, bool(theirs.add_prefix_space))


def _to_keras_hub(make, tokenizer):
    return make(
        vocabulary={piece: index for index, piece in enumerate(tokenizer.vocab)},
        merges=[" ".join(pair) for pair in tokenizer.merges],
        add_prefix_space=tokenizer.add_prefix_space,
    )


class Roberta(Member):
    """An encoder with one segment goes out as RoBERTa unless its tokeniser is BERT's."""

    name = "roberta"
    classes = "Roberta"
    prefix = "roberta"
    renames = (
        ("lm_head.dense.", "cls.predictions.transform.dense."),
        ("lm_head.layer_norm.", "cls.predictions.transform.LayerNorm."),
        ("lm_head.", "cls.predictions."),
    )
    head_renames = {"classification": CLASSIFIER}
    unused_positions = 2
    tokenizer = "byte_pair"
    sign = r"roberta\."
    backbone = Backbone(
        "RobertaBackbone",
        SIZES,
        {
            "gelu_form": "erf",
            "type_vocab_size": 0,
            "pooler_activation": "none",
            "layer_norm_eps": 1e-5,
            "pad_token_id": 1,
        },
        "RobertaTokenizer",
        fits=lambda c: c.type_vocab_size < 2 and c.layer_norm_eps == 1e-5,
        rank=2,
        pooler="",
        one_segment=True,
        pieces="byte_pair",
        tokenizer_from=_from_keras_hub,
        tokenizer_to=_to_keras_hub,
    )
    rank = 5

    def read(self, fields):
        # The padding's id, 1, and that before it have rows of their own: text begins at 2.
        if fields.get("pad_token_id") not in (None, 1):
            raise ValueError(f"pad_token_id {fields['pad_token_id']}, only 1 is read")
        positions = fields["max_position_embeddings"] - self.unused_positions
        return {"max_position_embeddings": positions, "pad_token_id": 1}

    def their_config(self, fields, config):
        positions = fields["max_position_embeddings"] + self.unused_positions
        ends = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
        return {**fields, "max_position_embeddings": positions, **ends}

    def fits(self, config, algorithm):
        one_segment = config.type_vocab_size == 1 and algorithm != "WordPiece"
        return one_segment and config.attention_direction == "bidirectional"

    def needed(self, config, objectives):
        return super().needed(config, objectives) | own_activation(objectives)


class XlmRoberta(Roberta):
    """RoBERTa of a hundred languages (Conneau et al. 2020), whose tokeniser cuts unigrams."""

    name = "xlm-roberta"
    classes = "XLMRoberta"
    tokenizer = "unigram"
    rank = Roberta.rank - 1

    def fits(self, config, algorithm):
        return algorithm == "Unigram" and super().fits(config, algorithm)


ROBERTA, XLM_ROBERTA = Roberta(), XlmRoberta()
