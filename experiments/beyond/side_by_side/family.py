"""BERT's successors beside BERT at equal compute: the effect of each change (docs/family.md).

    python -m experiments.ablate --config=family:night --workdir=runs/family

Every row is BERT's recipe with what its system changed, on the same text, for as many matrix
operations: a row whose step is cheaper takes more of them. Optimiser, vocabulary and batch stay
BERT's, so that a row differs by its idea alone. (Left-to-right takes equal steps. The student's
compute is equal too; what its teacher, the BERT row, computes is shown apart.)

Scales: night (three pre-trainings a row of Table 5's `cpu` recipe, twice as long; some 7 hours of
two cores with AVX-512; needs BERT_DATA_DIR), smoke (a sixth of Table 5's smoke, one pre-training a
row, a quarter of an hour).

Expected: see experiments/results/PLAN.md; found: experiments/results/family/night/report.md.
"""

import dataclasses

from experiments.beyond.albert.pairs import Pairs
from experiments.configs.columns import cloze
from experiments.configs.scales import Scale, get_scale
from experiments.tables.planning.ablation import Ablation, Column, Row, Variant
from experiments.tables.planning.claims import AT_MOST, Claim, Comparison, each
from experiments.tables.planning.cost import pretraining_steps, total_flops
from experiments.training.settings.config import PretrainConfig, choose_scale
from experiments.training.settings.options import replaced

TASKS = ("QNLI", "SQuAD", "entities", "names")
# Added to the names of records: RoBERTa's rows of one segment, SpanBERT's masks on such rows, and
# ELECTRA's masks, which leave 15% as they are and put no random tokens.
SINGLE, SPANS, UNMASKED = ", single", ", spans", ", 85/15/0"


def get_config(scale: str = "smoke") -> Ablation:
    chosen = choose_scale({"night": _night, "smoke": _smoke}, scale)
    seeds, bert = chosen.pretrain_seeds[:3], chosen.bert
    rows = _rows(chosen)
    columns = chosen.tasks(*TASKS)
    examples = chosen.columns["cloze"].question.max_examples
    records = chosen.records[-1].name
    columns += (
        chosen.columns["cloze"],
        cloze(records + SPANS, examples, "cloze, spans").changed(
            note="held-out spans of up to ten words in rows of one segment, shown as [MASK]",
        ),
        _pairs("next sentence?", "next_sentence", records, examples, "is B a random text?"),
        _pairs("which first?", "sentence_order", records, examples, "were A and B swapped?"),
    )
    return Ablation(
        name="family",
        title="BERT and its successors at equal compute",
        variants=(
            *(Variant(name, config, seeds) for name, config in rows.items()),
            Variant.random(bert, seeds),
        ),
        columns=columns,
        rows=(
            *(Row(name, name) for name in rows),
            Row.random(),
        ),
        claims=_claims([c.label for c in columns if c.finetune]),
        **chosen.fields() | {"records": (*chosen.records, *_other_records(chosen))},
    )


def _night() -> Scale:
    # Twice the steps of `cpu`: after those, narrow tables still know little but frequencies.
    scale = get_scale("cpu")
    return dataclasses.replace(scale, name="night", bert=_of_length(scale.bert, 2))


def _smoke() -> Scale:
    scale = get_scale("smoke")
    return dataclasses.replace(scale, bert=_of_length(scale.bert, 1 / 6))


def _rows(scale: Scale) -> dict[str, PretrainConfig]:
    base, bert = scale.bert, scale.bert.bert

    def changed(objectives=base.objectives, like=base, **fields):
        if fields:
            like = dataclasses.replace(like, bert=bert.replaced(**fields))
        return of_equal_compute(dataclasses.replace(like, objectives=objectives), base)

    # A quarter of BERT's width, as ELECTRA's generator and about as ALBERT's tables, but no less
    # than 64: of 8,192 pieces a model with 32 numbers a piece learns frequencies alone.
    width = max(bert.hidden_size // 4, 64)
    narrow, shared = {"embedding_size": width}, {"num_hidden_groups": 1}
    detected = {"name": "replaced_token", "generator": width / bert.hidden_size}
    masked, order = ("masked_lm",), ("masked_lm", "sentence_order")
    half = {"num_hidden_layers": bert.num_hidden_layers // 2}
    distilled = ({"name": "masked_lm", "weight": 2.0}, "soft_targets", "cosine_states")
    return {
        "BERT": base,
        "No NSP": scale.no_nsp,
        "left-to-right": scale.left_to_right,
        "RoBERTa": changed(masked, like=_on(SINGLE, base)),
        "factorised tables": changed(**narrow),
        "shared layers": changed(**shared),
        "sentence order": changed(order),
        "ALBERT": changed(order, **narrow, **shared),
        "SpanBERT": changed(("masked_lm", "span_boundary"), like=_on(SPANS, base)),
        "ELECTRA": _on(UNMASKED, changed((detected,), pooler_activation="none")),
        "half the layers": changed(masked, **half),
        "DistilBERT": replaced(changed(distilled, **half), teacher="@BERT", teacher_layers="even"),
    }


def of_equal_compute(config: PretrainConfig, base: PretrainConfig) -> PretrainConfig:
    """Return the same phases with more or fewer steps, for as many operations as `base` takes."""
    work, own = (total_flops(pretraining_steps(one)) for one in (base, config))
    return _of_length(config, work / own)


def _of_length(config: PretrainConfig, share: float) -> PretrainConfig:
    """Return the same training with so many times the steps, in each phase and to warm up."""

    def scaled(steps):
        return round(steps * share)

    phases = tuple(
        dataclasses.replace(phase, num_train_steps=scaled(phase.num_train_steps))
        for phase in config.phases
    )
    return dataclasses.replace(
        config, phases=phases, num_warmup_steps=scaled(config.num_warmup_steps)
    )


def _on(kind: str, config: PretrainConfig) -> PretrainConfig:
    """Return the same training on other records."""
    phases = (dataclasses.replace(p, records=p.records + kind) for p in config.phases)
    return dataclasses.replace(config, phases=tuple(phases))


def _other_records(scale: Scale):
    kinds = {
        SINGLE: {"packing": "single"},
        SPANS: {"packing": "single", "spans": "geometric"},
        UNMASKED: {"mask_rate": 0.85, "same_rate": 0.15, "random_rate": 0.0},
    }
    for kind, options in kinds.items():
        for one in scale.records:
            yield dataclasses.replace(one, name=one.name + kind, **options)


def _pairs(label: str, question: str, records: str, examples: int, note: str) -> Column:
    return Column(
        label,
        metric=f"{question}_accuracy",
        question=Pairs(records, examples, question),
        note=f"held-out pairs, without fine-tuning: {note}",
    )


def _claims(tasks: list[str]) -> tuple[Claim, ...]:
    claims = (
        Claim(
            "NSP",
            "RoBERTa: rows of one segment without next sentence prediction lose at most a point",
            "4.2",
            each(tasks, "BERT", "RoBERTa", kind=AT_MOST, margin=1.0),
        ),
        Claim(
            "sharing",
            "ALBERT: one block for all layers costs accuracy",
            "4.5",
            each(tasks, "BERT", "shared layers"),
        ),
        Claim(
            "factorising",
            "ALBERT: narrow tables of pieces cost little: at most a point",
            "4.4",
            each(tasks, "BERT", "factorised tables", kind=AT_MOST, margin=1.0),
        ),
        Claim(
            "order solves NSP",
            "ALBERT: a model of sentence order knows random next sentences nearly as well as one "
            "trained on them, which knows nothing of the order",
            "4.6",
            (
                Comparison("next sentence?", "BERT", "sentence order", AT_MOST, margin=15.0),
                Comparison("which first?", "sentence order", "BERT", margin=10.0),
            ),
        ),
        Claim(
            "order helps",
            "ALBERT: sentence order serves fine-tuning better than next sentence prediction",
            "4.6",
            each(tasks, "sentence order", "BERT"),
        ),
        Claim(
            "replaced tokens",
            "ELECTRA: telling replaced tokens beats filling in masks at equal compute",
            "3.3",
            each(tasks, "ELECTRA", "No NSP"),
        ),
        Claim(
            "soft targets",
            "DistilBERT: a teacher's probabilities beat masked words alone for a model of half the "
            "layers",
            "4",
            each(tasks, "DistilBERT", "half the layers"),
        ),
        Claim(
            "spans",
            "SpanBERT: masked spans and their boundaries help reading",
            "5",
            each([name for name in tasks if name == "SQuAD"], "SpanBERT", "RoBERTa"),
        ),
    )
    return tuple(claim for claim in claims if claim.comparisons)
