"""Your own texts: a TSV, CSV or JSONL file with one or two text columns and a label column.

    python -m experiments.finetune --config=text_classification --workdir=runs/mine \\
        --config.data_dir=mine.tsv --config.model=bert_base_en_uncased

Columns named text and label are found by themselves; others are named with, for example,
--task_options.text_column=message --task_options.label_column=kind, those of files without a
header with --task_options.columns=label,text. Several labels a row:
--task_options.problem=multi_label; a number instead of a class: problem=regression. The order of
the classes: --task_options.labels=ham,spam. In a folder, train.tsv, dev.tsv and test.tsv (or .csv,
.jsonl) are used; where there is no dev file, a tenth of the training rows of each class is held
out. Long texts can keep their end, or both ends (--config.task_options.truncation=head+tail).

Adam's bias is corrected, which the paper's tasks leave out (docs/own_data.md says why).

Scales: base (for models of 6 layers and more), small (for 2 to 4 layers), smoke (a minute).
Expected on SMS Spam with a 6-layer model: held-out accuracy above 98%.
"""

import dataclasses

from experiments.training.settings.config import FinetuneConfig, choose_scale

BASE = FinetuneConfig(
    task="text_classification",
    task_options={"dev_fraction": 0.1, "stratify": True},
    model="bert_base_en_uncased",
    max_seq_length=128,
    train_batch_size=32,
    learning_rate=1e-4,
    num_train_epochs=3.0,
    bias_correction=True,
)
SMALL = dataclasses.replace(BASE, learning_rate=3e-4, num_train_epochs=4.0)
SMOKE = dataclasses.replace(SMALL, max_seq_length=64, max_train_examples=512, max_dev_examples=256)


def get_config(scale: str = "base") -> FinetuneConfig:
    return choose_scale({"base": BASE, "small": SMALL, "smoke": SMOKE}, scale)
