"""From the finished cells of an ablation to its results: numbers, differences, verdicts, curves.

The results are all that `experiments.report` needs to draw the table again.
"""

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.tables.judging import archives, results
from experiments.tables.judging.intervals import Run, mean_and_deviation
from experiments.tables.judging.judgement import judge_results
from experiments.tables.planning.ablation import Ablation, Column, Row
from experiments.tables.planning.plan import TablePlan
from experiments.tables.planning.repetitions import Repetition
from experiments.tables.reporting.paper import TABLES
from experiments.tables.run import origins
from experiments.tables.run.grid import Grid
from experiments.tables.run.pool import FAILED, FINISHED
from experiments.training.folder.dataclass_json import to_json
from experiments.training.folder.run_results import FinetuningResults
from experiments.training.pretraining.heldout import main_loss
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.config_values import differences, to_dict
from experiments.training.start import initialization


def assemble(ablation: Ablation, plan: TablePlan, grid: Grid, command: str = "") -> results.Results:
    """Return the results of an ablation as far as its cells are finished.

    Args:
      command: the command that runs it again, for the report.
    """
    statuses = grid.statuses()
    made = {
        name: grid.results(name, status)
        for name, status in statuses.items()
        if status.state == FINISHED
    }
    runs, folders, chosen, holes = _collect(ablation, plan, grid, statuses, made)
    paper = TABLES.get(ablation.name)
    found = results.Results(
        name=ablation.name,
        title=ablation.title,
        scale=ablation.scale,
        section=paper.section if paper else "",
        command=command,
        date=datetime.date.today().isoformat(),
        origins=origins.origins(statuses.values()),
        seconds=round(sum(one.seconds for one in made.values()), 1),
        wall_seconds=_wall_seconds(made.values()),
        cells={
            state: sum(s.state == state for s in statuses.values())
            for state in ("finished", "failed", "pending", "running")
        },
        failures={n: s.reason for n, s in statuses.items() if s.state == FAILED},
        columns=[_column(column, plan, made) for column in ablation.columns],
        rows=[_row(ablation, row, runs, folders, chosen, holes) for row in ablation.rows],
        baselines=_baselines(ablation, plan, made),
        paper=results.Printed(paper.title, list(paper.columns), paper.rows) if paper else None,
        scale_facts=_scale_facts(ablation, plan, made),
        notes=list(ablation.notes),
        curves=_curves(ablation, runs),
        pretraining_curves=_pretraining_curves(plan, made),
        exports=[
            _exported(made[name].more, grid.folder(name)) for name in plan.exports if name in made
        ],
    )
    return judge_results(found, ablation.claims, runs)


def _baselines(ablation, plan, made) -> dict[str, float]:
    """Return column -> score of the trivial baseline, in printed units."""
    found = {}
    for (_, label), planned in plan.runs.items():
        column = ablation.column(label)
        for one in planned:
            result = made.get(one.cell)
            if not result or label in found:
                continue
            key = column.metric or result.main_metric
            if key in result.baseline:
                of_folds = [made[p.cell] for p in planned[: column.folds] if p.cell in made]
                scores = [each.baseline[key] for each in of_folds or [result]]
                found[label] = (100 if column.percent else 1) * sum(scores) / len(scores)
    return found


def _exported(result: dict, folder: Path) -> dict:
    """Return an export's facts, its path relative to the working folder where it lies inside."""
    path, here = folder / result["saved_model"], Path.cwd()
    return result | {"saved_model": str(path.relative_to(here) if here in path.parents else path)}


def _collect(ablation, plan, grid, statuses, made):
    """Return {(row, column): value} of runs, names of their folders, settings chosen by a search,
    holes."""
    runs: dict[tuple[str, str], list[Run]] = {}
    folders: dict[tuple[str, str], list[str]] = {}
    chosen: dict[tuple[str, str], dict] = {}
    holes = {(row, c.label): why for row, why in plan.left_out.items() for c in ablation.columns}
    for key, planned in plan.runs.items():
        column = ablation.column(key[1])
        settings: dict[int, list[Run]] = {}
        names: dict[int, list] = {}
        folds: dict[Repetition, list[Path]] = {}
        for one in planned:
            whole, setting = replace(one.repetition, fold=1), one.repetition.setting
            status, result = statuses[one.cell], made.get(one.cell)
            if result and (column.metric or result.main_metric) not in result.scores:
                holes[key] = f"its runs have no {column.metric or 'score'}"
            elif result:
                cells = folds.setdefault(whole, [])
                cells.append(grid.folder(one.cell))
                if len(cells) >= column.folds:
                    run = _run(column, one, result, grid, cells)
                    settings.setdefault(setting, []).append(run)
                    found = [cell.name for cell in cells]
                    names.setdefault(setting, []).append(found if column.folds else found[-1])
            elif status.state == FAILED:
                holes[key] = status.reason
            else:
                holes.setdefault(key, "not finished")
        if settings:
            sign = -1 if column.lower_is_better else 1
            best = max(settings, key=lambda i: sign * mean_and_deviation(_values(settings[i]))[0])
            runs[key], folders[key] = settings[best], names[best]
            if column.search:
                chosen[key] = column.search[best]
    return runs, folders, chosen, holes


def _run(column: Column, planned, result, grid, folds=()) -> Run:
    metric = column.metric or result.main_metric
    seeds = planned.repetition.pretrain_seed, planned.repetition.finetune_seed
    if column.folds:
        points, influence = archives.union(folds, metric)
        value = points if column.percent else points / 100
        return Run(*seeds, value, influence)
    value = (100 if column.percent else 1) * result.scores[metric]
    influence = archives.influence(grid.folder(planned.cell), metric)
    return Run(*seeds, value, influence)


def _row(ablation, row: Row, made, folders, chosen, holes) -> results.RowResult:
    paper = TABLES.get(ablation.name)
    cells = {}
    for column in ablation.columns:
        key = row.label, column.label
        number = None
        if paper and column.paper_column and row.paper_row:
            number = paper.number(row.paper_row, column.paper_column)
        scores = _scores(made[key], folders[key]) if key in made else None
        more = chosen.get(key), holes.get(key, "")
        cells[column.label] = results.CellResult(number, scores, *more)
    differs = _differs(ablation, row)
    return results.RowResult(row.label, row.variant, row.paper_row, row.reference, differs, cells)


def _scores(runs: list[Run], folders: list) -> results.Scores:
    values = [[run.pretrain_seed, run.finetune_seed, run.value] for run in runs]
    pretrainings = len({run.pretrain_seed for run in runs})
    return results.Scores(*mean_and_deviation(_values(runs)), values, folders, pretrainings)


def _differs(ablation: Ablation, row: Row) -> list[str]:
    """List the fields in which the row's configuration differs from the first row's, a line
    each."""
    first, variant = (ablation.variant(r.variant) for r in (ablation.rows[0], row))
    if variant.random_init:
        return ["random weights in place of pre-training"]
    if variant.checkpoint:
        return [f"the checkpoint {_checkpoint_name(variant.checkpoint)}"]
    old, new = (_settings(ablation, v) for v in (first, variant))
    lines = differences(old, new) if old and new else []
    if row.snapshot:
        lines.append(f"pre-trained for {row.snapshot:,} steps")
    return [*lines, *(f"fine-tuned with {field}: {value}" for field, value in row.finetune.items())]


def _settings(ablation: Ablation, variant) -> dict[str, Any]:
    """Return the fields of a variant's pre-training, the names of its records replaced by their
    fields."""
    settings = to_dict(variant.pretrain) if variant.pretrain else {}
    made = {spec.name: to_dict(spec) | {"name": ""} for spec in ablation.records}
    for phase in settings.get("phases", ()):
        phase["records"] = made.get(phase["records"], phase["records"])
    return settings


def _column(column: Column, plan, made) -> results.ColumnResult:
    train, dev = plan.examples.get(column.label, (0, 0))
    for (_, label), planned in plan.runs.items():
        result = made.get(planned[0].cell)
        if label == column.label and isinstance(result, FinetuningResults):
            of_folds = [made[p.cell] for p in planned[: column.folds] if p.cell in made]
            train = result.train_examples
            dev = sum(each.dev_examples for each in of_folds) or result.dev_examples
    facts = None
    if f := column.finetune:
        facts = results.Finetuning(
            train_examples=train,
            dev_examples=dev,
            max_seq_length=f.max_seq_length,
            batch_size=f.train_batch_size,
            learning_rate=f.learning_rate,
            epochs=f.num_train_epochs,
            seeds=len(column.seeds),
            sample=f"{f.task} {_checkpoint_name(f.data_dir)}",
            folds=column.folds,
        )
    return results.ColumnResult(
        label=column.label,
        paper_column=column.paper_column,
        metric=column.metric,
        heldout=f is None,
        percent=column.percent,
        lower_is_better=column.lower_is_better,
        note=column.note,
        finetuning=facts,
    )


def _scale_facts(ablation, plan, made) -> results.Facts:
    """Return the facts of the caption: models, steps, tokens and text."""
    models = []
    record_lengths = {spec.name: spec.max_seq_length for spec in ablation.records}
    for variant in ablation.variants:
        training = shape = None
        if variant.pretrain and not variant.random_init:
            c = variant.pretrain
            own = [
                made[cell]
                for (name, _), cell in plan.pretrains.items()
                if name == variant.name and cell in made
            ]
            training = results.Pretraining(
                steps=c.num_train_steps,
                batch_size=c.train_batch_size,
                batch_sizes=[p.train_batch_size or c.train_batch_size for p in c.phases],
                learning_rate=c.learning_rate,
                lengths=[p.max_seq_length or record_lengths.get(p.records, 0) for p in c.phases],
                records=[p.records for p in c.phases],
                seeds=len(variant.seeds),
                tokens=own[0].tokens if own else None,
                checkpoints=[_checkpoint_name(place) for place in variant.checkpoints],
                minutes=[round(each.seconds / 60, 2) for each in own],
                heldout=[each.heldout for each in own],
                heldout_baseline=own[0].baseline if own else None,
            )
        if variant.pretrain:
            bert = variant.pretrain.bert_config
            shape = results.Shape(
                layers=bert.num_hidden_layers,
                hidden=bert.hidden_size,
                heads=bert.num_attention_heads,
                vocabulary=bert.vocab_size,
                direction=bert.attention_direction,
                parameters=bert.num_parameters,
            )
        checkpoint = _checkpoint_name(variant.checkpoint)
        repeats = initialization.of(FinetuneConfig(model=variant.checkpoint)).repeats
        models.append(
            results.Model(variant.name, checkpoint, variant.random_init, training, shape, repeats)
        )
    records = {
        cell.name.removeprefix("records/"): to_json(made[cell.name])
        for cell in plan.cells
        if cell.kind == "records" and cell.name in made
    }
    return results.Facts(models, ablation.corpus.description, records)


def _checkpoint_name(checkpoint: str) -> str:
    """Return the last two parts of a path, since readers need not know where a machine keeps it."""
    return "/".join(Path(checkpoint).parts[-2:])


def _curves(ablation, runs) -> list[results.CurveResult]:
    curves = []
    for curve in ablation.curves:
        points = []
        for index, label in enumerate(curve.rows):
            made = runs.get((label, curve.column))
            row = ablation.row(label)
            steps = row.snapshot or ablation.variant(row.variant).pretrain.num_train_steps
            if made:
                mean, deviation = mean_and_deviation(_values(made))
                less = curve.less[index] if curve.less else ""
                points.append(results.Point(steps, mean, deviation, label, less))
        curves.append(results.CurveResult(curve.label, curve.column, points))
    return curves


def _pretraining_curves(plan, made) -> list[results.LossCurve]:
    """Return the loss of every pre-training's first objective, on training and on held-out text."""
    curves = []
    for (name, seed), cell in plan.pretrains.items():
        result = made.get(cell)
        if result and result.curve:
            loss = main_loss(result.baseline or result.heldout)
            losses = (
                [[p["step"], p[loss]] for p in result.curve if p["heldout"] == heldout]
                for heldout in (False, True)
            )
            curves.append(results.LossCurve(name, seed, *losses))
    return curves


def _wall_seconds(finished) -> float:
    """Return the seconds in which at least one cell was at work, without pauses between calls."""
    spans = sorted((result.ended - result.seconds, result.ended) for result in finished)
    total, end = 0.0, 0.0
    for first, last in spans:
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return round(total, 1)


def _values(runs) -> list[float]:
    return [run.value for run in runs]
