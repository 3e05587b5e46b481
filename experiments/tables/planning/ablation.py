"""An ablation as data: corpus, pre-trained variants, rows, columns and claims of a table.

A configuration of `experiments.ablate` returns an `Ablation`. Its variants are `PretrainConfig`s
made from one base with `dataclasses.replace`, its columns are `FinetuneConfig`s, and a row names
the variant that it fine-tunes and the fields that it changes. `plan.py` turns it into cells,
`experiments.tables.run.grid` runs them, `experiments.report` makes the table.
"""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from data_prep.pretraining.record_options import RecordOptions
from experiments.tables.planning import ablation_checks
from experiments.tables.planning.claims import Claim
from experiments.training.settings.config import FinetuneConfig, PretrainConfig
from experiments.training.settings.config_values import changes_dict, from_dict
from experiments.training.settings.options import replaced
from official_bert.common.errors import UserError, check_choice, check_once
from official_bert.extension import names

RESTARTS = 1000  # seed of a fine-tuning: RESTARTS * pre-training seed + its own
RANDOM = "random"  # the variant of `Variant.random` and of `Row.random`
# Fields of a fine-tuning that the plan fills in.
_PLANNED = ("seed", "initial_seed", "save_model", "data_dir", "bert", "vocab", "do_lower_case")
# All rows of a column are scored on the same examples.
_OF_COLUMN = ("task", "max_dev_examples")


@dataclasses.dataclass(frozen=True)
class Text:
    """Text files of one kind.

    Attributes:
      files: files or globs, inside the ablation's `data_dir` unless absolute; "sample" is the
        corpus embedded in `data_prep.sample`, "sample:NAME" its file or files of that name.
      layout: "sentences" where the files have one sentence a line already; otherwise how
        `data_prep.sentences` finds their documents ("chapters", "articles", "files", "lines").
      heldout: for evaluation only.
    """

    files: tuple[str, ...]
    layout: str = "sentences"
    heldout: bool = False


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Text for pre-training and the vocabulary that goes with it.

    Attributes:
      texts: training and held-out text.
      held_out: share of the training documents to hold out; 0.0 where a text has `heldout`.
      description: one line for the caption of the table.
      vocab: a vocabulary file, or a model of the package whose vocabulary is used; "" learns one of
        `vocab_size` entries from the training texts.
      do_lower_case: uncased or cased.
    """

    texts: tuple[Text, ...] = (Text(("sample",)),)
    held_out: float = 0.0
    description: str = ""
    vocab: str = ""
    vocab_size: int = 8192
    do_lower_case: bool = True


@dataclasses.dataclass(frozen=True)
class RecordSpec(RecordOptions):
    """Pre-training records of one length; casing and the held-out share are those of the `Corpus`.

    Attributes:
      name: by which a `Phase.records` of this ablation refers to them.
    """

    dupe_factor: int = 5
    name: str = ""


@dataclasses.dataclass(frozen=True)
class Variant:
    """The models of one or more rows, one for each seed.

    They are one of:

    - trained by the table: `pretrain` alone;
    - trained by an earlier table: `pretrain` and `checkpoints`;
    - random: `pretrain` and `random_init`;
    - a model that exists: `checkpoint` alone;
    - a kind of model on vectors that the table learns: its name as `checkpoint`, and `learnt`.

    Attributes:
      pretrain: its `vocab` is left empty and its phases' `records` name one of the ablation's
        `RecordSpec`: the plan fills in the files.
      seeds: one pre-training for each; `pretrain.seed` is not used. Models on word vectors, which
        have no pre-training, are trained once for each, to share seeds with the other rows.
      checkpoint: a model folder, imported checkpoint or KerasHub preset in place of `pretrain`;
        "package:NAME/FOLDER" is a folder of an installed Python package.
      optional: leave out its rows, and say so, where the folder of `checkpoint` is missing.
      checkpoints: models that `pretrain` made before, a folder or name for each of `seeds`; nothing
        is pre-trained.
      learnt: kind of the vectors that a cell learns from the corpus for each seed
        (`ModelSource.corpus_cell`); "": none.
      random_init: train nothing; use the random weights with which a pre-training of `pretrain` and
        each of `seeds` begins.
    """

    name: str
    pretrain: PretrainConfig | None = None
    seeds: tuple[int, ...] = (1,)
    checkpoint: str = ""
    optional: bool = False
    checkpoints: tuple[str, ...] = ()
    learnt: str = ""
    random_init: bool = False

    def __post_init__(self):
        where = f"variant {self.name}"
        _check_config(self.pretrain, f"{where}: pretrain")
        if bool(self.pretrain) == bool(self.checkpoint):
            raise UserError(f"{where}: give pretrain or checkpoint, one of the two")
        if self.checkpoint and (self.random_init or self.checkpoints):
            raise UserError(f"{where}: random_init and checkpoints go with pretrain")
        if self.pretrain and (self.learnt or self.optional):
            raise UserError(f"{where}: learnt and optional go with checkpoint")
        if self.random_init and self.checkpoints:
            raise UserError(f"{where}: give random_init or checkpoints, one of the two")
        if self.pretrain and self.pretrain.vocab:
            raise UserError(f"{where}: vocab is the corpus's; leave it out of pretrain")
        _check_seeds(self.seeds, where)
        if self.trains and min(self.seeds) < 1:  # cells of round 0 are those that all seeds share
            raise UserError(f"{where}: its seeds must be from 1 on")
        if self.checkpoints and len(self.checkpoints) != len(self.seeds):
            counts = f"{len(self.checkpoints)} checkpoints for {len(self.seeds)} seeds"
            raise UserError(f"{where}: {counts}; give one for each")

    @property
    def trains(self) -> bool:
        """Return whether the table pre-trains it."""
        return bool(self.pretrain) and not (self.random_init or self.checkpoints)

    @classmethod
    def random(cls, pretrain: PretrainConfig, seeds: tuple[int, ...]) -> "Variant":
        """Return a variant that is not trained; `Row.random` shows it."""
        return cls(RANDOM, pretrain, seeds, random_init=True)


@dataclasses.dataclass(frozen=True)
class Question:
    """A question to pre-trained models, without fine-tuning, about held-out records.

    Attributes:
      records: name of one of the ablation's `RecordSpec`, whose held-out part is used.
      max_examples: records to use, rounded up to whole batches; 0: all.
      asked_of: objectives; models of other objectives are not asked.
      kind: `Cell.kind` of its cells.
      part: distinguishes questions of one kind in the names of cells.
    """

    records: str
    max_examples: int = 0
    asked_of: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[str] = ""
    part: ClassVar[str] = ""

    def fields(self, bert) -> dict:
        """Return the question's own fields of `Cell.config`; `bert`: BertConfig of the model."""
        return {}


@dataclasses.dataclass(frozen=True)
class Cloze(Question):
    """Held-out masked pieces.

    The metrics are "cloze_loss" (nats, `percent=False`, `lower_is_better=True`) and
    "cloze_accuracy".
    """

    kind, asked_of = "cloze", ("masked_lm", "next_token")

    def fields(self, bert):
        return {"vocab_size": bert.vocab_size}


@dataclasses.dataclass(frozen=True)
class Column:
    """One column of the table: a task to fine-tune on, the held-out text of pre-training, or a
    question to the model as it is.

    Attributes:
      label: as printed; the paper's name where data and metric are the paper's.
      finetune: None for a held-out column or a question; else task and hyper-parameters, `model`
        left empty. `data_dir` is inside the ablation's, or "sample:NAME" for an embedded task, or
        "@nli//data".
      question: in place of `finetune`: a question to pre-trained models as they are. Rows with
        fine-tuning fields of their own, and models without the head that it needs, have no score.
      metric: key of the task's scores, or of the pre-training's held-out results; "": the task's
        first score.
      seeds: fine-tuning restarts of every pre-trained model, each below `RESTARTS`. Rows share
        them; two pre-trainings of a row do not (the plan adds `RESTARTS` times their seed).
      folds: number of parts of all labelled examples (option `folds` of the task). A run is then as
        many fine-tunings, each scored on one part; its score is that of all parts together. 0: the
        dev set is scored.
      search: settings of fields that are all tried, for instance ({"learning_rate": 5e-5}, ...);
        the setting with the best mean on dev is shown (paper, section 4.1).
      paper_column: the paper's column to print beside ours; "" for none.
      percent: the metric is between 0 and 1 and printed times 100.
      lower_is_better: a loss or perplexity.
      note: substitutions and subsets, for the caption.
    """

    label: str
    finetune: FinetuneConfig | None = None
    metric: str = ""
    seeds: tuple[int, ...] = (1,)
    search: tuple[dict, ...] = ()
    paper_column: str = ""
    percent: bool = True
    lower_is_better: bool = False
    note: str = ""
    question: Question | None = None
    folds: int = 0

    def __post_init__(self):
        where = f"column {self.label}"
        _check_config(self.finetune, f"{where}: finetune")
        if self.finetune and self.question:
            raise UserError(f"{where}: give finetune or question, not both")
        if (self.folds or self.search) and not self.finetune:
            raise UserError(f"{where}: folds and search are for fine-tuning alone")
        _check_seeds(self.seeds, where)
        if not all(0 <= seed < RESTARTS for seed in self.seeds):
            raise UserError(f"{where}: its seeds must be from 0 to {RESTARTS - 1}")
        for setting in self.search:
            _check_fields(setting, f"{where}: search", (*_PLANNED, *_OF_COLUMN, "model"))
        if self.finetune and self.finetune.model:
            raise UserError(f"{where}: model is the row's variant's; leave it out")

    def changed(self, **fields) -> "Column":
        """Return the column with other fields, of its own or of its fine-tuning."""
        known = {field.name for field in dataclasses.fields(self)}
        own = {name: fields.pop(name) for name in known & fields.keys()}
        finetune = own.get("finetune", self.finetune)
        if fields and not finetune:
            raise UserError(f"column {self.label}: {min(fields)} is for fine-tuning alone")
        if fields:
            own["finetune"] = replaced(finetune, **fields)
        return dataclasses.replace(self, **own)


@dataclasses.dataclass(frozen=True)
class Row:
    """One row: a variant, what fine-tuning changes for it, and the paper's row beside it.

    Attributes:
      finetune: fields of FinetuneConfig replaced in every column, for instance {"bilstm": True};
        `model` may only name a kind of start, which then reads the variant's model.
      snapshot: fine-tune the model kept after this many steps (one of the variant's
        `pretrain.snapshots`, Figure 5); 0 for the final one.
      reference: a yardstick (random initialisation), printed apart from the ablation's rows.
    """

    label: str
    variant: str
    finetune: dict = dataclasses.field(default_factory=dict)
    snapshot: int = 0
    paper_row: str = ""
    reference: bool = False

    def __post_init__(self):
        where = f"row {self.label}: finetune"
        _check_fields(self.finetune, where, (*_PLANNED, *_OF_COLUMN))
        if "model" in self.finetune:
            check_choice("model", self.finetune["model"], names("starts"), where)

    @classmethod
    def random(cls, label: str = "random initialisation") -> "Row":
        """Return the row of `Variant.random`, a yardstick of the others."""
        return cls(label, RANDOM, reference=True)


@dataclasses.dataclass(frozen=True)
class Curve:
    """A line of Figure 5: rows in order of pre-training steps.

    Attributes:
      less: rows whose scores are subtracted, one for each of `rows`: the line then shows effects,
        each a comparison of a claim.
    """

    label: str
    rows: tuple[str, ...]
    column: str
    less: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Export:
    """A classifier to export as a SavedModel once it is fine-tuned, and texts to try it on."""

    row: str
    column: str
    examples: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Ablation:
    """A table of the paper at one scale.

    Attributes:
      name: of the paper's table, "table5".
      title: heading of the report.
      scale: a name of `experiments.configs.scales`.
      notes: what differs from the paper, each one sentence of the caption.
      data_dir: folder of the corpora and benchmarks ("" for the embedded sample and TFDS).
      nli_mixture: MNLI's dev_matched.tsv and other NLI files, from which the cell "nli" makes
        training and dev data; a column uses these with data_dir="@nli//data".
      workers: cells side by side on this machine; 0: one a GPU, or one a core without GPUs.
    """

    name: str
    title: str
    scale: str
    corpus: Corpus = Corpus()
    records: tuple[RecordSpec, ...] = ()
    variants: tuple[Variant, ...] = ()
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    claims: tuple[Claim, ...] = ()
    curves: tuple[Curve, ...] = ()
    exports: tuple[Export, ...] = ()
    notes: tuple[str, ...] = ()
    data_dir: str = ""
    nli_mixture: tuple[str, ...] = ()
    workers: int = 0

    def __post_init__(self):
        check_once((spec.name for spec in self.records), f"{self.name}: records")
        check_once((variant.name for variant in self.variants), f"{self.name}: variants")
        check_once((column.label for column in self.columns), f"{self.name}: columns")
        check_once((row.label for row in self.rows), f"{self.name}: rows")
        check_once((claim.name for claim in self.claims), f"{self.name}: claims")
        ablation_checks.check(self)

    @property
    def full_name(self) -> str:
        """Return name and scale, "table5/night": the folder of its report among other tables'."""
        return f"{self.name}/{self.scale}".rstrip("/")

    def row(self, label: str) -> Row:
        """Find a row by its label."""
        return next(row for row in self.rows if row.label == label)

    def column(self, label: str) -> Column:
        """Find a column by its label."""
        return next(column for column in self.columns if column.label == label)

    def variant(self, name: str) -> Variant:
        """Find a variant by its name."""
        return next(variant for variant in self.variants if variant.name == name)


def _check_seeds(seeds, where):
    if not isinstance(seeds, Sequence) or not all(isinstance(seed, int) for seed in seeds):
        raise UserError(f"{where}: seeds={seeds!r}: give a tuple of whole numbers")
    if not seeds:
        raise UserError(f"{where}: it has no seeds; give at least one")
    check_once(seeds, f"{where}: seeds")  # one run would count as two


def _check_config(config, where):
    """Check the types of all fields of a configuration, where there is one."""
    if config is not None:
        from_dict(type(config), changes_dict(config), where)


def _check_fields(fields, where, planned):
    """Check names and types of fields of a FinetuneConfig; `planned` ones may not be given."""
    from_dict(FinetuneConfig, fields, where)  # for its checks
    if given := [name for name in planned if name in fields]:
        raise UserError(f"{where}: {given[0]} follows from the table; leave it out")
