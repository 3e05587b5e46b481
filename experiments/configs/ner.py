"""CoNLL-2003 named entities (section 5.3), all of BERT fine-tuned: batch 32, 5e-5, 4 epochs.

    python -m experiments.finetune --config=ner --workdir=runs/ner --config.data_dir=conll2003 \\
        --config.model=bert_base_en

A cased model, the label of a word on its first sub-token, as much of the document as fits, no CRF.
Scales: paper (BERT base cased; an hour on one GPU), smoke (a minute), and for your own tags own
(models of 6 layers and more) and own_small (2 to 4 layers), with Adam's bias corrected
(docs/own_data.md). Without a dev file these two hold out a tenth of the training sentences, or of
the documents.

Expected with BERT base: entity F1 96.4 on testa ("dev"), 92.4 on testb.
"""

import dataclasses

from experiments.training.settings.config import FinetuneConfig, choose_scale

PAPER = FinetuneConfig(
    task="conll2003",
    model="bert_base_en",
    max_seq_length=512,
    train_batch_size=32,
    learning_rate=5e-5,
    num_train_epochs=4.0,
)
SMOKE = dataclasses.replace(
    PAPER, max_seq_length=128, max_train_examples=1000, max_dev_examples=500, num_train_epochs=1.0
)
OWN = dataclasses.replace(
    PAPER, learning_rate=1e-4, bias_correction=True, task_options={"dev_fraction": 0.1}
)
SCALES = {
    "paper": PAPER,
    "smoke": SMOKE,
    "own": OWN,
    "own_small": dataclasses.replace(OWN, max_seq_length=128, learning_rate=3e-4),
}


def get_config(scale: str = "paper") -> FinetuneConfig:
    return choose_scale(SCALES, scale)
