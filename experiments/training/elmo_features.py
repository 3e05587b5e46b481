"""ELMo in the place of a BERT: as the frozen encoder of the feature-based approach (`model=FOLDER`
of ELMo's with `features`), and as what is pre-trained (`bert` is an ElmoConfig).

It reads words by their letters. As features its vocabulary is the words of the task; in
pre-training its words are joined of the records' pieces.
"""

import dataclasses
from typing import Any

from experiments.training import start_checks
from experiments.training.starting_point import StartingPoint
from experiments.training.word_models import all_examples
from official_bert.errors import UserError
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


class NewElmo(StartingPoint):
    """A StartingPoint of pre-training whose `bert` is an ElmoConfig."""

    def encoder(self, config, seed, **options):
        from official_bert.baselines.elmo import ELMo
        from official_bert.baselines.words_of_pieces import WordsOfPieces

        elmo = ELMo(self.bert, seed=seed, **options)
        elmo.words = WordsOfPieces(self.tokenizer)
        return elmo

    def save(self, path, model, settings):
        from official_bert.baselines.elmo import save_elmo

        save_elmo(path, model.encoder)


def of_pretraining(config) -> NewElmo:
    """See `starting_point.of_pretraining`.

    Raises:
      UserError: the vocabulary has another size, or is not one of words and their pieces.
    """
    bert, tokenizer = start_checks.new_model(config)
    if tokenizer.kind != "word_piece":
        raise UserError(
            f"an ELMo's words are joined of WordPiece's pieces; these records have {tokenizer.kind}"
        )
    bert = dataclasses.replace(bert, lower_case=tokenizer.do_lower_case)
    return NewElmo(bert, tokenizer)


def start(config, task, examples) -> ElmoStart:
    """The ElmoStart of a FinetuneConfig; `examples` as for `word_models.start`."""
    from official_bert.baselines.elmo import load_elmo

    known = all_examples(task, config, examples)
    # A tagging task's texts are words with a blank before them.
    words = {word for example in known for text in task.texts(example) for word in text.split()}
    tokenizer = WordTokenizer(sorted(words - {*SPECIAL_TOKENS}))
    model = load_elmo(config.model, tokenizer.vocab)
    weights = [variable.numpy() for variable in model.weights]
    return ElmoStart(model.config, tokenizer, weights, loaded=model)
