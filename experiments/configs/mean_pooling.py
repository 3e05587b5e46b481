"""Tests whether the untrained [CLS] keeps No NSP behind left-to-right on pairs (5.1).

    python -m experiments.ablate --config=mean_pooling --workdir=runs/mean_pooling

A masked model classifies from [CLS], which nothing trains without next sentence prediction. A
left-to-right model classifies from the last token, which predicts in every step. Here each of the
kept models of 33 million tokens (`series`) is fine-tuned twice, once from its own token and once
from the mean over all tokens. Needs BERT_DATA_DIR; an hour of a core with AVX-512.

Expected: experiments/results/PLAN.md, "The mean of the tokens in place of [CLS]".
"""

import dataclasses

from experiments.configs import series
from experiments.configs.columns import CPU_FINETUNE, task_column
from experiments.configs.series import BERT, LTR, NO_NSP, RANDOM
from experiments.tables.planning.ablation import Ablation, Row
from experiments.tables.planning.claims import AT_MOST, Claim, each

COLUMNS = ("SNLI", "QNLI")


def of_mean(row: str) -> str:
    """Return the label of the row that classifies from the mean."""
    return f"{row}, mean"


def get_config(scale: str = "33m") -> Ablation:
    table = series.get_config("folds")
    snli = task_column(
        CPU_FINETUNE, "SNLI", "text_classification", "accuracy", "nli",
        note="9,997 official training pairs; all 9,842 dev pairs",
        task_options={"train_file": "snli_train_subset.tsv.gz", "dev_file": "snli_dev.tsv"},
    )  # fmt: skip
    qnli = series.kept().columns["QNLI"]
    own = [dataclasses.replace(row, label=row.label.removesuffix(", 33M")) for row in table.rows]
    mean = [
        Row(of_mean(row.label), row.variant, {"mean_pooling": True})
        for row in own
        if not row.reference
    ]
    return dataclasses.replace(
        table,
        title="The mean of the tokens in place of [CLS], or of the last token",
        scale=f"mean-pooling-{scale}",
        columns=(snli, qnli),
        rows=(*own[:-1], *mean, own[-1]),
        claims=_claims(),
    )


def _claims() -> tuple[Claim, ...]:
    def claim(name, text, better, worse, section="5.1", **fields) -> Claim:
        return Claim(name, text, section, each(COLUMNS, better, worse, **fields), own=True)

    return (
        claim("pre-training", "Pre-training helps: BERT beats random weights", BERT, RANDOM, "3.1"),
        claim("mean, No NSP", "The mean in place of [CLS] helps the masked model without NSP",
              of_mean(NO_NSP), NO_NSP),
        claim("mean, LTR", "The mean in place of the last token is worth at most two points to "
              "the left-to-right model", of_mean(LTR), LTR, kind=AT_MOST, margin=2.0),
        claim("left to right", "From its last token the left-to-right model is worse than the "
              "masked one from [CLS]", NO_NSP, LTR),
        claim("left to right, mean", "From the mean of the tokens the left-to-right model is worse "
              "than the masked one", of_mean(NO_NSP), of_mean(LTR)),
        claim("NSP", "Removing next sentence prediction hurts, from [CLS]", BERT, NO_NSP),
        claim("NSP, mean", "Removing next sentence prediction hurts, from the mean of the tokens",
              of_mean(BERT), of_mean(NO_NSP)),
    )  # fmt: skip
