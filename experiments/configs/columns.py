"""The columns of the tables at each scale: tasks with their data, limits and notes."""

import dataclasses

from experiments.tables.ablation import Cloze, Column
from experiments.training.config import FinetuneConfig

HELDOUT_LOSS = Column(
    "held-out loss",
    metric="masked_lm_loss",
    percent=False,
    lower_is_better=True,
    note="nats a predicted piece; left-to-right models predict every piece, masked ones 15 %: the "
    "two do not compare",
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


def columns_for(
    finetune: FinetuneConfig, seeds: tuple[int, ...], task_options: dict | None = None, **folders
) -> dict[str, Column]:
    """Table 5's and 8's tasks with the official files in the usual folders."""

    def column(name, task, metric, folder, note="", **changes):
        config = dataclasses.replace(finetune, task=task, data_dir=folder, **changes)
        return Column(name, config, metric, seeds, paper_column=name, note=note)

    glue = folders.get("glue", "glue_data")
    squad = {"doc_stride": 128} | (task_options or {})
    return {
        "MNLI-m": column("MNLI-m", "mnli", "accuracy", glue),
        "QNLI": column("QNLI", "qnli", "accuracy", glue),
        "MRPC": column("MRPC", "mrpc", "accuracy", glue),
        "SST-2": column("SST-2", "sst2", "accuracy", glue),
        "SQuAD": column(
            "SQuAD", "squad_v1.1", "f1", "squad_v1.1", note="F1", task_options=squad
        ),
    }  # fmt: skip


def local_columns(finetune: FinetuneConfig, seeds: tuple[int, ...], squad: dict) -> dict:
    """The tasks on substitutes, which their notes describe."""
    columns = columns_for(finetune, seeds)

    def change(name, note, **changes):
        columns[name] = dataclasses.replace(columns[name].with_finetune(**changes), note=note)

    change(
        "MNLI-m",
        "the official training set is replaced by half of the matched dev set with SNLI's dev set "
        "and VitaminC, and scored on the other half",
        task="text_classification",
        data_dir="@nli//data",
    )
    change(
        "QNLI",
        "the training set is rebuilt from 11,877 + 3,535 SQuAD questions",
        task_options={"train_file": "train_rebuilt.tsv"},
    )
    change(
        "SQuAD",
        "F1; 15,412 of 87,599 training questions, 10,565 of 10,570 dev questions",
        task_options={"train_file": SQUAD1_PARTS} | squad,
    )
    return columns


def exact_match(squad: Column) -> Column:
    """The share of exact answers of a SQuAD column's runs, as a column of its own."""
    return dataclasses.replace(
        squad, label=f"{squad.label} exact match", metric="exact_match", paper_column="", note=""
    )


def cloze(records: str, examples: int, label: str = "cloze") -> Column:
    """Held-out pieces of those records, of so many examples, filled in without fine-tuning."""
    return Column(
        label,
        metric="cloze_accuracy",
        question=Cloze(records, examples),
        note="held-out pieces that the masked model sees as [MASK], without fine-tuning",
    )


def ner(finetune: FinetuneConfig, seeds: tuple[int, ...], length: int, **changes) -> Column:
    config = dataclasses.replace(
        finetune, task="conll2003", data_dir="conll2003", max_seq_length=length, **changes
    )
    return Column("NER", config, "f1", seeds, note="entity F1 on CoNLL-2003 dev")


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


def two_core_columns(
    limits: dict[str, int], restarts: dict[str, tuple[int, ...]] | None = None
) -> dict[str, Column]:
    """The tasks of two cores: those of the paper, and columns that show its effects with less.

    Args:
      limits: column -> training examples, where not all are used.
      restarts: column -> fine-tuning seeds, where there are several.
    """
    squad = {"context": "answer_sentence", "max_query_length": 24}
    columns = local_columns(CPU_FINETUNE, (1,), squad)
    # Its substitute does not tell a pre-trained model of this size from a random one.
    del columns["MNLI-m"]
    columns["SQuAD"] = dataclasses.replace(
        columns["SQuAD"].with_finetune(max_dev_examples=2_000),
        note="F1; from 15,412 of 87,599 training questions; the paragraph cut to one window around "
        "the answer's sentence; 2,000 dev questions",
    )
    columns |= {
        "SST-2": dataclasses.replace(
            columns["SST-2"].with_finetune(task_options={"dev_from_train": 20_000}),
            note="scored on 20,000 training phrases that share no five words in a row with those "
            "trained on (half of the phrases under five words stand inside one)",
        ),
        "QQP": Column(
            "QQP",
            dataclasses.replace(CPU_FINETUNE, task="qqp", data_dir="glue_data"),
            "accuracy",
            note="a part of Quora's pairs",
        ),
        "NER": ner(CPU_FINETUNE, (1,), length=64),
        "cloze": cloze("length 64", 4096),
        **{label: tags(label, CPU_FINETUNE) for label in TAGS},
    }
    for name, limit in limits.items():
        columns[name] = columns[name].with_finetune(max_train_examples=limit)
    for name, seeds in (restarts or {}).items():
        columns[name] = dataclasses.replace(columns[name], seeds=seeds)
    return columns


# CoNLL-2003's three columns, label -> the reader's name. A word is tagged at its last piece, where
# a left-to-right model has seen all of it: what it lacks is the rest of the sentence.
TAGS = {"entities": "entities", "chunks": "chunks", "part of speech": "part_of_speech"}
LAST_PIECE = {"label_piece": "last", "context": "sentence"}


def tags(label: str, finetune: FinetuneConfig) -> Column:
    """One of `TAGS`."""
    column = TAGS[label]
    config = dataclasses.replace(
        finetune,
        task="conll2003",
        data_dir="conll2003",
        task_options={"column": column} | LAST_PIECE,
    )
    metric = "accuracy" if column == "part_of_speech" else "f1"
    return Column(label, config, metric, note="CoNLL-2003 dev, each sentence by itself, last piece")
