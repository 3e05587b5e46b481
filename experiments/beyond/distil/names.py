"""DistilBERT (Sanh et al. 2019): BERT without segments and pooler, half as deep.

Its objective is `distillation`.
"""

from experiments.beyond.common.names import pooler
from official_bert.checkpoints.member import SIZES, Backbone, Member

_PRE_CLASSIFIER = (("pre_classifier.", "bert.pooler.dense."),)
# Fields of BERT's config.json -> its own.
_FIELDS = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}
_DEFAULTS = {"activation": "gelu", "dropout": 0.1, "attention_dropout": 0.1}


class DistilBert(Member):
    name = "distilbert"
    classes = "DistilBert"
    prefix = "distilbert"
    renames = (
        ("bert.transformer.", "bert.encoder."),
        (".attention.q_lin.", ".attention.self.query."),
        (".attention.k_lin.", ".attention.self.key."),
        (".attention.v_lin.", ".attention.self.value."),
        (".attention.out_lin.", ".attention.output.dense."),
        (".sa_layer_norm.", ".attention.output.LayerNorm."),
        (".ffn.lin1.", ".intermediate.dense."),
        (".ffn.lin2.", ".output.dense."),
        (".output_layer_norm.", ".output.LayerNorm."),
        ("vocab_transform.", "cls.predictions.transform.dense."),
        ("vocab_layer_norm.", "cls.predictions.transform.LayerNorm."),
        ("vocab_projector.bias", "cls.predictions.bias"),
        ("vocab_projector.", "cls.predictions.decoder."),
    )
    head_renames = {"classification": _PRE_CLASSIFIER, "multiple_choice": _PRE_CLASSIFIER}
    dense = "relu"
    sign = r"distilbert\.|transformer\.layer\."
    backbone = Backbone(
        "DistilBertBackbone",
        SIZES,
        {
            "gelu_form": "erf",
            "type_vocab_size": 0,
            "pooler_activation": "none",
            "layer_norm_eps": 1e-12,
        },
        "DistilBertTokenizer",
        fits=lambda c: not c.type_vocab_size,
        rank=3,
        pooler="",
    )
    rank = 3

    def read(self, fields):
        values = {**_DEFAULTS, **fields}
        own = {"type_vocab_size": 0, "pooler_activation": pooler(fields, "relu")}
        return {ours: values[theirs] for ours, theirs in _FIELDS.items()} | own

    def their_config(self, fields, config):
        left_out = ("type_vocab_size", "layer_norm_eps")
        dropout = config.hidden_dropout_prob
        return {
            **{_FIELDS.get(n, n): value for n, value in fields.items() if n not in left_out},
            "seq_classif_dropout": dropout,
            "qa_dropout": dropout,
            "sinusoidal_pos_embds": False,
        }

    def fits(self, config, algorithm):
        return not config.type_vocab_size

    def needed(self, config, objectives):
        own = {"embedding_size": 0, "layer_norm_eps": 1e-12}
        return super().needed(config, objectives) | own


DISTILBERT = DistilBert()
