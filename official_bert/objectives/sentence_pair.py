"""Next sentence prediction (section 3.1, task #2): whether the second segment follows the first."""

import dataclasses

import keras

from official_bert.layers import dense
from official_bert.losses import row_weights
from official_bert.objectives.protocol import Choice, Loss


@dataclasses.dataclass(frozen=True)
class NextSentence(Choice):
    """Predicts from the pooled output whether segment B is random (1) or follows A (0)."""

    name = "next_sentence"
    needs = ("next_sentence_labels",)
    metrics = ("next_sentence_accuracy",)
    majorities = {"next_sentence_majority": "next_sentence_labels"}
    of_pairs = True
    losses = {"next_sentence_loss": Loss()}

    def build(self, model, initializer):
        add_head(model, initializer)

    def why_not_of(self, made):
        if made.get("packing") != "consecutive":
            return ""
        return (
            "hardly a second segment is random, and next_sentence asks which are; choose an "
            "objective of their order, or make records with --packing=segments"
        )

    def call(self, model, batch, encoded):
        """Return {"next_sentence_logits": float32 [B, 2]}."""
        return {"next_sentence_logits": model.next_sentence(encoded["pooled_output"])}

    def compared(self, batch, outputs):
        labels = batch["next_sentence_labels"][:, 0]
        return outputs["next_sentence_logits"], labels, row_weights(batch, labels)


def add_head(model, initializer, name="next_sentence") -> None:
    """Give a `BertPretrainer` the layer `name`, H to 2, unless it has it."""
    if hasattr(model, name):
        return
    width = model.encoder.config.hidden_size
    setattr(model, name, dense(width, 2, initializer, "float32", name, keras.layers.Dense))
