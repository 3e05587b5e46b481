"""The options of OpenAI GPT's fine-tuning."""

import dataclasses

from experiments.training.settings.options import Options
from official_bert.common.errors import UserError
from official_bert.objectives import parse_spec


@dataclasses.dataclass(frozen=True)
class GptOptions(Options):
    """The options of GPT's fine-tuning beside the task's loss."""

    # Left-to-right models: weight of the language model's loss beside the task's (GPT: 0.5).
    lm_loss_weight: float = 0.0
    # Draws the embeddings of what begins, divides and ends texts anew, as GPT does, where the model
    # has not been fine-tuned yet.
    draw_special_tokens: bool = False

    @property
    def adds_loss(self):
        return self.lm_loss_weight > 0

    def check_model(self, config, task, bert):
        if not self.lm_loss_weight:
            return
        if config.features:
            raise UserError("--config.lm_loss_weight: not together with features; leave one out")
        if bert and bert.attention_direction != "left_to_right":
            raise UserError(
                f"--config.lm_loss_weight={self.lm_loss_weight}: the next token is a question for "
                "models that read left to right; this one's direction is "
                f"{bert.attention_direction}"
            )

    def weights(self, arrays, encoder, start):
        is_new = (start.head or {}).get("head", "none") in ("none", "pretraining")
        if not (self.draw_special_tokens and is_new):
            return arrays
        table, tokens = encoder.embeddings.word_embeddings, start.tokenizer
        place = next(i for i, v in enumerate(encoder.trainable_variables) if v is table)
        rows = [tokens.cls_id, *tokens.between, tokens.sep_id]
        drawn, trained = table.numpy(), arrays[place].copy()
        trained[rows] = drawn[rows]
        return [*arrays[:place], trained, *arrays[place + 1 :]]

    def wrap(self, model, start, config, head, seed):
        """Return an `AuxiliaryLanguageModel`, with the checkpoint's head if it had one."""
        if not self.lm_loss_weight:
            return model
        from experiments.beyond.gpt.model import AuxiliaryLanguageModel

        model = AuxiliaryLanguageModel(model, self.lm_loss_weight, seed)
        trained = [parse_spec(one)[0] for one in start.trained]
        stored = start.head_weights if "next_token" in trained else {}
        stored = {path.partition("/")[2]: array for path, array in stored.items()}
        for variable in model.masked_lm.weights:
            if (path := variable.path.partition("/")[2]) in stored:
                variable.assign(stored[path])
        return model
