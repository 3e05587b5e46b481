"""The door into training: which kind of model a configuration starts from.

A run starts from a BERT (`starting_point`), unless a kind in `experiments.beyond` is chosen: by a
name in `model`, by a file in the folder that `model` names, or by the type of `bert`. What a kind
does otherwise stands in its own file; nothing else knows it by name.
"""

import functools
import glob
import importlib
import os
import pkgutil

from official_bert.checkpoints import integrity
from official_bert.checkpoints.model_folder import MODEL_FILE
from official_bert.common.json_files import read_json

BERT, BEYOND = "experiments.training.start.starting_point", "experiments.beyond"
_kinds: dict = {}  # a name, or a type of `bert` -> the kind that it chooses
_marked: dict = {}  # a pattern of files -> the kind that a folder with one chooses


class Start:
    """A kind of start: what training and tables ask of it.

    Attributes:
      names: what `model` of a FinetuneConfig says that chooses this kind.
      marker: pattern of a file; a folder `model` of a FinetuneConfig with one chooses it.
      bert: type of `bert` of a PretrainConfig that chooses it.
      pretrained_field: the field of a FinetuneConfig that names a pre-training of a table.
      repeats: whether runs of other seeds differ.
      has_seeds: whether a table's row without pre-training is trained once for each of its seeds.
      lacks: fields of a FinetuneConfig that are not for this kind.
      word_by_word: its work is that of LSTMs over words, which reaches a lower rate.
    """

    names, marker, bert = (), "", None
    pretrained_field = "model"
    repeats = True
    has_seeds = False
    lacks = frozenset(("init_from", "word_vectors", "elmo"))
    word_by_word = False

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
        return step_by_step(self, config, folder, progress, task, examples)

    def planned_flops(self, config, bert, train_examples: int, dev_examples: int) -> float:
        """Of a fine-tuning run that is to come; `bert`: a BertConfig, or what is in its place."""
        raise NotImplementedError


def register(kind: Start) -> None:
    """Adds a kind; each module that has one calls it."""
    _kinds.update(dict.fromkeys(kind.names, kind))
    if kind.bert:
        _kinds[kind.bert] = kind
    if kind.marker:
        _marked[kind.marker] = kind


def of(config) -> Start:
    """The kind of start that a PretrainConfig or FinetuneConfig asks for."""
    bert = _load()
    if not hasattr(config, "model"):
        return _kinds.get(type(config.bert), bert)
    marked = (
        kind
        for marker, kind in _marked.items()
        if os.path.isdir(config.model) and glob.glob(marker, root_dir=config.model)
    )
    return _kinds.get(config.model) or next(marked, bert)


@functools.cache
def _load() -> Start:
    beyond = importlib.import_module(BEYOND)
    for module in pkgutil.iter_modules(beyond.__path__, f"{BEYOND}."):
        importlib.import_module(module.name)
    return importlib.import_module(BERT).BertStart()
