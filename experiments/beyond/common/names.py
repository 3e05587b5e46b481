"""Parts that several successors' descriptions in other libraries share."""

import dataclasses
from typing import Any

from official_bert.checkpoints.member import Backbone
from official_bert.common.errors import UserError


@dataclasses.dataclass(frozen=True)
class NarrowTables(Backbone):
    """A backbone with a dense layer from tables of another width (ALBERT, ELECTRA)."""

    def arguments(self, config):
        return {**super().arguments(config), self.fields["embedding_size"]: config.embedding_width}

    def check(self, config):
        if not config.value("embedding_size"):
            raise UserError(
                f"KerasHub's {self.name} has an embedding_size of its own, this has none"
            )


def pooler(fields: dict[str, Any], classifier: str) -> str:
    """Return the activation of the layer before a classifier, "none" where the class has no such
    layer."""
    architecture = (fields.get("architectures") or [""])[0]
    has_one = architecture.endswith(("SequenceClassification", "MultipleChoice"))
    return classifier if has_one else "none"


CLASSIFIER = (
    ("classifier.out_proj.", "classifier."),
    ("classifier.dense.", "bert.pooler.dense."),
)


def own_activation(objectives: list[str]) -> dict[str, Any]:
    """Return the activation of a masked-LM head that has its own, whatever hidden_act says."""
    return {"hidden_act": "gelu", "gelu_form": "erf"} if "masked_lm" in objectives else {}
