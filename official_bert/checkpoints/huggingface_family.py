"""RoBERTa, ALBERT, DistilBERT and ELECTRA as Hugging Face stores them, told in BERT's names.

Each differs from BERT, the first of `MEMBERS`, in a few fields and in what its tensors are called.
Both are translated here; everything else is `huggingface`'s.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from official_bert.common.errors import UserError

# Fields of `BertConfig` that the translations add to those of BERT's config.json.
OUR_FIELDS = (
    "embedding_size",
    "num_hidden_groups",
    "pooler_activation",
    "embedding_norm",
    "prediction_transform",
)
POSITIONS = "bert.embeddings.position_embeddings.weight"


@dataclasses.dataclass(frozen=True)
class Member:
    """One family.

    Attributes:
      prefix: of its encoder's tensors, where BERT has "bert".
      classes: how its classes begin in `transformers`.
      renames: (its fragment of a tensor's name, BERT's) pairs, in this order in both directions;
        "{}" stands for a number, and what does not begin with "." begins the name.
      fields: what BERT's config.json would say, from its own.
      head_renames: head -> further pairs, which only classes with it have.
      dense: activation of the dense layer between encoder and classifier; where it is not "tanh"
        the encoder alone has no such layer.
      unused_positions: rows before the first position that is used.
      tokenizer: the kind of its tokeniser, by its name in `tokenization.KINDS`.
      sign: regular expression of what begins the name, or a part of it, of its tensors only.
      anchor: ends the name of the one tensor that each has: its token table.
    """

    prefix: str
    classes: str
    renames: tuple[tuple[str, str], ...]
    fields: Callable[[dict[str, Any]], dict[str, Any]]
    head_renames: Mapping[str, tuple[tuple[str, str], ...]] = dataclasses.field(
        default_factory=dict
    )
    dense: str = "tanh"
    unused_positions: int = 0
    tokenizer: str = "word_piece"
    sign: str = ""
    anchor: str = "embeddings.word_embeddings.weight"

    def bert_fields(self, fields: dict[str, Any], path: Path) -> dict[str, Any]:
        """
        Raises:
          UserError: a field is missing or of the wrong type.
        """
        try:
            return {**fields, **self.fields(fields)}
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path}: a field is missing or wrong: {error}") from None

    def table_names(self, stored) -> dict[str, str]:
        """{BERT's name: name in the file, or that without what `transfer.rooted` takes off}."""
        bare = not any(name.startswith(f"{self.prefix}.") for name in stored)
        return {self._berts(name, bare): name for name in stored}

    def reader(self, read: Callable, stored: Mapping[str, str], fields: dict) -> Callable:
        """`read` without the rows of positions that are never used.

        Args:
          read: gives the array of a stored name.
          stored: of `table_names`.
          fields: of config.json.
        """
        positions = stored.get(POSITIONS)
        return lambda name: read(name)[self.unused_positions :] if name == positions else read(name)

    def own_name(self, name: str, head: str) -> str:
        """Its name of one of BERT's tensors in a model with this head of ours."""
        for theirs, berts in (*self.head_renames.get(head, ()), *self.renames):
            name = _renamed(name, berts, theirs)
        return re.sub(r"^bert\.", f"{self.prefix}.", name)

    def _berts(self, name: str, bare: bool) -> str:
        # An encoder alone is stored without the prefix.
        bare = bare and name.startswith(("embeddings", "encoder.", "transformer.", "pooler."))
        name = f"bert.{name}" if bare else re.sub(rf"^{self.prefix}\.", "bert.", name)
        # The oldest files call the parameters of LayerNorm so.
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
        name = name.replace("LayerNorm.beta", "LayerNorm.bias")
        of_heads = (pair for pairs in self.head_renames.values() for pair in pairs)
        for theirs, berts in (*of_heads, *self.renames):
            name = _renamed(name, theirs, berts)
        return name


def _renamed(name: str, old: str, new: str) -> str:
    pattern = re.escape(old).replace(r"\{\}", r"(\d+)")
    pattern = pattern if old.startswith(".") else f"^{pattern}"
    return re.sub(pattern, new.replace("{}", r"\1"), name)


def _pooler(fields: dict[str, Any], classifier: str) -> str:
    """The activation of the layer before a classifier, "none" where the class has no such layer."""
    architecture = (fields.get("architectures") or [""])[0]
    has_one = architecture.endswith(("SequenceClassification", "MultipleChoice"))
    return classifier if has_one else "none"


def _roberta(fields: dict[str, Any]) -> dict[str, Any]:
    # The padding's id, 1, and that before it have rows of their own: text begins at 2.
    if fields.get("pad_token_id") not in (None, 1):
        raise ValueError(f"pad_token_id {fields['pad_token_id']}, only 1 is read")
    return {"max_position_embeddings": fields["max_position_embeddings"] - 2, "pad_token_id": 1}


def _albert(fields: dict[str, Any]) -> dict[str, Any]:
    if fields.get("inner_group_num", 1) != 1:
        raise ValueError(f"inner_group_num {fields['inner_group_num']}, only 1 is read")
    return {
        "num_hidden_groups": fields.get("num_hidden_groups", 1),
        "hidden_act": fields.get("hidden_act", "gelu_new"),
        "embedding_size": fields.get("embedding_size", 128),
    }


_CLASSIFIER = (
    ("classifier.out_proj.", "classifier."),
    ("classifier.dense.", "bert.pooler.dense."),
)
_PRE_CLASSIFIER = (("pre_classifier.", "bert.pooler.dense."),)

MEMBERS = {
    "bert": Member("bert", "Bert", (), lambda fields: {}, sign=r"bert\."),
    "roberta": Member(
        "roberta",
        "Roberta",
        (
            ("lm_head.dense.", "cls.predictions.transform.dense."),
            ("lm_head.layer_norm.", "cls.predictions.transform.LayerNorm."),
            ("lm_head.", "cls.predictions."),
        ),
        _roberta,
        head_renames={"classification": _CLASSIFIER},
        unused_positions=2,
        tokenizer="byte_pair",
        sign=r"roberta\.",
    ),
    "albert": Member(
        "albert",
        "Albert",
        (
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
        ),
        _albert,
        tokenizer="sentence_piece",
        sign=r"albert\.|albert_layer_groups\.",
    ),
    "distilbert": Member(
        "distilbert",
        "DistilBert",
        (
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
        ),
        lambda f: {
            "hidden_size": f["dim"],
            "num_hidden_layers": f["n_layers"],
            "num_attention_heads": f["n_heads"],
            "intermediate_size": f["hidden_dim"],
            "hidden_act": f.get("activation", "gelu"),
            "hidden_dropout_prob": f.get("dropout", 0.1),
            "attention_probs_dropout_prob": f.get("attention_dropout", 0.1),
            "type_vocab_size": 0,
            "pooler_activation": _pooler(f, "relu"),
        },
        head_renames={"classification": _PRE_CLASSIFIER, "multiple_choice": _PRE_CLASSIFIER},
        dense="relu",
        sign=r"distilbert\.|transformer\.layer\.",
    ),
    "electra": Member(
        "electra",
        "Electra",
        (
            ("generator_predictions.", "cls.predictions.transform."),
            ("generator_lm_head.bias", "cls.predictions.bias"),
            ("generator_lm_head.", "cls.predictions.decoder."),
        ),
        lambda f: {
            "embedding_size": f["embedding_size"] if f["embedding_size"] != f["hidden_size"] else 0,
            "pooler_activation": _pooler(f, "gelu"),
        },
        head_renames={
            "classification": _CLASSIFIER,
            "multiple_choice": (("sequence_summary.summary.", "bert.pooler.dense."),),
        },
        dense="gelu",
        sign=r"electra\.|(generator|discriminator)_predictions\.",
    ),
}
