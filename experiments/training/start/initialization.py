"""The kind of model that a configuration starts from.

A run starts from a BERT (`initial_state`), unless an extension's kind is chosen: by a name in
`model`, by a file in the folder that `model` names, or by the type of `bert`. The code of a kind is
in its own file; no other file knows its name.
"""

import dataclasses
import glob
import importlib
import os

from experiments.training.settings.options import Options
from official_bert.checkpoints import integrity
from official_bert.checkpoints.model_settings import MODEL_FILE
from official_bert.common.errors import UserError
from official_bert.common.json_files import read_json
from official_bert.extension import find, names

BERT = "experiments.training.start.initial_state"


class ModelSource:
    """A kind of start, as training and tables see it.

    Attributes:
      repeats: whether runs differ with the seed.
      has_seeds: whether a table's row without pre-training is trained once for each of its seeds.
      lacks: fields of a FinetuneConfig that this kind does not support.
      takes: classes of `Options` with `of_a_start` that this kind supports.
      rate: FLOPs a second of its work; None where the rate of BERT's step applies.
      leaves: what a run leaves where it is no model folder, and what works in its place; a
        sentence for messages.
    """

    repeats = True
    has_seeds = False
    lacks: frozenset[str] = frozenset()
    takes: tuple[type[Options], ...] = ()
    rate: float | None = None
    leaves = "it leaves no model folder"

    def accepts(self, options: Options) -> bool:
        """Return whether options are for this kind."""
        return not options.of_a_start or type(options) in self.takes

    def given(self, config, made: dict[str, str]):
        """Return a table's FinetuneConfig with the folders that other cells of its variant make.

        Args:
          made: {"model": of a pre-training} or {"learnt": of `corpus_cell`}.
        """
        return dataclasses.replace(config, **made)

    def corpus_cell(self, learnt: str, seed: int, do_lower_case: bool):
        """Return the cell that learns this kind's vectors from the table's text.

        Args:
          learnt: `Variant.learnt`.

        Returns: (name, kind of cell, its options, estimated {"cost": seconds, "bytes": on disk}).
        Raises:
          UserError: this kind has no such vectors.
        """
        raise UserError(f"learnt={learnt}: its checkpoint is not a kind of model on vectors")

    def check_pretraining(self, config) -> None:
        """Raise UserError where a PretrainConfig sets a field that this kind does not support."""

    def pretraining_start(self, config):
        """Return the InitialState of a PretrainConfig."""
        raise NotImplementedError

    def check_model(self, folder) -> None:
        """Raise UserError where the model that a run left is damaged; `folder`: a Path."""
        integrity.check_folder(folder, MODEL_FILE, read_json(folder / MODEL_FILE))

    def check_finetuning(self, config, task):
        """Return (BertConfig, Tokenizer) of a FinetuneConfig, both None where they are not known
        yet.

        Raises:
          UserError: the configuration sets a field that this kind or its model does not support.
        """
        raise NotImplementedError

    def finetuning_start(self, config, task, examples):
        """Return a FinetuneConfig's start, with the methods of an InitialState.

        Args:
          examples: {split: examples} of the splits that are read already."""
        raise NotImplementedError

    def finetune(self, step_by_step, config, folder, progress, task, examples):
        """Run a whole fine-tuning (`runs.finetune`); `step_by_step` runs one with a `Trainer`."""
        return step_by_step(self, config, folder, progress, task, examples)

    def planned_bert(self, config):
        """Return the sizes of the model that a FinetuneConfig starts from, to estimate costs.

        Returns: BertConfig, or this kind's configuration; None of models without one.
        """
        return None

    def planned_work(
        self, config, bert, train_examples: int, dev_examples: int
    ) -> list[tuple[float, float | None]]:
        """Return the work of a planned fine-tuning; none where no network is trained.

        Args:
          bert: of `planned_bert`.

        Returns: (FLOPs, FLOPs a second on two cores; None: as a step of BERT's) of each part.
        """
        raise NotImplementedError


def of(config) -> ModelSource:
    """Return the kind of start that a PretrainConfig or FinetuneConfig asks for."""
    known = names("starts")
    if not hasattr(config, "model"):
        name = type(config.bert).__name__
        return find("starts", name)() if name in known else _bert()
    if config.model in known:
        return find("starts", config.model)()
    for marker in (name for name in known if "*" in name):
        if os.path.isdir(config.model) and glob.glob(marker, root_dir=config.model):
            return find("starts", marker)()
    return _bert()


def _bert() -> ModelSource:
    return importlib.import_module(BERT).BertSource()
