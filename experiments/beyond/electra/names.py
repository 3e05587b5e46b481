"""ELECTRA (Clark et al. 2020): BERT with narrow tables and no pooler.

Its objective, and the generator beside it, are in `objective.py`.
"""

from experiments.beyond.common.names import CLASSIFIER, NarrowTables, own_activation, pooler
from official_bert.checkpoints.member import TANH, WITH_SEGMENTS, Member


class _Backbone(NarrowTables):
    def config(self, get, gelu_form=None):
        found = super().config(get, gelu_form)
        if found["embedding_size"] == found["hidden_size"]:
            found["embedding_size"] = 0  # it has no dense layer then
        return found


class Electra(Member):
    name = "electra"
    classes = "Electra"
    prefix = "electra"
    renames = (
        ("generator_predictions.", "cls.predictions.transform."),
        ("generator_lm_head.bias", "cls.predictions.bias"),
        ("generator_lm_head.", "cls.predictions.decoder."),
    )
    head_renames = {
        "classification": CLASSIFIER,
        "multiple_choice": (("sequence_summary.summary.", "bert.pooler.dense."),),
    }
    dense = "gelu"
    sign = r"electra\.|(generator|discriminator)_predictions\."
    backbone = _Backbone(
        "ElectraBackbone",
        {**WITH_SEGMENTS, "vocab_size": "vocab_size", "embedding_size": "embedding_dim"},
        TANH,
        "ElectraTokenizer",
        fits=lambda c: bool(c.value("embedding_size")),
        rank=1,
        pooler="",
    )
    rank = 4

    def read(self, fields):
        width = fields["embedding_size"]
        return {
            "embedding_size": width if width != fields["hidden_size"] else 0,
            "pooler_activation": pooler(fields, "gelu"),
        }

    def their_config(self, fields, config):
        own = {"summary_activation": "gelu", "summary_use_proj": True}
        return {**fields, "embedding_size": config.embedding_width, **own}

    def fits(self, config, algorithm):
        return bool(config.value("embedding_size")) or config.value("pooler_activation") != "tanh"

    def needed(self, config, objectives):
        own = own_activation(objectives)
        if config.value("embedding_size") == config.hidden_size:
            own["embedding_size"] = 0  # there is no dense layer between tables and blocks then
        return super().needed(config, objectives) | own

    def pretraining_class(self, objectives):
        replaced = "replaced_token" in objectives
        return "ForPreTraining" if replaced else super().pretraining_class(objectives)

    def objectives(self, names, found):
        return ["replaced_token"] if "discriminator_predictions.dense.weight" in names else found


ELECTRA = Electra()
