"""The options of ULMFiT's fine-tuning (Howard and Ruder 2018, section 3)."""

import dataclasses

from experiments.training.settings.options import Options
from official_bert.common.errors import UserError, check_choice


@dataclasses.dataclass(frozen=True)
class UlmfitOptions(Options):
    """The classifier's pooling, gradual unfreezing and the learning rate."""

    # Classification: the head reads the maximum and the mean over the tokens too (ULMFiT).
    concat_pooling: bool = False
    # Epochs after which the next part below, from the head to the embeddings, begins to be trained
    # (ULMFiT: 1); 0: all are from the start.
    unfreeze_epochs: float = 0.0
    # "slanted_triangular" is ULMFiT's learning rate, with warmup_proportion=0.1.
    schedule: str = "linear"

    def __post_init__(self):
        check_choice("schedule", self.schedule, ("linear", "slanted_triangular"), "configuration")

    def check_model(self, config, task, bert):
        if self.concat_pooling and task.head["head"] != "classification":
            raise UserError(
                f"--config.concat_pooling is for classification; {config.task} is "
                f"{task.head['head']}"
            )

    def head(self):
        return {"concat_pooling": True} if self.concat_pooling else {}

    def step(self, steps_per_epoch):
        every = round(steps_per_epoch * self.unfreeze_epochs)
        more = {"optimizer_options": (("unfreeze_every", every),)} if every else {}
        return {"schedule": self.schedule, **more}
