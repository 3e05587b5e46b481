"""The judgement of a table's claims, from its results.

`gather` reads nothing but the results (results.json) and the scores by example of the runs. So the
judgement of a table that has just been run and a later one, from its committed archives
(`experiments.tables.judging.archives`), are the same.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from experiments.tables.judging.evidence import Evidence
from experiments.tables.judging.results import Model, Results, Standing
from experiments.tables.judging.verdict_json import of_effect
from experiments.tables.judging.verdicts import above_baseline, judge, row_effect
from experiments.tables.planning.claims import Claim
from experiments.training.pretraining.heldout import main_loss

# The masked-LM loss stays for thousands of steps a little below that of word frequencies alone,
# then falls. A model has left this plateau when its loss is this many nats below theirs.
_PLATEAU_DEPTH = 1.0


def judge_results(results: Results, claims: Sequence[Claim], runs: Mapping) -> Results:
    """Return the results of a table with the verdicts on claims and every row's own interval.

    Args:
      runs: (row, column) -> `intervals.Run`s with the influence of each example.
    """
    evidence = gather(results, runs)
    rows = []
    for row in results.rows:
        cells = dict(row.cells)
        for column in cells:
            if (row.label, column) in evidence.runs:
                standing = _standing(row.label, column, evidence)
                cells[column] = replace(cells[column], standing=standing)
        rows.append(replace(row, cells=cells))
    return replace(results, rows=rows, verdicts=[judge(claim, evidence) for claim in claims])


def gather(results: Results, runs: Mapping) -> Evidence:
    """Return the evidence in a table's results; `runs` as for `judge_results`."""
    columns, rows = results.columns, results.rows
    perplexities = frozenset(c.label for c in columns if c.metric.endswith("perplexity"))
    of_rows = {row.label: results.model(row) for row in rows}
    return Evidence(
        runs,
        results.baselines,
        lower_is_better=frozenset(c.label for c in columns if c.lower_is_better),
        in_logs=perplexities,
        in_nats=frozenset(c.label for c in columns if not c.percent) - perplexities,
        holes={
            (row.label, column): cell.hole
            for row in rows
            for column, cell in row.cells.items()
            if cell.hole
        },
        random_rows=tuple(
            row.label for row in rows if row.reference and of_rows[row.label].random_init
        ),
        pretrained={label: model.name for label, model in of_rows.items() if model.pretraining},
        fixed=frozenset(label for label, model in of_rows.items() if not model.repeats),
        plateau={label: why for label, model in of_rows.items() if (why := _plateau(model))},
        samples={c.label: c.finetuning.sample if c.finetuning else c.label for c in columns},
        paper={
            (row.label, c.label): row.cells[c.label].paper
            for row in rows
            for c in columns
            # The paper's number on another data set does not compare.
            if c.label == c.paper_column and row.cells[c.label].paper is not None
        },
    )


def _plateau(model: Model) -> str:
    """Say why some or all pre-trainings of a model count as on the masked-LM plateau; "": none.

    A model that reads one way never is."""
    made, shape = model.pretraining, model.shape
    if not made or not made.heldout_baseline or shape.direction != "bidirectional":
        return ""
    alone = made.heldout_baseline
    name = main_loss(alone)
    losses = [heldout[name] for heldout in made.heldout if heldout]
    stuck = [loss for loss in losses if loss > alone[name] - _PLATEAU_DEPTH]
    if not stuck:
        return ""
    reason = f"held-out loss {max(stuck):.2f}, word frequencies alone {alone[name]:.2f}"
    return reason if len(stuck) == len(losses) else f"{len(stuck)} of {len(losses)} seeds; {reason}"


def _standing(row: str, column: str, evidence: Evidence) -> Standing:
    """Return a row's own mean with its interval.

    A perplexity's interval is made of its logarithm: standard error and variances are in nats."""
    values = of_effect(row_effect(row, column, evidence))
    del values["others"]
    if column in evidence.in_logs:
        for name in ("effect", "low", "high"):
            values[name] = None if values[name] is None else math.exp(values[name])
    return Standing(above_baseline(row, column, evidence), values)
