"""Sequence to sequence: texts that are written from texts.

    python -m experiments.finetune --config=seq2seq --config.model=bert_base_en_uncased \\
        --config.data_dir=pairs --workdir=runs/pairs

on a folder of train, dev and test files with the columns source and target, such as
`text_pairs` makes. --config.decoder says what writes: separate (BERT2BERT; the
Transformer where --config.model is empty), shared (BertShare), prefix (UniLM's mask), rnn and
rnn_attention. The table

    sudo apt install sword-text-kjv sword-text-sparv
    official-bert text_pairs --source=sword:spaRV1909eb --target=sword:engKJV2006eb \\
        --max_words=16 --output=DIR/verses
    python -m experiments.ablate --config=seq2seq:cpu --config.data_dir=DIR --workdir=runs/seq2seq

sets them side by side, translating verses from Spanish to English (King James), with 1,000 pairs
and with all 5,800. Another writes SQuAD's questions from answers and the sentences that hold them:

    official-bert text_pairs --squad=TRAIN.json,DEV.json --max_words=30 --output=DIR/questions
    python -m experiments.ablate --config=seq2seq:questions --config.data_dir=DIR --workdir=RUNS

Scales: finetune, cpu (verses; 2 layers, 128 wide; two seeds a row; 35 minutes of one core, measured
by a run of a row), questions (the same models; 25 minutes), smoke (verses; one seed, a few steps; 5
minutes), gpu (verses of up to 40 words, --max_words=40; 1,000, 5,000 and all 28,000; not run).

Expected: see experiments/results/PLAN.md.
"""

import dataclasses
from functools import partial

from experiments.tables.planning.ablation import Ablation, Column, Corpus, Row, Variant
from experiments.tables.planning.claims import Claim, each
from experiments.training.settings.config import FinetuneConfig, PretrainConfig, choose_scale
from official_bert.config import named_config

FINETUNE = FinetuneConfig(
    task="text_to_text",
    task_options={"max_target_length": 128, "beams": 4},
    model="bert_base_en_uncased",
    max_seq_length=128,
    train_batch_size=32,
    learning_rate=1e-4,
    num_train_epochs=10.0,
    bias_correction=True,
)
CPU = dataclasses.replace(
    FINETUNE,
    model="",
    data_dir="verses",
    task_options={"max_target_length": 32},
    max_seq_length=48,
    train_batch_size=16,
    learning_rate=1e-3,
    max_dev_examples=400,
    dropout=0.1,
)
# The sizes of the checkpoint, tiny-wikipedia.
_SIZES = named_config(
    "tiny", vocab_size=8192, num_attention_heads=4, max_position_embeddings=128,
    initializer_range=0.05,
)  # fmt: skip
RNN, ATTENTION, TRANSFORMER = "RNN", "RNN + attention", "Transformer"
BERT2BERT, SHARED, PREFIX = "BERT2BERT", "BertShare", "BERT, prefix mask"
_ROWS = (
    Row(RNN, "random", {"decoder": "rnn"}),
    Row(ATTENTION, "random", {"decoder": "rnn_attention"}),
    Row(TRANSFORMER, "random"),
    Row(BERT2BERT, "BERT"),
    Row(SHARED, "BERT", {"decoder": "shared"}),
    Row(PREFIX, "BERT", {"decoder": "prefix"}),
)
_NEAREST = {"nearest source": "nearest-source"}
_BASELINES = {
    "verses": _NEAREST | {"IBM Model 1": "ibm-model-1"},
    "questions": _NEAREST | {"opening and sentence": "opening"},
}
_TEXTS = {
    "verses": (
        "verses from Spanish to English",
        "verses of the Reina-Valera of 1909 and the King James Version; the vocabulary is the "
        "checkpoint's, of English, so that Spanish is read in short pieces; greedy texts",
    ),
    "questions": (
        "SQuAD's questions from its sentences",
        "a source is an answer and the sentence that holds it, at most 30 words; no article is in "
        "train and dev; greedy texts",
    ),
}
_HALVES = {"shorter half": "bleu_short", "longer half": "bleu_long", "longer - shorter": "bleu_gap"}


def get_config(scale: str = "finetune") -> FinetuneConfig | Ablation:
    gpu = dataclasses.replace(
        CPU, max_seq_length=64, task_options={"max_target_length": 64}, max_dev_examples=0
    )
    asked, four = dataclasses.replace(CPU, data_dir="questions"), _ROWS[:4]
    made = {
        "finetune": FINETUNE,
        "gpu": partial(_table, "gpu", gpu, {1000: 100.0, 5000: 40.0, 0: 20.0}, 3),
        "cpu": partial(_table, "cpu", CPU, {1000: 8.0, 0: 4.0}, 2),
        "questions": partial(_table, "questions", asked, {1000: 10.0, 5000: 2.0, 0: 1.0}, 2, four),
        "smoke": partial(_table, "smoke", CPU, {100: 1.0, 200: 1.0}, 1),
    }
    return choose_scale(made, scale)


def _table(scale, base: FinetuneConfig, epochs: dict[int, float], seeds: int, rows=_ROWS):
    """Return `epochs`: {training pairs, 0 for all: epochs}."""
    (title, note), baselines = _TEXTS[base.data_dir], _BASELINES[base.data_dir]
    columns = [
        Column(
            f"BLEU, {pairs:,} pairs" if pairs else "BLEU, all pairs",
            dataclasses.replace(base, max_train_examples=pairs, num_train_epochs=count),
            "bleu",
            tuple(range(1, seeds + 1)),
        )
        for pairs, count in epochs.items()
    ]
    bleu = [column.label for column in columns]
    most, (_, long, gap) = bleu[-1:], _HALVES
    last = columns[-1]
    columns += [last.changed(label=label, metric=metric) for label, metric in _HALVES.items()]
    claims = (
        Claim("attention", "attention helps (Bahdanau 2015)", "5.1", each(bleu, ATTENTION, RNN)),
        Claim("long", "attention helps on long sentences (Bahdanau 2015)", "5.2.2",
              each([long], ATTENTION, RNN)),
        Claim("longer", "attention helps more on long sentences than on short ones "
              "(Bahdanau 2015)", "5.2.2", each([gap], ATTENTION, RNN)),
        Claim("Transformer", "the Transformer is above both RNNs (Vaswani 2017)", "6.1",
              (*each(most, TRANSFORMER, RNN), *each(most, TRANSFORMER, ATTENTION))),
        Claim("few", "pre-training helps where pairs are few", "",
              each(bleu[:-1], BERT2BERT, TRANSFORMER), own=True),
        Claim("many", "pre-training helps with all pairs", "",
              each(most, BERT2BERT, TRANSFORMER), own=True),
    )  # fmt: skip
    return Ablation(
        name="seq2seq",
        title=f"Sequence to sequence: {title}",
        scale=scale,
        corpus=Corpus(texts=(), vocab="tiny-wikipedia"),
        variants=(
            Variant("random", PretrainConfig(bert=_SIZES), seeds=(0,), random_init=True),
            Variant("BERT", checkpoint="tiny-wikipedia"),
            *(Variant(label, checkpoint=name) for label, name in baselines.items()),
        ),
        columns=tuple(columns),
        rows=(*rows, *(Row(label, label) for label in baselines)),
        claims=claims,
        notes=(note, "halves by the length of the source, of the model with most pairs"),
    )
