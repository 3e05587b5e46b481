"""The options of LoRA's fine-tuning (Hu et al. 2021, section 4.1)."""

import dataclasses

from experiments.training.settings.options import Options
from official_bert.common.errors import UserError


@dataclasses.dataclass(frozen=True)
class LoraOptions(Options):
    """The rank and the scale of the updates."""

    # Rank of the updates of each product of attention and feed-forward; the rest of the encoder
    # but its pooler is frozen. 0: the encoder itself is trained.
    lora_rank: int = 0
    # An update counts lora_alpha / lora_rank times; 0: once.
    lora_alpha: float = 0.0

    def __post_init__(self):
        if self.lora_alpha and not self.lora_rank:
            raise UserError("configuration: lora_alpha is the scale of updates; set lora_rank too")

    def check_model(self, config, task, bert):
        if config.features:
            raise UserError(
                "--config.lora_rank updates an encoder; with features it is frozen: leave one out"
            )

    def wrap(self, model, start, config, head, seed):
        from experiments.beyond.lora.low_rank import adapt

        if self.lora_rank:
            adapt(model.kept().encoder, self.lora_rank, self.lora_alpha or None, seed)
        return model

    def kept(self, model):
        from experiments.beyond.lora.low_rank import merged

        return merged(model) if self.lora_rank else model
