"""GLUE (section 4.1): batch 32, 3 epochs, the learning rate chosen on dev.

    python -m experiments.finetune --config=glue --config.task=mrpc --workdir=runs/mrpc \\
        --config.data_dir=glue_data --config.model=bert_base_en_uncased \\
        --search='learning_rate=5e-5,4e-5,3e-5,2e-5'

Tasks: cola sst2 mrpc stsb qqp mnli qnli rte wnli. Scales: paper (BERT base: minutes a task on a
GPU, hours for MNLI and QQP), large (BERT large; small data sets need several random restarts: add
seed=1,2,3,4,5 to the search), small (a small model on a CPU), smoke (a minute). With
--config.predict_test=true a run also writes its test set's predictions. With one such run of each
task in runs/glue (MNLI's with the diagnostic set) this makes the leaderboard's file and prints the
averages of the dev scores:

    python -m data_prep.tasks.submission --runs='runs/glue/*' --output=submission.zip

Expected with BERT base on dev: MRPC F1 about 88, SST-2 accuracy about 92, CoLA Matthews about 58.
"""

import dataclasses

from experiments.training.settings.config import FinetuneConfig, choose_scale

PAPER = FinetuneConfig(
    task="mrpc",
    model="bert_base_en_uncased",
    max_seq_length=128,
    train_batch_size=32,
    learning_rate=5e-5,
    num_train_epochs=3.0,
    warmup_proportion=0.1,
)
# Well-Read Students (2019) fine-tunes its miniatures for 4 epochs with larger rates.
SMALL = dataclasses.replace(PAPER, learning_rate=1e-4, num_train_epochs=4.0)
SCALES = {
    "paper": PAPER,
    "large": dataclasses.replace(PAPER, model="bert_large_en_uncased"),
    "small": SMALL,
    "smoke": dataclasses.replace(
        SMALL, max_seq_length=64, max_train_examples=512, max_dev_examples=256
    ),
}


def get_config(scale: str = "paper") -> FinetuneConfig:
    return choose_scale(SCALES, scale)
