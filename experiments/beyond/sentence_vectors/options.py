"""The options of training sentence vectors."""

import dataclasses

from experiments.training.settings.options import Options, changes, check_positive
from official_bert.checkpoints.sentence_vectors import POOLINGS
from official_bert.common.errors import UserError, check_choice


@dataclasses.dataclass(frozen=True)
class SentenceOptions(Options):
    """The pooling and the temperature of in-batch negatives."""

    # One of `POOLINGS`; "": that of the model (a folder of sentence-transformers says it), else the
    # mean.
    pooling: str = ""
    # Cosines are divided by it before the softmax; sentence-transformers' `scale` is 1 / 0.05.
    temperature: float = 0.05

    def __post_init__(self):
        if self.pooling:
            check_choice("pooling", self.pooling, POOLINGS, "configuration")
        check_positive(self, "temperature")

    def check_model(self, config, task, bert):
        if task.head["head"] != "sentence_vectors":
            name = next(iter(changes(self)))
            raise UserError(f"--config.{name} is for sentence_vectors, not {config.task}")
