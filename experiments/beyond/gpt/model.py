"""Fine-tuning that keeps the language model alive: OpenAI GPT's auxiliary objective.

Radford et al. 2018, section 3.2: the loss is the task's plus 0.5 times that of the language model
on the task's own texts. It works with every head on a left-to-right encoder.
"""

import keras
from keras import ops

from experiments.beyond.common.losses import WithOneMoreLoss
from official_bert.common.errors import UserError
from official_bert.losses import cross_entropy, row_weights, weighted_sum
from official_bert.objectives.masked_lm import language_model_head


class AuxiliaryLanguageModel(WithOneMoreLoss):
    """A model of `official_bert.heads` that also predicts the next tokens of what it reads.

    In evaluation it is the student alone, and so is what is saved.

    Args:
      student: the model to train; its encoder reads left to right.
      weight: of the language model's loss beside the labels'.
      seed: of the weights of the language model's head, where it has any.

    Raises:
      UserError: the encoder sees the tokens that it would have to predict.
    """

    def __init__(self, student, weight: float = 0.5, seed: int | None = None):
        super().__init__(student, "lm_loss", name="auxiliary_language_model")
        config = student.encoder.config
        if config.attention_direction != "left_to_right":
            raise UserError(
                "lm_loss_weight: the next token is a question for models that read left to right; "
                f"this encoder's attention_direction is {config.attention_direction!r}"
            )
        self.loss_weights = {**student.loss_weights, "lm_loss": weight}
        initializer = keras.initializers.TruncatedNormal(
            stddev=config.initializer_range, seed=keras.random.SeedGenerator(seed)
        )
        with keras.name_scope(self.name):
            # Named as a pre-trainer's, whose weights it takes over.
            self.masked_lm = language_model_head(
                config, initializer, dtype=self.dtype_policy, name="masked_lm"
            )
        self.built = True

    def call(self, batch, training=False, seed=None):
        """Return the student's outputs; in training also "lm_losses", float32 [B]: the mean over
        the real tokens that follow another, of a row or of the rows of a text with windows or
        choices."""
        if not training:
            return self.student(batch, training=False)
        student = self.student
        seed, rows = student.step_seed(True, seed), student.rows(batch)
        encoded = student.encoder(rows, training=True, seed=seed)
        outputs = student.answer(batch, rows, encoded, seed)
        table = student.encoder.embeddings.word_embeddings
        logits = self.masked_lm(encoded["sequence_output"][:, :-1], table)
        losses = cross_entropy(logits, rows["input_ids"][:, 1:])  # [N, L - 1]
        weights = ops.cast(rows["input_mask"][:, 1:], "float32")
        texts = ops.shape(batch["input_ids"])[0]
        sums = (ops.sum(ops.reshape(x, (texts, -1)), axis=1) for x in (losses * weights, weights))
        total, count = sums
        return {**outputs, "lm_losses": total / ops.maximum(count, 1.0)}

    def loss_terms(self, batch, outputs):
        """Return the student's loss terms and "lm_loss", a mean over texts, as in the original
        code."""
        terms = self.student.loss_terms(batch, outputs)
        if "lm_losses" in outputs:
            losses = outputs["lm_losses"]
            weights = row_weights(batch, losses)
            weights = weights if len(weights.shape) == 1 else ops.max(weights, axis=-1)
            terms["lm_loss"] = weighted_sum(losses, weights)
        return terms
