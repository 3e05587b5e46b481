"""RoBERTa, ALBERT, DistilBERT and ELECTRA as Hugging Face stores them, told in BERT's names.

Each differs from BERT in a few fields and in what its tensors are called. Both are translated here;
everything else is `huggingface`'s.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from official_bert.errors import UserError

# Fields of `BertConfig` that the translations add to those of BERT's config.json.
OUR_FIELDS = ("embedding_size", "num_hidden_groups", "pooler_activation")
_POSITIONS = "bert.embeddings.position_embeddings.weight"


@dataclasses.dataclass(frozen=True)
class Member:
    """One family.

    Attributes:
      prefix: of its encoder's tensors, where BERT has "bert".
      renames: (regular expression, replacement) pairs from its names to BERT's, in this order.
      fields: what BERT's config.json would say, from its own.
      unused_positions: rows before the first position that is used.
      tokenizer: the kind of its tokeniser, by its name in `tokenization.KINDS`.
    """

    prefix: str
    renames: tuple[tuple[str, str], ...]
    fields: Callable[[dict[str, Any]], dict[str, Any]]
    unused_positions: int = 0
    tokenizer: str = "word_piece"

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
        """{BERT's name: name in the file}."""
        return {self._renamed(name): name for name in stored}

    def reader(self, read: Callable, stored: Mapping[str, str]) -> Callable:
        """`read` without the rows of positions that are never used."""
        positions = stored.get(_POSITIONS)
        return lambda name: read(name)[self.unused_positions :] if name == positions else read(name)

    def _renamed(self, name: str) -> str:
        # A bare encoder is stored without the prefix.
        bare = name.startswith(("embeddings", "encoder.", "transformer.", "pooler."))
        name = f"bert.{name}" if bare else re.sub(rf"^{self.prefix}\.", "bert.", name)
        for pattern, replacement in self.renames:
            name = re.sub(pattern, replacement, name)
        return name


def _pooler(fields: dict[str, Any], bare: str, classifier: str) -> str:
    """The activation of the layer before a classifier, "none" where the class has no such layer."""
    architecture = (fields.get("architectures") or [""])[0]
    return classifier if architecture.endswith("SequenceClassification") else bare


def _albert(fields: dict[str, Any]) -> dict[str, Any]:
    if fields.get("inner_group_num", 1) != 1:
        raise ValueError(f"inner_group_num {fields['inner_group_num']}, only 1 is read")
    return {
        "num_hidden_groups": fields.get("num_hidden_groups", 1),
        "hidden_act": fields.get("hidden_act", "gelu_new"),
        "embedding_size": fields.get("embedding_size", 128),
    }


_CLASSIFIER = (
    (r"^classifier\.dense\.", "bert.pooler.dense."),
    (r"^classifier\.out_proj\.", "classifier."),
)

MEMBERS = {
    "roberta": Member(
        "roberta",
        (
            (r"^lm_head\.dense\.", "cls.predictions.transform.dense."),
            (r"^lm_head\.layer_norm\.", "cls.predictions.transform.LayerNorm."),
            (r"^lm_head\.", "cls.predictions."),
            *_CLASSIFIER,
        ),
        # The padding's id, 1, and that before it have rows of their own: text begins at 2.
        lambda f: {"max_position_embeddings": f["max_position_embeddings"] - 2},
        unused_positions=2,
        tokenizer="byte_pair",
    ),
    "albert": Member(
        "albert",
        (
            (r"encoder\.albert_layer_groups\.(\d+)\.albert_layers\.0\.", r"encoder.layer.\1."),
            (r"\.attention\.(query|key|value)\.", r".attention.self.\1."),
            (r"\.attention\.(dense|LayerNorm)\.", r".attention.output.\1."),
            (r"\.ffn\.", ".intermediate.dense."),
            (r"\.ffn_output\.", ".output.dense."),
            (r"\.full_layer_layer_norm\.", ".output.LayerNorm."),
            (r"\.encoder\.embedding_hidden_mapping_in\.", ".embeddings_project."),
            (r"^bert\.pooler\.", "bert.pooler.dense."),
            (r"^predictions\.(dense|LayerNorm)\.", r"cls.predictions.transform.\1."),
            (r"^predictions\.", "cls.predictions."),
        ),
        _albert,
        tokenizer="sentence_piece",
    ),
    "distilbert": Member(
        "distilbert",
        (
            (r"^bert\.transformer\.", "bert.encoder."),
            (r"\.attention\.q_lin\.", ".attention.self.query."),
            (r"\.attention\.k_lin\.", ".attention.self.key."),
            (r"\.attention\.v_lin\.", ".attention.self.value."),
            (r"\.attention\.out_lin\.", ".attention.output.dense."),
            (r"\.sa_layer_norm\.", ".attention.output.LayerNorm."),
            (r"\.ffn\.lin1\.", ".intermediate.dense."),
            (r"\.ffn\.lin2\.", ".output.dense."),
            (r"\.output_layer_norm\.", ".output.LayerNorm."),
            (r"^vocab_transform\.", "cls.predictions.transform.dense."),
            (r"^vocab_layer_norm\.", "cls.predictions.transform.LayerNorm."),
            (r"^vocab_projector\.bias", "cls.predictions.bias"),
            (r"^vocab_projector\.", "cls.predictions.decoder."),
            (r"^pre_classifier\.", "bert.pooler.dense."),
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
            "pooler_activation": _pooler(f, "none", "relu"),
        },
    ),
    "electra": Member(
        "electra",
        (
            (r"^generator_predictions\.", "cls.predictions.transform."),
            (r"^generator_lm_head\.bias", "cls.predictions.bias"),
            (r"^generator_lm_head\.", "cls.predictions.decoder."),
            *_CLASSIFIER,
        ),
        lambda f: {
            "embedding_size": f["embedding_size"] if f["embedding_size"] != f["hidden_size"] else 0,
            "pooler_activation": _pooler(f, "none", "gelu"),
        },
    ),
}
