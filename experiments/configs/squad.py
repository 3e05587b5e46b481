"""SQuAD 1.1 (section 4.2) and 2.0 (section 4.3): windows of 384 tokens, the span of the answer.

    python -m experiments.finetune --config=squad:v1 --workdir=runs/squad \\
        --config.data_dir=squad_v1.1 --config.model=bert_base_en_uncased

Scales: v1 (3 epochs, 5e-5, batch 32), v2 (2 epochs, 5e-5, batch 48; the null threshold is chosen on
dev), v1_smoke and v2_smoke (a minute on a CPU). About an hour for BERT base on one GPU.
For your own questions take own_v1 or own_v2, where Adam's bias is corrected (docs/own_data.md); for
models of 2 to 4 layers own_small_v1 or own_small_v2, with windows of 128 tokens. Without a dev file
these hold out a tenth of the questions, by whole paragraphs.

Expected with BERT base on dev: 1.1 EM 80.8, F1 88.5; with BERT large 84.1 and 90.9, and on 2.0
78.7 and 81.9.
"""

import dataclasses

from experiments.training.settings.config import FinetuneConfig, choose_scale

V1 = FinetuneConfig(
    task="squad_v1.1",
    model="bert_base_en_uncased",
    max_seq_length=384,
    train_batch_size=32,
    learning_rate=5e-5,
    num_train_epochs=3.0,
    task_options={"doc_stride": 128, "max_query_length": 64},
)
V2 = dataclasses.replace(V1, task="squad_v2.0", train_batch_size=48, num_train_epochs=2.0)
SMOKE = {
    "max_seq_length": 128,
    "max_train_examples": 256,
    "max_dev_examples": 128,
    "num_train_epochs": 1.0,
    "task_options": {"doc_stride": 64, "max_query_length": 32},
}
OWN = {
    "bias_correction": True,
    "learning_rate": 1e-4,
    "task_options": {"doc_stride": 128, "max_query_length": 64, "dev_fraction": 0.1},
}
OWN_SMALL = {
    **OWN,
    "learning_rate": 3e-4,
    "max_seq_length": 128,
    "task_options": {"doc_stride": 64, "max_query_length": 32, "dev_fraction": 0.1},
}
SCALES = {
    "v1": V1,
    "v2": V2,
    "own_v1": dataclasses.replace(V1, **OWN),
    "own_v2": dataclasses.replace(V2, **OWN),
    "own_small_v1": dataclasses.replace(V1, **OWN_SMALL),
    "own_small_v2": dataclasses.replace(V2, **OWN_SMALL),
    "v1_smoke": dataclasses.replace(V1, **SMOKE),
    "v2_smoke": dataclasses.replace(V2, **SMOKE),
}


def get_config(scale: str = "v1") -> FinetuneConfig:
    return choose_scale(SCALES, scale)
