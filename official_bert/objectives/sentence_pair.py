"""What one says of two segments: whether the second follows the first (section 3.1, task #2)."""

import dataclasses

import keras

from official_bert.losses import correct, cross_entropy, row_weights, weighted_sum
from official_bert.objectives.protocol import Loss, Objective


@dataclasses.dataclass(frozen=True)
class NextSentence(Objective):
    """Predicts from the pooled output whether segment B is random (1) or follows A (0)."""

    name = "next_sentence"
    needs = ("next_sentence_labels",)
    metrics = ("next_sentence_accuracy",)
    majorities = {"next_sentence_majority": "next_sentence_labels"}
    of_pairs = True
    losses = {"next_sentence_loss": Loss()}

    def build(self, model, initializer):
        add_head(model, initializer)

    def call(self, model, batch, encoded):
        """{"next_sentence_logits": float32 [B, 2]}."""
        return {"next_sentence_logits": model.next_sentence(encoded["pooled_output"])}

    def loss_terms(self, batch, outputs):
        labels = batch["next_sentence_labels"][:, 0]
        losses = cross_entropy(outputs["next_sentence_logits"], labels)
        return {"next_sentence_loss": weighted_sum(losses, row_weights(batch, labels))}

    def metric_terms(self, batch, outputs):
        labels = batch["next_sentence_labels"][:, 0]
        hits = correct(outputs["next_sentence_logits"], labels)
        return {"next_sentence_accuracy": weighted_sum(hits, row_weights(batch, labels))}


def add_head(model, initializer) -> None:
    """Gives a `BertPretrainer` the layer `next_sentence`, H to 2, unless it has it."""
    if hasattr(model, "next_sentence"):
        return
    model.next_sentence = keras.layers.Dense(
        2, kernel_initializer=initializer, dtype="float32", name="next_sentence"
    )
    model.next_sentence.build((None, model.encoder.config.hidden_size))
