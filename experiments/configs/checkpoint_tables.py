"""What Tables 1 to 4 share: grids over the tasks of section 4 from trained checkpoints.

    paper  BERT BASE and LARGE (KerasHub presets, or --config.variants.0.checkpoint=FOLDER), the
           paper's hyper-parameters, learning rate chosen on dev; one GPU, hours a task
    gpu    BERT BASE, one learning rate, three seeds
    cpu    a checkpoint of 2 layers and 128 wide (BERT tiny), at most 4,000 training examples a task
    smoke  a tiny model pre-trained for half a minute on the embedded sample, 300 examples a task

Scores are those of dev: test labels are with the benchmarks' servers. The predictions of every run
are in its folder in the official format.
"""

import dataclasses

from experiments.configs.scales import CPU_FINETUNE, DATA_DIR, get_scale
from experiments.tables.ablation import Ablation, Column, Row, Variant
from experiments.training.config import FinetuneConfig, Phase, choose_scale

BASE, LARGE = "BERT BASE", "BERT LARGE"
PRESETS = {BASE: "bert_base_en_uncased", LARGE: "bert_large_en_uncased"}
TINY_CHECKPOINT = "checkpoints/bleurt_test_bert_tiny"
RATES = (5e-5, 4e-5, 3e-5, 2e-5)


def grid(scale: str, name: str, title: str, columns: tuple[Column, ...], notes=()) -> Ablation:
    """The table at a scale; `columns` are those of the paper's scale for BERT base."""
    made = {"paper": _paper, "gpu": _gpu, "cpu": _cpu, "smoke": _smoke}
    make = choose_scale({key: lambda key=key: made[key] for key in made}, scale)
    return make(name, title, columns, tuple(notes))


def column(label, task, metric, folder, *, paper_column, length=128, note="", **changes) -> Column:
    """A column with section 4.1's hyper-parameters where `changes` says nothing else."""
    config = FinetuneConfig(
        task=task,
        data_dir=folder,
        max_seq_length=length,
        train_batch_size=32,
        learning_rate=5e-5,
        num_train_epochs=3.0,
        save_model=False,
    )
    config = dataclasses.replace(config, **changes)
    return Column(label, config, metric, (1,), paper_column=paper_column, note=note)


def _paper(name, title, columns, notes):
    seeds = (1, 2, 3, 4, 5)
    search = tuple({"learning_rate": rate} for rate in RATES) if name == "table1" else ()
    return Ablation(
        name=name,
        title=title,
        scale="paper",
        variants=tuple(Variant(label, checkpoint=preset) for label, preset in PRESETS.items()),
        columns=tuple(dataclasses.replace(c, seeds=seeds, search=search) for c in columns),
        rows=tuple(Row(label, label, paper_row=label) for label in PRESETS),
        notes=notes,
        data_dir=DATA_DIR,
        workers=1,
    )


def _gpu(name, title, columns, notes):
    return Ablation(
        name=name,
        title=title,
        scale="gpu",
        variants=(Variant(BASE, checkpoint=PRESETS[BASE]),),
        columns=tuple(
            dataclasses.replace(
                c,
                seeds=(1, 2, 3),
                finetune=dataclasses.replace(
                    c.finetune, learning_rate=3e-5, precision="mixed_bfloat16"
                ),
            )
            for c in columns
        ),
        rows=(Row(BASE, BASE, paper_row=BASE),),
        notes=notes,
        data_dir=DATA_DIR,
        workers=1,
    )


def _cpu(name, title, columns, notes):
    from pathlib import Path

    def small(c):
        length = min(c.finetune.max_seq_length, 128)
        config = dataclasses.replace(
            c.finetune,
            max_seq_length=length,
            learning_rate=3e-4,
            max_train_examples=4000,
            max_dev_examples=2000,
        )
        return dataclasses.replace(c, finetune=config, seeds=(1, 2))

    checkpoint = str(Path(DATA_DIR) / TINY_CHECKPOINT)
    return Ablation(
        name=name,
        title=title,
        scale="cpu",
        variants=(Variant("BERT tiny", checkpoint=checkpoint),),
        columns=tuple(map(small, columns)),
        rows=(Row("BERT tiny (2 layers, 128 wide)", "BERT tiny", paper_row=BASE),),
        notes=(
            *notes,
            "BERT tiny stands beside BERT BASE: 4 M parameters beside 110 M",
            "its weights were fine-tuned as a sentence metric by their publisher (BLEURT's test "
            "checkpoint)",
            "at most 4,000 training examples a task",
        ),
        data_dir=DATA_DIR,
    )


def _smoke(name, title, columns, notes):
    chosen = get_scale("smoke")
    phases = (Phase("length 64", 64, 200),)
    pretrain = dataclasses.replace(chosen.bert, phases=phases, num_warmup_steps=20)

    def tiny(c):
        options = c.finetune.task_options
        if "doc_stride" in options:
            options = options | {"doc_stride": 16, "max_query_length": 24}
        config = dataclasses.replace(
            CPU_FINETUNE,
            task=c.finetune.task,
            data_dir=c.finetune.data_dir,
            task_options=options,
            max_train_examples=300,
            max_dev_examples=200,
            num_train_epochs=1.0,
            train_batch_size=16,
        )
        return dataclasses.replace(c, finetune=config)

    return Ablation(
        name=name,
        title=title,
        variants=(Variant("tiny", pretrain),),
        columns=tuple(map(tiny, columns)),
        rows=(Row("tiny (2 layers, 128 wide)", "tiny", paper_row=BASE),),
        **(chosen.fields() | {"nli_mixture": (), "notes": (*notes, *chosen.notes)}),
    )
