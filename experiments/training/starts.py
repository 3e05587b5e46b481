"""The door into training: which kind of model a configuration starts from.

A run starts from a BERT (`starting_point`), unless one of the kinds in `experiments.beyond` says
that the configuration asks for it. What a kind does otherwise stands in its own file; nothing else
knows it by name.
"""

import functools
import importlib
import pkgutil

from official_bert.checkpoints import integrity
from official_bert.checkpoints.model_folder import MODEL_FILE
from official_bert.common.json_files import read_json

BERT, BEYOND = "experiments.training.starting_point", "experiments.beyond"
_kinds: list = []


class Start:
    """A kind of start: what training and tables ask of it.

    Attributes:
      pretrained_field: the field of a FinetuneConfig that names a pre-training of a table.
      repeats: whether runs of other seeds differ.
      has_seeds: whether a table's row without pre-training is trained once for each of its seeds.
      lacks: fields of a FinetuneConfig that are not for this kind.
      word_by_word: its work is that of LSTMs over words, which reaches a lower rate.
    """

    pretrained_field = "model"
    repeats = True
    has_seeds = False
    lacks = frozenset(("init_from", "word_vectors", "elmo"))
    word_by_word = False

    def asked(self, config) -> bool:
        """Whether a PretrainConfig or FinetuneConfig asks for this kind."""
        raise NotImplementedError

    def check_pretraining(self, config) -> None:
        """Raises UserError where a PretrainConfig asks for what this kind does not have."""

    def of_pretraining(self, config):
        """The StartingPoint of a PretrainConfig."""
        raise NotImplementedError

    def check_model(self, folder) -> None:
        """Raises UserError where the model that a run left is damaged; `folder`: a Path."""
        integrity.check_folder(folder, MODEL_FILE, read_json(folder / MODEL_FILE))

    def check_finetuning(self, config, task):
        """(BertConfig, Tokenizer) of a FinetuneConfig, two None where they are not known yet.

        Raises:
          UserError: the configuration asks for what this kind, or its model, does not have.
        """
        raise NotImplementedError

    def of_finetuning(self, config, task, examples):
        """What a FinetuneConfig starts from, with the methods of a StartingPoint; `examples` of
        the splits that are read already."""
        raise NotImplementedError

    def finetune(self, step_by_step, config, folder, progress, task, examples) -> dict:
        """A whole fine-tuning run, see `runs.finetune`; `step_by_step` is that of a `Trainer`."""
        return step_by_step(config, folder, progress, task, examples)

    def planned_flops(self, config, bert, train_examples: int, dev_examples: int) -> float:
        """Of a fine-tuning run that is to come; `bert`: a BertConfig, or what is in its place."""
        raise NotImplementedError


def register(kind: Start) -> None:
    """Adds a kind; each module that has one calls it."""
    _kinds.append(kind)


def of(config) -> Start:
    """The kind of start that a configuration asks for."""
    _load()
    return next(kind for kind in _kinds if kind.asked(config))


@functools.cache
def _load() -> None:
    beyond = importlib.import_module(BEYOND)
    for module in pkgutil.iter_modules(beyond.__path__, f"{BEYOND}."):
        importlib.import_module(module.name)
    _kinds.append(importlib.import_module(BERT).BertStart())  # it asks for what nobody else does
