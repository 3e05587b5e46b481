"""ELMo as a frozen encoder of the feature-based approach: `model=FOLDER` of ELMo's with `features`.

It reads words by their letters, so its vocabulary is the words of the task.
"""

import dataclasses
from typing import Any

from experiments.training.starting_point import StartingPoint
from experiments.training.word_models import all_examples
from official_bert.baselines.elmo_config import character_ids
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS
from official_bert.tokenization.words import WordTokenizer


@dataclasses.dataclass(frozen=True)
class ElmoStart(StartingPoint):
    """A StartingPoint whose `bert` is an ElmoConfig.

    Attributes:
      loaded: the `ELMo`, which knows the characters of the tokeniser's words.
    """

    loaded: Any = None

    def encoder(self, config, seed, **options):
        return self.loaded


def start(config, task, examples) -> ElmoStart:
    """The ElmoStart of a FinetuneConfig; `examples` as for `word_models.start`."""
    from official_bert.baselines.elmo import load_elmo

    known = all_examples(task, config, examples)
    words = {word for example in known for word in task.texts(example)}
    tokenizer = WordTokenizer(sorted(words - {*SPECIAL_TOKENS}))
    model = load_elmo(config.model, character_ids(tokenizer.vocab))
    weights = [variable.numpy() for variable in model.weights]
    return ElmoStart(model.config, tokenizer, weights, loaded=model)
