"""Table 5, effect of the pre-training tasks (section 5.1).

    python -m experiments.ablate --config=experiments/configs/table5.py:cpu --workdir=runs/table5

    paper        4 rows, 3 pre-trainings of BERT base: about 4 days each on 16 TPU chips
    gpu          6 pre-trainings of a 4/512 model on 147 million tokens each, for one H100
    larger       18 of them on more text, fine-tuned on the paper's own tasks; one seed a command
                 of an H200 (docs/distribution.md)
    gpu-day      12 pre-trainings on 3.6 billion tokens each; not yet run
    night        15 pre-trainings of a 2/128 model, 16,000 steps each; 6.7 hours on two cores with
                 AVX-512; needs BERT_DATA_DIR
    cpu          12 of them, 4,000 steps each; 52 minutes on the same; needs BERT_DATA_DIR
    squad        night's pre-trainings with five other seeds, SQuAD alone, fine-tuned for twice as
                 long; a seed took 36 minutes with AVX-512, about two hours without
    smoke        under 5 minutes, from the embedded sample
    checkpoints  `make reproduce`: models of 33 million tokens that come with the project, three a
                 row, fine-tuned on the embedded sample in minutes
    quickstart   `make reproduce-from-scratch`: three pre-trainings of a 2/128 model on the embedded
                 sample, without the BiLSTM's row, and the spam classifier exported; about ten
                 minutes on two cores with AVX-512, 25 without, under 3 GB of memory

gpu took an H200 18 minutes for 65 of its 80 cells (docs/distribution.md). The scales of GPUs are
meant for KERAS_BACKEND=jax, whose workers share the GPU. `--dry_run --share=0.2` prints the time of
each cell at a fifth of an H100's peak. Tables 5 and 6 share cells. Where a command may last only
ten minutes, repeat it: it continues where it was stopped (`make gpu` does this for both tables):

    timeout --signal=INT 570 python -m experiments.ablate --config=table5:gpu --workdir=runs/gpu5 \\
        --cells=runs/gpu-cells

Expected at paper scale: the paper's Table 5. experiments/results/PLAN.md says what is expected at
cpu and night scale, and how large an effect each can show. Expected at quickstart scale: past the
plateau, masked-LM loss 4.7; pre-training helps on names and SNLI, spam needs none; after so few
steps the left-to-right model is ahead.

Expected at checkpoints scale (experiments/results/PLAN.md, "Table 5 in minutes"): pre-training
helps on QNLI and names; No NSP is about 2 points below BERT on QNLI; left to right is as good
there, and worse at names and filling in words. Three pre-trainings a row can show 2 points.
"""

import dataclasses

from experiments.configs import series
from experiments.configs.columns import (
    CPU_FINETUNE,
    HELDOUT_LOSS,
    MNLI_PART,
    SQUAD_PART,
    cloze,
    exact_match,
    task_column,
)
from experiments.configs.path import MESSAGES
from experiments.configs.scales import (
    SHORT,
    SHORT_RECORDS,
    UNCASED_VOCAB,
    WIKIPEDIA_HELDOUT,
    Scale,
    get_scale,
)
from experiments.tables.planning.ablation import Ablation, Corpus, Export, Row, Text, Variant
from experiments.tables.planning.claims import Claim, each
from experiments.training.settings.config import Phase

COLUMNS = ("MNLI-m", "QNLI", "MRPC", "SST-2", "SQuAD")
GLUE = ("MNLI-m", "QNLI", "MRPC", "SST-2")
# Columns that the paper's Table 5 does not have: they show the same with fewer examples.
TAGS = ("entities", "chunks", "part of speech", "names")
OTHERS = ("SQuAD exact match", "QQP", *TAGS, "cloze")
BILSTM = "LTR & No NSP + BiLSTM"


def get_config(scale: str = "smoke") -> Ablation:
    more = {"quickstart": _quickstart, "checkpoints": _checkpoints, "squad": _squad}
    more["larger"] = _larger
    chosen = get_scale(scale, **more)
    quick = scale == "quickstart"
    bilstm = scale not in ("quickstart", "checkpoints")
    bert = chosen.bert
    # The three pre-trainings: each differs from the one before in one field.
    trained = {"BERT": bert, "No NSP": chosen.no_nsp, "LTR & No NSP": chosen.left_to_right}
    columns = chosen.tasks(*COLUMNS, *OTHERS)
    seeds = chosen.pretrain_seeds
    return Ablation(
        name="table5",
        title="Effect of the pre-training tasks",
        variants=(
            *(
                Variant(name, config, seeds, checkpoints=chosen.checkpoints.get(name, ()))
                for name, config in trained.items()
            ),
            Variant.random(bert, seeds),
        ),
        columns=columns if chosen.checkpoints else (HELDOUT_LOSS, *columns),
        rows=(
            Row("BERT", "BERT", paper_row="BERT"),
            Row("No NSP", "No NSP", paper_row="No NSP"),
            Row("LTR & No NSP", "LTR & No NSP", paper_row="LTR & No NSP"),
            # The same pre-trained model: the BiLSTM comes with fine-tuning.
            *([Row(BILSTM, "LTR & No NSP", {"bilstm": True}, paper_row=BILSTM)] if bilstm else []),
            Row.random(),
        ),
        claims=_claims(chosen, bilstm),
        exports=(Export("BERT", "SMS spam", MESSAGES),) if quick else (),
        **chosen.fields(),
    )


def _claims(scale: Scale, with_bilstm: bool) -> tuple[Claim, ...]:
    def claim(name, text, section, columns, better, worse, own=False, **fields) -> Claim:
        asked = each([c.label for c in scale.tasks(*columns)], better, worse, **fields)
        lacks = scale.lacks(*(c for c in columns if c in COLUMNS))
        return Claim(name, text, section, asked, lacks, own)

    masked, left_to_right, random = "No NSP", "LTR & No NSP", "random initialisation"
    claims = (
        claim(
            "pre-training",
            "Pre-training helps: BERT beats the same model with random weights on every task",
            "3.1", COLUMNS, "BERT", random, own=True,
        ),
        claim(
            "NSP",
            "Removing next sentence prediction hurts QNLI, MNLI and SQuAD",
            "5.1", ("QNLI", "MNLI-m", "SQuAD"), "BERT", masked,
        ),
        claim(
            "NSP, QNLI",
            "Removing next sentence prediction hurts QNLI, where the paper's effect is largest",
            "5.1", ("QNLI",), "BERT", masked,
        ),
        claim(
            "left to right",
            "The left-to-right model is worse than the masked one on all tasks",
            "5.1", COLUMNS, masked, left_to_right,
        ),
        claim(
            "both tasks",
            "BERT, with both pre-training tasks, is better than the left-to-right model without "
            "next sentence prediction on all tasks",
            "5.1", (*COLUMNS, "SQuAD exact match"), "BERT", left_to_right,
        ),
        claim(
            "large drops",
            "The left-to-right model drops by over two points on MRPC and SQuAD",
            "5.1", ("MRPC", "SQuAD"), masked, left_to_right, margin=2.0,
        ),
        claim(
            "BiLSTM, SQuAD",
            "A BiLSTM on top of the left-to-right model helps SQuAD",
            "5.1", ("SQuAD",), BILSTM, left_to_right,
        ),
        claim(
            "BiLSTM, GLUE",
            # In the paper by 0.0 (MNLI) to 1.8 points (MRPC).
            "A BiLSTM on top of the left-to-right model hurts GLUE",
            "5.1", GLUE, left_to_right, BILSTM,
        ),
        claim(
            "BiLSTM, far worse",
            "With a BiLSTM the left-to-right model is still over a point worse than the masked one "
            "on SQuAD",
            "5.1", ("SQuAD",), masked, BILSTM, margin=1.0,
        ),
        claim(
            "pre-training, tags",
            "Pre-training helps to tag words: BERT beats the same model with random weights",
            "3.1", TAGS, "BERT", random, own=True,
        ),
        claim(
            "left to right, tags",
            "The left-to-right model tags words worse than the masked one",
            "5.1", TAGS, masked, left_to_right, own=True,
        ),
        claim(
            "left to right, QQP",
            "The left-to-right model finds paraphrases worse on QQP, which has more to learn from "
            "than MRPC",
            "5.1", ("QQP",), masked, left_to_right, own=True,
        ),
        claim(
            "left to right, exact match",
            "The left-to-right model marks fewer answers exactly than the masked one",
            "5.1", ("SQuAD exact match",), masked, left_to_right, own=True,
        ),
        claim(
            "BiLSTM, tags",
            "A BiLSTM on top of the left-to-right model helps it to tag words",
            "5.1", TAGS, BILSTM, left_to_right, own=True,
        ),
        claim(
            "cloze",
            "The masked model fills in a word of unseen text better than the left-to-right one",
            "3.1", ("cloze",), masked, left_to_right, own=True,
        ),
    )  # fmt: skip
    bilstm = {c.name for c in claims if any(BILSTM in part.rows for part in c.comparisons)}
    left_out = set() if with_bilstm else bilstm
    kept = {c.comparisons: c for c in claims if c.comparisons and c.name not in left_out}
    return tuple(kept.values())  # of two that ask the same here, the later and narrower


def _squad() -> Scale:
    """Return the scale night with SQuAD alone and six epochs, after which a pilot's BERT had left
    its plateau.

    The pre-trainings are new: the scores of night's own are known (experiments/results/PLAN.md).
    """
    night = get_scale("night")
    column = night.columns["SQuAD"]
    note = f"{column.note}; six epochs"
    column = column.changed(num_train_epochs=6.0, seeds=(1,), note=note)
    return dataclasses.replace(
        night, name="squad", pretrain_seeds=(6, 7, 8, 9, 10), columns={"SQuAD": column}
    )


def _larger() -> Scale:
    """Return the scale gpu on more text, with the paper's own vocabulary and examples of its own
    tasks."""
    gpu = get_scale("gpu")
    texts = Text(("corpus/wikipedia_2015/wiki15_0[0-7].txt.xz",), layout="articles")
    squad = gpu.columns["SQuAD"].changed(**SQUAD_PART)
    columns = (
        gpu.columns["MNLI-m"].changed(**MNLI_PART),
        gpu.columns["QNLI"].changed(
            task_options={"train_file": "train_rebuilt2.tsv.gz"},
            note="30,044 training pairs, rebuilt of SQuAD's questions; the official dev set",
        ),
        gpu.columns["SST-2"].changed(
            task_options={"dev_from_train": 20_000},
            max_train_examples=20_000,
            note=get_scale("night").columns["SST-2"].note,
        ),
        squad,
        exact_match(squad),
    )
    records = zip(gpu.records, (1, 2), strict=True)
    return dataclasses.replace(
        gpu,
        name="larger",
        corpus=Corpus(
            texts=(texts, WIKIPEDIA_HELDOUT),
            vocab=UNCASED_VOCAB,
            description="130 MB of English Wikipedia of 2015, with the paper's 30,522 pieces; held "
            "out: 1,500 articles of another Wikipedia",
        ),
        records=tuple(dataclasses.replace(one, dupe_factor=times) for one, times in records),
        bert=dataclasses.replace(
            gpu.bert, bert=dataclasses.replace(gpu.bert.bert_config, vocab_size=30_522)
        ),
        pretrain_seeds=(3, 4, 5, 6, 7, 8),
        columns={column.label: column for column in columns},
        nli_mixture=(),
        notes=("Wikipedia alone, a hundred times less text than the paper's",),
        workers=10,
    )  # fmt: skip


def _checkpoints() -> Scale:
    """Return the scale of the kept models (`series`) on the tasks of the embedded sample."""
    smoke, kept = get_scale("smoke"), series.kept()
    names = smoke.columns["names"].changed(max_train_examples=0, num_train_epochs=2.0)
    # Batch, epochs, rate and Adam's correction are those with which single runs of BERT learnt most
    # in this time (experiments/results/PLAN.md).
    qnli = task_column(
        CPU_FINETUNE,
        "QNLI",
        "qnli",
        "accuracy",
        "sample:qnli",
        paper="QNLI",
        note="10,000 training pairs, rebuilt of SQuAD's questions; the official dev set",
        task_options={"train_file": "train.tsv.gz", "dev_file": "dev.tsv.gz"},
        train_batch_size=16,
        num_train_epochs=1.0,
        learning_rate=3e-4,
        bias_correction=True,
    )
    passages = Text(("sample:squad_train_passages",), heldout=True)
    return dataclasses.replace(
        kept,
        name="checkpoints",
        corpus=dataclasses.replace(
            kept.corpus,
            texts=(Text(("sample:wikipedia",)), passages),
            description="54 MB of English Wikipedia and 53 MB of novels; the cloze text: passages "
            "of 44 other articles",
        ),
        records=(dataclasses.replace(get_scale("night").records[1], dupe_factor=1),),
        columns={
            "QNLI": qnli,
            "names": names,
            "cloze": cloze("length 64", 2048),
        },
        notes=(
            *kept.notes,
            "half of the sentences with names, and 2.6 % of those of the cloze, stand in the text "
            "of the pre-training, which all rows but the last have read alike",
        ),
        data_dir="",
    )  # fmt: skip


def _quickstart() -> Scale:
    """Return the smoke scale with six times the steps, and all examples of the embedded tasks."""
    smoke = get_scale("smoke")
    bert = dataclasses.replace(
        smoke.bert,
        phases=(
            dataclasses.replace(SHORT, num_train_steps=1200),
            Phase("length 64", 64, 2400),
        ),
        num_warmup_steps=144,
        eval_every=720,
        save_every=500,
        max_heldout_examples=1024,
    )

    def column(name, seeds, note):
        whole = {"num_train_epochs": 2.0, "max_train_examples": 0}
        return smoke.columns[name].changed(**whole, seeds=seeds, note=note)

    return dataclasses.replace(
        smoke,
        name="quickstart",
        records=(SHORT_RECORDS, dataclasses.replace(smoke.records[0], dupe_factor=2)),
        bert=bert,
        columns={
            "MNLI-m": column("MNLI-m", (1, 2), "7,001 pairs of SNLI in place of MNLI"),
            "SST-2": column(
                "SST-2", (1, 2), "SMS Spam in place of SST-2, the paper's single sentence task"
            ),
            "names": column("names", (1, 2), smoke.columns["names"].note),
            "cloze": smoke.columns["cloze"],
        },
        notes=(
            "models of this size on excerpts of the tasks: the numbers cannot be compared with the "
            "paper's, only their order can",
            "QNLI, MRPC and SQuAD are left out",
            "left-to-right models predict 30 % of the positions, drawn anew in every step",
        ),
    )
