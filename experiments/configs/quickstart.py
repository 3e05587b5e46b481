"""Table 5 in miniature on the embedded sample: the first thing to run.

    python -m experiments.ablate --config=experiments/configs/quickstart.py --workdir=runs/qs

Learns a vocabulary, makes pre-training records, pre-trains three tiny models on the same text with
the same number of steps (BERT; No NSP; LTR & No NSP), fine-tunes each and a randomly initialised
one on a sentence pair task (SNLI excerpt), a single sentence task (SMS Spam) and reading
comprehension (SQuAD excerpt), prints the paper's Table 5 with our numbers beside it and exports the
spam classifier.

Cost: about 7 minutes on two cores, under 3 GB of memory.
Expected: scores on SMS Spam and SNLI beat the trivial baselines clearly. With 9 MB of text and
models a hundred times smaller than BERT base, differences between the pre-training tasks are mostly
within their intervals: the report says which are not.
"""

import dataclasses

from experiments.tables.ablation import Ablation, Column, Corpus, Export, Records, Row, Variant
from experiments.tables.claims import AT_MOST, Claim, Comparison, each
from experiments.training.config import FinetuneConfig, Phase, PretrainConfig, choose_scale
from official_bert.config import BertConfig

# 2 layers of 128: with vectors this short, weights drawn with the paper's 0.02 are too small to
# break out of predicting word frequencies in a few thousand steps: 0.05 = 0.02 * sqrt(768 / 128).
TINY = BertConfig(
    vocab_size=4096,
    hidden_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=512,
    max_position_embeddings=64,
    hidden_dropout_prob=0.0,  # a few epochs over the text: nothing to overfit yet
    attention_probs_dropout_prob=0.0,
    initializer_range=0.05,
)
STEPS = 3600

BERT = PretrainConfig(
    bert=TINY,
    phases=(Phase("length 64", max_seq_length=64, num_train_steps=STEPS),),
    num_warmup_steps=STEPS // 25,
    train_batch_size=32,
    learning_rate=1e-3,
    adam_beta_2=0.98,
    output_bias="unigram",
    eval_every=STEPS // 5,
    save_every=500,
    keep_checkpoints=1,
    max_heldout_examples=1024,
)
NO_NSP = dataclasses.replace(BERT, use_nsp=False)
LTR = dataclasses.replace(
    NO_NSP,
    bert=dataclasses.replace(TINY, attention_direction="left_to_right"),
    # 19 of 64 positions: twice as many as masked LM predicts, a third of the time of all of them.
    left_to_right_fraction=0.3,
)

FINETUNE = FinetuneConfig(
    max_seq_length=64,
    train_batch_size=32,
    learning_rate=5e-4,
    num_train_epochs=2.0,
    dropout=0.1,
    adam_beta_2=0.98,
    save_model=False,
)
SNLI = dataclasses.replace(FINETUNE, task="text_classification", data_dir="sample:snli")
SPAM = dataclasses.replace(FINETUNE, task="text_classification", data_dir="sample:sms_spam")
SQUAD = dataclasses.replace(
    FINETUNE,
    task="squad_v1.1",
    data_dir="sample:squad",
    task_options={"doc_stride": 16, "max_query_length": 24},
)

COLUMNS = (
    Column(
        "held-out loss",
        metric="masked_lm_loss",
        percent=False,
        lower_is_better=True,
        note="nats a predicted piece; left-to-right models predict every piece from those before "
        "it, so their loss does not compare with the others'",
    ),
    Column(
        "SNLI",
        SNLI,
        "accuracy",
        seeds=(1, 2),
        paper_column="MNLI-m",
        note="7,001 pairs of SNLI in place of MNLI",
    ),
    Column(
        "SMS spam",
        SPAM,
        "accuracy",
        seeds=(1, 2),
        paper_column="SST-2",
        note="SMS Spam in place of SST-2, the paper's single sentence task",
    ),
    Column(
        "SQuAD",
        SQUAD,
        "f1",
        seeds=(1,),
        paper_column="SQuAD",
        note="F1; 3,000 training questions, windows of 64 pieces",
    ),
)
ROWS = (
    Row("BERT", "BERT", paper_row="BERT"),
    Row("No NSP", "No NSP", paper_row="No NSP"),
    Row("LTR & No NSP", "LTR & No NSP", paper_row="LTR & No NSP"),
    Row("random initialisation", "random", reference=True),
)
TASKS = ("SNLI", "SMS spam", "SQuAD")
CLAIMS = (
    Claim(
        "pre-training",
        "Pre-training helps: BERT is better than the same model without it",
        "3.1",
        (*each(("SNLI", "SQuAD"), "BERT", "random initialisation"),),
    ),
    Claim(
        "NSP",
        "Removing next sentence prediction hurts sentence pairs and reading",
        "5.1",
        each(("SNLI", "SQuAD"), "BERT", "No NSP"),
    ),
    Claim(
        "NSP, single sentences",
        "On single sentences it makes no difference of more than half a point",
        "5.1",
        (Comparison("SMS spam", "BERT", "No NSP", AT_MOST, margin=0.5),),
    ),
    Claim(
        "bidirectional",
        "Left-to-right models are worse on all tasks",
        "5.1",
        each(TASKS, "No NSP", "LTR & No NSP"),
    ),
)
MESSAGES = (
    "Congratulations! You have won a free holiday. Call 09061701461 now to claim your prize.",
    "Are we still meeting at the library at six?",
    "URGENT: your account has been selected for a 500 pound reward, text WIN to 80086",
    "Running ten minutes late, sorry. Order me a coffee?",
    "Txt STOP to end. Ringtones and games from only 25p a day!",
)


def get_config(scale: str = "cpu") -> Ablation:
    return choose_scale({"cpu": _cpu, "smoke": _smoke}, scale)


def _cpu() -> Ablation:
    return Ablation(
        name="table5",
        title="Effect of the pre-training tasks, in miniature",
        scale="quickstart",
        corpus=Corpus(
            held_out=0.04,
            vocab_size=TINY.vocab_size,
            description="the embedded sample: 12 novels, 458 Wikipedia articles, 44 articles of "
            "SQuAD's training set; 8.9 MB",
        ),
        records=(Records("length 64", 64, max_predictions_per_seq=10, dupe_factor=2),),
        variants=(
            Variant("BERT", BERT),
            Variant("No NSP", NO_NSP),
            Variant("LTR & No NSP", LTR),
            Variant("random", BERT, random_init=True),
        ),
        columns=COLUMNS,
        rows=ROWS,
        claims=CLAIMS,
        exports=(Export("BERT", "SMS spam", MESSAGES),),
        notes=(
            "Models of this size on excerpts of the tasks: the numbers cannot be compared with the "
            "paper's, only their order can",
            "SNLI stands in the place of MNLI, SMS Spam in that of SST-2; QNLI and MRPC are left "
            "out",
            "left-to-right models predict 30 % of the positions, drawn anew in every step",
        ),
    )


def _smoke() -> Ablation:
    """Everything once, in about a minute; the scores mean nothing."""
    base = _cpu()
    small = dataclasses.replace(TINY, hidden_size=32, intermediate_size=64)

    def shrink(variant):
        bert = dataclasses.replace(
            small, attention_direction=variant.pretrain.bert.attention_direction
        )
        phases = (dataclasses.replace(variant.pretrain.phases[0], num_train_steps=40),)
        pretrain = dataclasses.replace(
            variant.pretrain, bert=bert, phases=phases, eval_every=20, num_warmup_steps=4
        )
        return dataclasses.replace(variant, pretrain=pretrain)

    def sample(column):
        if column.finetune is None:
            return column
        finetune = dataclasses.replace(
            column.finetune, max_train_examples=96, max_dev_examples=64, num_train_epochs=1.0
        )
        return dataclasses.replace(column, finetune=finetune, seeds=(1,))

    return dataclasses.replace(
        base,
        scale="smoke",
        variants=tuple(map(shrink, base.variants)),
        columns=tuple(map(sample, base.columns)),
        records=(dataclasses.replace(base.records[0], dupe_factor=1),),
    )
