"""ELMo in the place of a BERT: as the frozen encoder of the feature-based approach (`model=FOLDER`
of ELMo's with `features`), and as what is pre-trained (`bert` is an ElmoConfig).

It reads words by their letters. For features its vocabulary is the words of the task; in
pre-training its words are joined from the records' pieces.
"""

import dataclasses
from typing import Any

from experiments.beyond.common.task_words import words_in
from experiments.beyond.common.words import WordTokenizer
from experiments.beyond.elmo.shape import ElmoConfig, check_elmo_folder, options_file
from experiments.training.settings.flops import LSTM_RATE
from experiments.training.start import preflight
from experiments.training.start.initial_state import BertSource, InitialState
from official_bert.common.errors import UserError
from official_bert.objectives import parse_spec


@dataclasses.dataclass(frozen=True)
class ElmoStart(InitialState):
    """An InitialState whose `bert` is an ElmoConfig.

    Attributes:
      loaded: the `ELMo`, which knows the characters of the tokeniser's words.
    """

    loaded: Any = None

    def encoder(self, config, seed, **options):
        return self.loaded


class NewElmo(InitialState):
    """An InitialState of pre-training whose `bert` is an ElmoConfig."""

    def encoder(self, config, seed, **options):
        from experiments.beyond.elmo.model import ELMo
        from experiments.beyond.elmo.words_of_pieces import WordsOfPieces

        elmo = ELMo(self.bert, seed=seed, **options)
        elmo.words = WordsOfPieces(self.tokenizer)
        return elmo

    def save(self, path, model, settings):
        from experiments.beyond.elmo.model import save_elmo

        save_elmo(path, model.encoder)


class Elmo(BertSource):
    """An ELMo, to pre-train (`bert` is an ElmoConfig) or to read the states of."""

    rate = LSTM_RATE
    leaves = (
        "an ELMo's states are read in training alone: experiments.finetune --config.model=FOLDER "
        "--config.features=elmo, or --config.model=bilstm_attention --config.elmo=FOLDER"
    )
    lacks = BertSource.lacks | {"freeze"}

    def check_pretraining(self, config):
        if [parse_spec(written)[0] for written in config.objectives] != ["adjacent_words"]:
            raise UserError('--config.objectives: those of an ELMo are ("adjacent_words",)')
        preflight.refuse(config, ("init_from", "remat"), config.model_options, "an ELMo")

    def pretraining_start(self, config):
        bert, tokenizer = preflight.new_model(config)
        if tokenizer.kind != "word_piece":
            raise UserError(
                "an ELMo's words are joined of WordPiece's pieces; these records have "
                f"{tokenizer.kind}"
            )
        bert = dataclasses.replace(bert, lower_case=tokenizer.do_lower_case)
        return NewElmo(bert, tokenizer)

    def planned_bert(self, config):
        found = options_file(config.model)
        return ElmoConfig.from_options(found) if found else ElmoConfig()

    def check_model(self, folder):
        check_elmo_folder(folder)

    def check_finetuning(self, config, task):
        check_elmo_folder(config.model, "--config.model=")
        if not config.features:
            raise UserError(
                f"--config.model={config.model}: ELMo's states are features; set "
                "--config.features=elmo for a tagging task, or --config.model=bilstm_attention "
                "--config.elmo=FOLDER"
            )
        return None, None

    def finetuning_start(self, config, task, examples):
        from experiments.beyond.elmo.model import load_elmo

        # A tagging task's texts are words with a blank before them.
        tokenizer = WordTokenizer(words_in(task, config, examples, str.split))
        model = load_elmo(config.model, tokenizer.vocab)
        weights = [variable.numpy() for variable in model.weights]
        return ElmoStart(model.config, tokenizer, weights, loaded=model)
