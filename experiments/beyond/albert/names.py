"""ALBERT (Lan et al. 2020): one block for all layers, narrow tables, the order of sentences.

Its objective, which BERT's records serve, is `objectives.sentence_pair.SentenceOrder`.
"""

from pathlib import Path

from experiments.beyond.common.names import NarrowTables
from official_bert.checkpoints.member import TANH, WITH_SEGMENTS, Member


def _from_keras_hub(theirs, place: str, do_lower_case: bool | None):
    from experiments.beyond.sentence_piece.tokenizer import SentencePieceTokenizer
    from official_bert.tokenization.vocabulary import lower_case_of

    lower = do_lower_case
    if lower is None:
        lower = lower_case_of(theirs.get_vocabulary(), place)
    return SentencePieceTokenizer(theirs.proto, lower)


def _check(preset: Path) -> None:
    from experiments.beyond.sentence_piece import tokenizer

    path = preset / "assets" / "tokenizer" / "vocabulary.spm"
    if path.is_file():  # before TensorFlow Text reads it
        tokenizer.check(tokenizer.read_file(path), str(path))


class Albert(Member):
    name = "albert"
    classes = "Albert"
    prefix = "albert"
    renames = (
        (".encoder.albert_layer_groups.{}.albert_layers.0.", ".encoder.layer.{}."),
        (".attention.query.", ".attention.self.query."),
        (".attention.key.", ".attention.self.key."),
        (".attention.value.", ".attention.self.value."),
        (".attention.dense.", ".attention.output.dense."),
        (".attention.LayerNorm.", ".attention.output.LayerNorm."),
        (".ffn.", ".intermediate.dense."),
        (".ffn_output.", ".output.dense."),
        (".full_layer_layer_norm.", ".output.LayerNorm."),
        (".encoder.embedding_hidden_mapping_in.", ".embeddings_project."),
        ("bert.pooler.", "bert.pooler.dense."),
        ("predictions.dense.", "cls.predictions.transform.dense."),
        ("predictions.LayerNorm.", "cls.predictions.transform.LayerNorm."),
        ("predictions.", "cls.predictions."),
    )
    tokenizer = "sentence_piece"
    sign = r"albert\.|albert_layer_groups\."
    backbone = NarrowTables(
        "AlbertBackbone",
        {
            **WITH_SEGMENTS,
            "embedding_size": "embedding_dim",
            "num_hidden_groups": "num_groups",
        },
        TANH,
        "AlbertTokenizer",
        fits=lambda c: bool(c.value("num_hidden_groups")),
        rank=0,
        renames=(
            (r"group_(\d+)_inner_layer_0/", r"transformer_layer_\1/"),
            ("embedding_projection/", "embeddings_projection/"),
        ),
        pieces="sentence_piece",
        check_preset=_check,
        tokenizer_from=_from_keras_hub,
        tokenizer_to=lambda make, tokenizer: make(proto=tokenizer.model),
        note="KerasHub gives a text to SentencePiece as it is: lower its case and take its accents "
        "off before, as ALBERT's own code does",
    )
    rank = 2
    pretraining_parts = ("sop_classifier.",)

    def read(self, fields):
        if fields.get("inner_group_num", 1) != 1:
            raise ValueError(f"inner_group_num {fields['inner_group_num']}, only 1 is read")
        return {
            "num_hidden_groups": fields.get("num_hidden_groups", 1),
            "hidden_act": fields.get("hidden_act", "gelu_new"),
            "embedding_size": fields.get("embedding_size", 128),
        }

    def their_config(self, fields, config):
        return {
            **fields,
            "embedding_size": config.value("embedding_size"),
            "num_hidden_groups": config.value("num_hidden_groups"),
            "inner_group_num": 1,
            "classifier_dropout_prob": config.hidden_dropout_prob,
        }

    def fits(self, config, algorithm):
        return bool(config.value("num_hidden_groups"))

    def needed(self, config, objectives):
        own = {"embedding_size": config.value("embedding_size") or "other than 0"}
        return super().needed(config, objectives) | own

    def pretraining_class(self, objectives):
        both = {"masked_lm", "sentence_order"} <= set(objectives)
        return "ForPreTraining" if both else super().pretraining_class(objectives)

    def objectives(self, names, found):
        return found + ["sentence_order"] * ("sop_classifier.classifier.weight" in names)


ALBERT = Albert()
