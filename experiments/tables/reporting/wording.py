"""The sentences of a report: its heading and first lines, what was run, claims, findings."""

import collections

from experiments.tables.judging.results import Model, Results
from experiments.tables.judging.verdicts import (
    NOT_DECIDED,
    NOT_REPRODUCED,
    NOT_TESTED,
    PARTLY,
    REPRODUCED,
    Finding,
    Verdict,
)
from experiments.tables.planning.claims import Comparison
from experiments.tables.reporting.implied_claims import drop_implied
from experiments.tables.reporting.number_words import are, count, interval, join, number

_NAMED = ("tensorflow", "keras", "numpy", "jax")
SHORT = {verdict: verdict for verdict in (REPRODUCED, PARTLY, NOT_REPRODUCED, NOT_TESTED)}
SHORT[NOT_DECIDED] = "open"


def heading(results: Results) -> str:
    return f"{name_of(results.name)}: {results.title} ({results.scale} scale)"


def name_of(table: str) -> str:
    """Return "Table 5" for "table5"."""
    name = table.replace("table", "Table ").replace("figure", "Figure ").strip()
    return name[:1].upper() + name[1:]


def summarize(results: Results) -> list[str]:
    """Return at most three lines: verdicts, sizes beside the paper's, power of open comparisons.

    Exploratory claims are counted in the first line only."""
    planned, exploratory = split_exploratory(results.verdicts)
    whose = "of the paper" if results.paper else "of this table"
    groups = {
        f"Claims {whose}": [v for v in planned if not v.claim.own],
        "Our own claims": [v for v in planned if v.claim.own],
        "Exploratory claims, which no other number here counts": exploratory,
    }
    tallies = {name: join(_counts(drop_implied(group))) for name, group in groups.items() if group}
    lines = [" ".join(f"{name}: {tally}." for name, tally in tallies.items())]
    findings = distinct_findings(planned)
    sized = [f.size_agrees for f in findings if f.size_agrees is not None]
    if sized:
        lines.append(
            f"Sizes: our interval holds the paper's own effect in {sum(sized)} of the "
            f"{count(len(sized), 'comparison')} that it prints too."
        )
    known = [
        f.detectable for f in findings if f.verdict == NOT_DECIDED and f.detectable is not None
    ]
    if known:
        least, most = number(min(known)), number(max(known))
        bound = least if least == most else f"{least} (the most precise comparison) to {most}"
        lines.append(
            f"{are(len(known), 'comparison')} open. With so many runs an effect is found four "
            f"times of five if it lies {bound} beyond the claim's bound."
        )
    return lines


def list_outcomes(results: Results) -> list[str]:
    """Return a sentence on the reproduced claims and one on the others."""
    planned, _ = split_exploratory(results.verdicts)
    reproduced = [v for v in planned if v.verdict == REPRODUCED]
    others = [v for v in results.verdicts if v not in reproduced]
    others = [f"{claim_text(v)} ({outcome(v)})" for v in others]
    number = f"{len(drop_implied(reproduced))} of {count(len(drop_implied(planned)), 'claim')}"
    return [
        f"Reproduced, {number}: {'; '.join(map(claim_text, reproduced)) or 'none'}.",
        f"The others: {'; '.join(others) or 'none'}.",
    ]


def split_exploratory(verdicts: list[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """Return (verdicts on planned claims, those on exploratory ones)."""
    groups: tuple[list[Verdict], list[Verdict]] = ([], [])
    for verdict in verdicts:
        groups[verdict.claim.exploratory].append(verdict)
    return groups


def p_of(finding: Finding) -> float | None:
    """Return the p value that decides a comparison: that of its refutation where it is refuted."""
    return finding.refutation if finding.verdict == NOT_REPRODUCED else finding.p


def outcome(verdict: Verdict) -> str:
    """Return "reproduced", "reproduced on 1 of 4 tasks" or "open"."""
    if not verdict.extent:
        return SHORT[verdict.verdict]
    some, every, things = verdict.extent
    return f"{REPRODUCED} {'on' if things == 'tasks' else 'in'} {some} of {every} {things}"


def dependence(verdict: Verdict) -> str:
    """Return ", depends on the method (not by the paired t)"; "" where the verdict does not."""
    methods = [f"the {method}" for method in verdict.depends_on]
    return f", depends on the method (not by {join(methods)})" if methods else ""


def claim_text(verdict: Verdict) -> str:
    """Return the text of a claim, marked where it is exploratory."""
    return verdict.claim.text.rstrip(".") + " (exploratory)" * verdict.claim.exploratory


def _counts(verdicts: list[Verdict]) -> list[str]:
    counts = collections.Counter(verdict.verdict for verdict in verdicts)
    return [f"{counts[verdict]} {SHORT[verdict]}" for verdict in SHORT if counts[verdict]]


def facts(results: Results) -> list[str]:
    """List what was run: models, steps, tokens, text, examples, substitutions; a line each."""
    facts = results.scale_facts
    lines = []
    shapes: dict[str, list[str]] = {}
    for model in facts.models:
        if model.checkpoint:
            lines.append(f"{model.name}: the checkpoint {model.checkpoint}")
        elif model.pretraining:
            shapes.setdefault(_training(model), []).append(model.name)
    lines += [f"{join(names)}: {training}" for training, names in shapes.items()]
    if facts.corpus:
        lines.append(f"Corpus: {facts.corpus}")
    for records in list(facts.records.values())[:1]:
        counts = records["counts"]
        lines.append(
            f"{counts['corpus_tokens']:,} tokens in {counts['corpus_documents']:,} documents; "
            f"held out: {records['heldout_counts']['corpus_documents']:,} documents"
        )
    for column in results.columns:
        parts = [column.note] if column.note else []
        if task := column.finetuning:
            of = f", of {task.folds} folds together" if task.folds else ""
            examples = f"{task.train_examples:,} training and {task.dev_examples:,} dev examples"
            parts.append(examples + of)
        lines.append(f"{column.label}: {'; '.join(parts)}")
    return [line.rstrip(".") for line in [*lines, *results.notes]]


def _training(model: Model) -> str:
    made, shape = model.pretraining, model.shape
    heads = f"{shape.heads} heads, " if shape.heads else ""
    sizes = made.batch_sizes or [made.batch_size]
    sizes = sizes if len(set(sizes)) > 1 else sizes[:1]  # one for each length, or one for all
    words = (
        f"{shape.layers} layers, {shape.hidden} wide, {heads}"
        f"{shape.parameters / 1e6:.1f} M parameters, {shape.vocabulary:,} word pieces, "
        f"{made.steps:,} steps of {'/'.join(map(str, sizes))} "
        f"sequences of {'/'.join(map(str, made.lengths))}"
    )
    if made.tokens:
        words += f" ({made.tokens / 1e6:.1f} M tokens)"
    words += f", {count(made.seeds, 'pre-training')}"
    return words + (", taken as checkpoints" if made.checkpoints else "")


def footer(results: Results) -> str:
    """Say when, with which code and machine, and at which cost the runs were made."""
    found = results.made_by
    made = "; ".join(_origin(one, len(found) > 1) for one in found)
    return (
        f"Made on {results.date} {made}; {results.cells['finished']} "
        f"cells of together {results.seconds / 60:.0f} minutes, at least one of them at work "
        f"for {results.wall_seconds / 60:.0f} minutes."
    )


def _origin(one: dict, is_one_of_many: bool) -> str:
    counted = f"{count(one['cells'], 'cell')} " if is_one_of_many else ""
    if "python" not in one:
        return f"{counted}of unknown code and machine"
    versions = {name: v for name, v in one["packages"].items() if name in _NAMED}
    parts = [f"{counted}with Python {one['python']}"]
    parts += [f"{name} {version}" for name, version in versions.items()]
    parts += [f"code {one['code']}"] if "code" in one else []
    machine = f"on {one['processor']} with {count(one['cores'], 'core')}"
    machine += f" and {join(one['gpus'])}" if one.get("gpus") else ""
    dates = sorted({one["first"], one["last"]}) if "first" in one else []
    return ", ".join([*parts, machine]) + (f", {' to '.join(dates)}" if dates else "")


def holes(results: Results) -> list[str]:
    """List why cells of the table are empty or lack runs."""
    return [
        f"{row.label}, {label}: {cell.hole}"
        for row in results.rows
        for label, cell in row.cells.items()
        if cell.hole
    ]


def distinct_findings(verdicts: list[Verdict]) -> list[Finding]:
    """Return the findings of claims, each comparison once."""
    found = (finding for verdict in verdicts for finding in verdict.findings)
    return list({comparison_text(f.comparison): f for f in found}.values())


def comparison_text(asked: Comparison) -> str:
    way = f", share of the way from {asked.worse} to {asked.whole}"
    return f"{asked.column}: {asked.better}" + (way if asked.whole else f" less {asked.worse}")


def finding_text(finding: Finding) -> str:
    """Return "QNLI: BERT less No NSP +3.50 [1.25, 5.75]: the interval lies above 0"."""
    shown = f"{comparison_text(finding.comparison)} {interval(finding.effect)}".rstrip()
    return f"{shown}: {finding.reason}"
