"""The gaps of Table 5 against pre-training tokens: 8, 33 and 131 million (section 5.1, Figure 5).

    python -m experiments.ablate --config=series:33m --workdir=runs/series --cells=runs/series-cells

Each of BERT, No NSP and LTR & No NSP has one trunk, trained at a constant rate. The model of each
size branches off the trunk and decays its rate over the last quarter of its steps; the trunk itself
never decays. Masks are drawn anew in every pass over Wikipedia and novels.

Scales: 33m (a 2/128 model after 8 and 33 million tokens, three pre-trainings a row; needs
BERT_DATA_DIR; about 20 minutes of a core with AVX-512 a model, and 50 a seed to fine-tune), 131m
(131 million too, 45 minutes more a model; the whole took an H100 13 minutes), folds (MRPC and RTE
by ten folds over all labelled pairs, of the kept models after 33 million; an hour and a half of a
core), labels (the kept models on three times the questions of SQuAD, and on MNLI's own pairs; an
hour of a core), smoke (the embedded sample, minutes: shows that everything runs).

Expected, and when to stop: experiments/results/PLAN.md, "Gaps against tokens".
"""

import dataclasses
from pathlib import Path

from experiments.configs.columns import (
    CPU_FINETUNE,
    HELDOUT_LOSS,
    MNLI_PART,
    SNLI,
    SQUAD_PART,
    cloze,
    columns_for,
    exact_match,
    task_column,
    two_core_columns,
)
from experiments.configs.scales import SHORT, Scale, get_scale, wikipedia_and_novels
from experiments.tables.planning.ablation import Ablation, Curve, Row, Variant
from experiments.tables.planning.claims import Claim, each
from experiments.training.settings.config import Phase, choose_scale

# Size -> steps of the model, its decay included; a step has 2,048 tokens.
TOKENS = {"8M": 4_000, "33M": 16_000, "131M": 64_000}
# The models after 33 million tokens, a folder "bert-seed-1" each, but for those of the package.
CHECKPOINTS = Path(__file__).parents[1] / "results" / "table5" / "series" / "checkpoints"
IN_THE_PACKAGE = {"no-nsp-seed-1": "tiny-wikipedia-no-nsp", "ltr-seed-1": "tiny-wikipedia-ltr"}
BERT, NO_NSP, LTR, RANDOM = "BERT", "No NSP", "LTR & No NSP", "random initialisation"
# Columns asked of BERT less No NSP, and of No NSP less LTR: the paper's and further ones.
OF_NSP = ("QNLI", "SQuAD", "MNLI-m")
OF_PAPER = ("QNLI", "SQuAD", "SQuAD exact match", "MNLI-m", "SNLI", "MRPC")
OWN = ("QQP", "entities", "chunks")
# By the plan's stopping rule the series ends before this size, so its results are exploratory.
EXPLORATORY = "131M"


def get_config(scale: str = "33m") -> Ablation:
    made = {"33m": lambda: (_two_cores(scale), ("8M", "33M"))}
    made |= {"131m": lambda: (_two_cores(scale), tuple(TOKENS)), "smoke": _smoke}
    made |= {"folds": _folds, "labels": _labels}
    chosen, sizes = choose_scale(made, scale)
    pretrains = {
        BERT: chosen.bert,
        NO_NSP: chosen.no_nsp,
        LTR: chosen.left_to_right,
    }
    variants = [
        variant
        for name, pretrain in pretrains.items()
        for variant in _branches(name, pretrain, sizes, chosen)
    ]
    random = Variant.random(chosen.bert, chosen.pretrain_seeds)
    return Ablation(
        name="table5",
        title="Effect of the pre-training tasks against pre-training tokens",
        variants=(*variants, random),
        columns=(*([] if chosen.checkpoints else [HELDOUT_LOSS]), *chosen.columns.values()),
        rows=(
            *(
                Row(f"{name}, {size}", f"{name}, {size}", paper_row=name)
                for size in sizes
                for name in pretrains
            ),
            Row.random(),
        ),
        claims=(
            *(claim for size in sizes for claim in _claims(chosen, size)),
            *(_both_tasks(chosen, size) for size in sizes),
        ),
        curves=_gaps(chosen, sizes) if len(sizes) > 1 else (),
        **(chosen.fields() | {"scale": f"series-{scale}"}),
    )


def checkpoints(row: str) -> tuple[str, ...]:
    """Return the kept models of a row in the order of their seeds, as `official_bert.load` takes
    them."""
    stem = {BERT: "bert", NO_NSP: "no-nsp", LTR: "ltr"}[row]
    names = [f"{stem}-seed-{seed}" for seed in (1, 2, 3)]
    return tuple(IN_THE_PACKAGE.get(name, str(CHECKPOINTS / name)) for name in names)


def _gaps(scale: Scale, sizes) -> tuple[Curve, ...]:
    """Return the differences that the claims are about, as curves over the steps."""
    asked = [(column, BERT, NO_NSP) for column in OF_NSP]
    asked += [(column, NO_NSP, LTR) for column in (*OF_PAPER, *OWN, "cloze")]
    return tuple(
        Curve(
            f"{better} less {worse}",
            tuple(f"{better}, {size}" for size in sizes),
            column,
            tuple(f"{worse}, {size}" for size in sizes),
        )
        for column, better, worse in asked
        if column in scale.columns
    )


def _branches(name, pretrain, sizes, scale):
    """Return a row's variants: the stretches of the trunk, and the decay that branches off each
    end."""
    seeds, before, found = scale.pretrain_seeds, "", []
    if scale.checkpoints:
        return [
            Variant(f"{name}, {sizes[-1]}", pretrain, seeds, checkpoints=scale.checkpoints[name])
        ]
    for size in sizes:
        total = pretrain.num_train_steps * TOKENS[size] // TOKENS[sizes[-1]]
        decay = total // 4
        trunk = f"{name}, trunk of {size}"
        for label, steps, falls, start in (
            (trunk, total - decay, 0, before),
            (f"{name}, {size}", total, decay, f"@{trunk}"),
        ):
            *shorter, last = pretrain.phases
            last = dataclasses.replace(
                last, num_train_steps=steps - sum(p.num_train_steps for p in shorter)
            )
            branch = dataclasses.replace(
                pretrain, phases=(*shorter, last), num_decay_steps=falls, trunk=start
            )
            found.append(Variant(label, branch, seeds))
        before = f"@{trunk}"
    return found


def _claims(scale: Scale, size: str):
    def claim(name, text, section, columns, better, worse, own=False):
        columns = [column for column in columns if column in scale.columns]
        worse = worse if worse == RANDOM else f"{worse}, {size}"
        asked = each(columns, f"{better}, {size}", worse)
        name, text = f"{name}, {size}", f"{text}, after {size} tokens"
        return Claim(name, text, section, asked, own=own, exploratory=size == EXPLORATORY)

    trained = [column for column in scale.columns if column != "cloze"]
    of_nsp = [column for column in OF_NSP if column in scale.columns]
    claims = (
        claim("pre-training", "BERT beats random weights on every task", "3.1", trained,
              BERT, RANDOM, own=True),
        claim("NSP", f"Removing next sentence prediction hurts {' and '.join(of_nsp)}", "5.1",
              OF_NSP, BERT, NO_NSP),
        claim("left to right", "The left-to-right model is worse than the masked one", "5.1",
              OF_PAPER, NO_NSP, LTR),
        claim("left to right, more", "The left-to-right model is worse than the masked one on QQP "
              "and in tagging words", "5.1", OWN, NO_NSP, LTR, own=True),
        claim("left to right, RTE", "The left-to-right model is worse than the masked one on RTE",
              "5.1", ("RTE",), NO_NSP, LTR, own=True),
        claim("cloze", "The masked model fills in a word better than the left-to-right one", "3.1",
              ("cloze",), NO_NSP, LTR, own=True),
    )  # fmt: skip
    return [claim for claim in claims if claim.comparisons]


def _both_tasks(scale: Scale, size: str) -> Claim:
    """Return the claim that was asked after the series had run, so that it is exploratory."""
    text = "BERT is better than the left-to-right model without next sentence prediction"
    columns = [column for column in OF_PAPER if column in scale.columns]
    asked = each(columns, f"{BERT}, {size}", f"{LTR}, {size}")
    text = f"{text}, after {size} tokens"
    return Claim(f"both tasks, {size}", text, "5.1", asked, exploratory=True)


def _two_cores(name: str) -> Scale:
    night = get_scale("night")
    records = tuple(
        dataclasses.replace(one, dynamic_masking=True, dupe_factor=2) for one in night.records
    )
    columns = two_core_columns({})
    squad = columns["SQuAD"].changed(num_train_epochs=6.0, max_dev_examples=0)
    note = (
        "one window around the answer's sentence; six epochs; 15,412 of 87,599 training questions"
    )
    chosen = (
        columns["QNLI"],
        squad.changed(note=f"F1; {note}; 10,565 of 10,570 dev questions"),
        exact_match(squad),
        columns["entities"],
        columns["chunks"],
        columns["QQP"],
        SNLI,
        cloze("length 64", 4096),
    )
    short = dataclasses.replace(SHORT, num_train_steps=1_000)
    long = Phase("length 64", 64, TOKENS[name.upper()] - 1_000)
    return dataclasses.replace(
        night,
        name=name,
        corpus=wikipedia_and_novels(vocab_size=8192),
        records=records,
        bert=dataclasses.replace(night.bert, phases=(short, long), num_warmup_steps=320),
        pretrain_seeds=(1, 2, 3),
        columns={column.label: column for column in chosen},
    )


def kept() -> Scale:
    """Return the scale 33m with kept models in place of its pre-trainings, text and records."""
    made = _two_cores("33m")
    models = {name: checkpoints(name) for name in (BERT, NO_NSP, LTR)}
    return dataclasses.replace(
        made,
        corpus=dataclasses.replace(made.corpus, vocab=models[BERT][0], texts=()),
        records=(),
        bert=dataclasses.replace(made.bert, num_decay_steps=TOKENS["33M"] // 4),
        checkpoints=models,
    )


def _folds():
    mrpc = get_scale("night").columns["MRPC"]
    rte = task_column(CPU_FINETUNE, "RTE", "rte", "accuracy", "glue_data")
    note = "all labelled pairs, by ten folds"
    columns = {one.label: one.changed(folds=10, seeds=(1,), note=note) for one in (mrpc, rte)}
    return dataclasses.replace(kept(), name="folds", columns=columns), ("33M",)


def _labels():
    """Return the kept models on MNLI, and on all SQuAD questions there are for as many steps as in
    the series."""
    chosen = kept()
    squad = chosen.columns["SQuAD"].changed(**SQUAD_PART)
    mnli = columns_for(CPU_FINETUNE, (1,))["MNLI-m"].changed(**MNLI_PART)
    columns = {one.label: one for one in (mnli, squad, exact_match(squad))}
    return dataclasses.replace(chosen, name="labels", columns=columns), ("33M",)


def _smoke():
    smoke = get_scale("smoke")
    bert = dataclasses.replace(smoke.bert, phases=(Phase("length 64", 64, 120),),
                               num_warmup_steps=10, max_heldout_examples=64)  # fmt: skip
    columns = {name: smoke.columns[name] for name in ("MNLI-m", "cloze")}
    columns = {column.label: column for column in columns.values()}
    return dataclasses.replace(smoke, bert=bert, columns=columns), ("8M", "33M")
