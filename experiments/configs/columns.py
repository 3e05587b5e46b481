"""The columns of the tables at each scale: tasks with their data, limits and notes."""

import dataclasses
from functools import partial

from experiments.tables.planning.ablation import Cloze, Column
from experiments.training.settings.config import FinetuneConfig

HELDOUT_LOSS = Column(
    "held-out loss",
    metric="masked_lm_loss",
    percent=False,
    lower_is_better=True,
    note="nats a predicted piece; left-to-right models predict every piece, masked ones those that "
    "are hidden: the two do not compare",
)
PERPLEXITY = Column(
    "LM perplexity",
    metric="masked_lm_perplexity",
    percent=False,
    lower_is_better=True,
    paper_column="LM perplexity",
    note="of masked pieces on held-out text",
)

# Small scales run on files that lack the large training sets: these stand in.
SQUAD1_PARTS = "train-v1.1-subset.json,train-v1.1-extra.json"


def task_column(
    finetune: FinetuneConfig, label: str, task: str, metric: str, data: str, *,
    seeds: tuple[int, ...] = (1,), paper: str = "", note: str = "", **changes,
) -> Column:  # fmt: skip
    """Return a column of a task.

    Args:
      data: its `data_dir`.
      paper: the paper's column.
      changes: other fields of `finetune`.
    """
    config = dataclasses.replace(finetune, task=task, data_dir=data, **changes)
    return Column(label, config, metric, seeds, paper_column=paper, note=note)


def columns_for(finetune: FinetuneConfig, seeds: tuple[int, ...]) -> dict[str, Column]:
    """Return table 5's and 8's tasks with the official files in the usual folders."""
    glue = {"MNLI-m": "mnli", "QNLI": "qnli", "MRPC": "mrpc", "SST-2": "sst2"}
    columns = [
        task_column(finetune, name, task, "accuracy", "glue_data", seeds=seeds, paper=name)
        for name, task in glue.items()
    ]
    squad = task_column(
        finetune, "SQuAD", "squad_v1.1", "f1", "squad_v1.1", seeds=seeds, paper="SQuAD", note="F1",
        task_options={"doc_stride": 128},
    )  # fmt: skip
    return {column.label: column for column in (*columns, squad)}


def local_columns(finetune: FinetuneConfig, seeds: tuple[int, ...], squad: dict) -> dict:
    """Return those tasks on substitute files; the columns' notes describe them."""
    columns = columns_for(finetune, seeds)
    changes = {
        "MNLI-m": {
            "note": "the official training set is replaced by half of the matched dev set with "
            "SNLI's dev set and VitaminC, and scored on the other half",
            "task": "text_classification",
            "data_dir": "@nli//data",
        },
        "QNLI": {
            "note": "the training set is rebuilt from 11,877 + 3,535 SQuAD questions",
            "task_options": {"train_file": "train_rebuilt.tsv"},
        },
        "SQuAD": {
            "note": "F1; 15,412 of 87,599 training questions, 10,565 of 10,570 dev questions",
            "task_options": {"train_file": SQUAD1_PARTS} | squad,
        },
    }
    return columns | {name: columns[name].changed(**fields) for name, fields in changes.items()}


def exact_match(squad: Column) -> Column:
    """Return the share of exact answers of a SQuAD column's runs, as a column of its own."""
    label = f"{squad.label} exact match"
    return squad.changed(label=label, metric="exact_match", paper_column="", note="")


def cloze(records: str, examples: int, label: str = "cloze") -> Column:
    """Return the column of pieces filled in without fine-tuning, on held-out records.

    Args:
      records: their name.
      examples: how many of them are read."""
    return Column(
        label,
        metric="cloze_accuracy",
        question=Cloze(records, examples),
        note="held-out pieces that the masked model sees as [MASK], without fine-tuning",
    )


def ner(finetune: FinetuneConfig, seeds: tuple[int, ...], length: int, **changes) -> Column:
    return task_column(
        finetune, "NER", "conll2003", "f1", "conll2003", seeds=seeds, max_seq_length=length,
        note="entity F1 on CoNLL-2003 dev", **changes,
    )  # fmt: skip


# Two cores.

CPU_FINETUNE = FinetuneConfig(
    max_seq_length=64,
    train_batch_size=32,
    learning_rate=5e-4,
    num_train_epochs=3.0,
    dropout=0.1,
    adam_beta_2=0.98,
    save_model=False,
)


SNLI = task_column(
    CPU_FINETUNE, "SNLI", "text_classification", "accuracy", "nli/snli_dev.tsv",
    note="SNLI's 9,842 dev pairs, of whose premises two fifths are scored on",
    task_options={"dev_fraction": 0.4},
)  # fmt: skip


# On SQuAD a model of short inputs reads one window around the answer's sentence.
ONE_WINDOW = {"context": "answer_sentence", "max_query_length": 24}

# The changes of a column that trains on the official files, as many of them as there are.
MNLI_PART = {
    "task": "mnli",
    "data_dir": "glue_data",
    "task_options": {"train_file": "train_subset.tsv.gz"},
    "note": "15,083 of 392,702 training pairs; the official matched dev set",
}
SQUAD_PART = {
    "task_options": {"train_file": f"{SQUAD1_PARTS},train-v1.1-rebuilt.json.gz", **ONE_WINDOW},
    "num_train_epochs": 2.0,
    "max_train_examples": 0,
    "note": "F1; one window around the answer's sentence; two epochs; 49,603 of 87,599 training "
    "questions, 34,191 of them rebuilt; 10,565 of 10,570 dev questions",
}


def two_core_columns(
    limits: dict[str, int], restarts: dict[str, tuple[int, ...]] | None = None
) -> dict[str, Column]:
    """Return the columns for two cores: the paper's tasks, and others that need fewer examples to
    show its effects.

    Args:
      limits: column -> training examples, where not all are used.
      restarts: column -> fine-tuning seeds, where there are several.
    """
    columns = local_columns(CPU_FINETUNE, (1,), ONE_WINDOW)
    # On its substitute a pre-trained model of this size scores like a random one.
    del columns["MNLI-m"]
    columns["SQuAD"] = columns["SQuAD"].changed(
        max_dev_examples=2_000,
        note="F1; from 15,412 of 87,599 training questions; the paragraph cut to one window around "
        "the answer's sentence; 2,000 dev questions",
    )
    columns |= {
        "SST-2": columns["SST-2"].changed(
            task_options={"dev_from_train": 20_000},
            note="scored on 20,000 training phrases that share no five words in a row with those "
            "trained on (half of the phrases under five words stand inside one)",
        ),
        "QQP": task_column(
            CPU_FINETUNE, "QQP", "qqp", "accuracy", "glue_data", note="a part of Quora's pairs"
        ),
        "NER": ner(CPU_FINETUNE, (1,), length=64),
        "cloze": cloze("length 64", 4096),
        **{label: tags(label, CPU_FINETUNE) for label in TAGS},
    }
    for name, limit in limits.items():
        columns[name] = columns[name].changed(max_train_examples=limit)
    for name, seeds in (restarts or {}).items():
        columns[name] = columns[name].changed(seeds=seeds)
    return columns


# CoNLL-2003's three columns: label -> the reader's name. A word is tagged at its last piece, so
# that a left-to-right model has seen the whole word and lacks only the rest of the sentence.
TAGS = {"entities": "entities", "chunks": "chunks", "part of speech": "part_of_speech"}
LAST_PIECE = {"label_piece": "last", "context": "sentence"}


def tags(label: str, finetune: FinetuneConfig) -> Column:
    """Return the column of one of `TAGS`."""
    column = TAGS[label]
    return task_column(
        finetune, label, "conll2003", "accuracy" if column == "part_of_speech" else "f1",
        "conll2003", note="CoNLL-2003 dev, each sentence by itself, last piece",
        task_options={"column": column} | LAST_PIECE,
    )  # fmt: skip


def sample_columns() -> dict[str, Column]:
    """Return the tasks of the embedded sample: SNLI in place of MNLI, SMS Spam in that of SST-2."""
    finetune = dataclasses.replace(CPU_FINETUNE, num_train_epochs=1.0, max_train_examples=1500)
    column = partial(task_column, finetune)
    return {
        "MNLI-m": column(
            "SNLI", "text_classification", "accuracy", "sample:snli", paper="MNLI-m",
            note="an excerpt of SNLI in place of MNLI",
        ),
        "SST-2": column(
            "SMS spam", "text_classification", "accuracy", "sample:sms_spam", paper="SST-2",
            note="SMS Spam in place of SST-2",
        ),
        "SQuAD": column(
            "SQuAD", "squad_v1.1", "f1", "sample:squad", paper="SQuAD", note="F1 on an excerpt",
            task_options={"doc_stride": 16, "max_query_length": 24},
        ),
        "NER": column(
            "NER", "conll2003", "f1", "sample:names",
            note="names of the sample in place of CoNLL-2003",
            num_train_epochs=2.0, max_dev_examples=500,
        ),
        "names": column(
            "names", "conll2003", "f1", "sample:names",
            note="words of Wikipedia that the text, read in lower case, wrote with a capital",
            task_options=LAST_PIECE,
        ),
        "cloze": cloze("length 64", 1024),
    }  # fmt: skip
