"""A search over hyper-parameters: a run for each combination, and a table of them, the best
first."""

import itertools
import re
import statistics

from data_prep.jobs import checked_json
from data_prep.jobs.output_folder import begin, earlier, locked
from experiments.training import runs
from experiments.training.settings.config_values import override
from experiments.training.settings.options import value_of
from official_bert.common.errors import UserError, check_once
from official_bert.common.paths import local_path


def parse(text, config):
    """Return {"learning_rate": [5e-5, 3e-5], "seed": [1, 2]} of
    "learning_rate=5e-5,3e-5;seed=1,2".

    Inner fields are named by a path: "task_options.truncation=head,tail".

    Raises:
      UserError: a field is unknown, a value is not of its type, or one of them is there twice.
    """
    grid = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, values = part.partition("=")
        if not equals or not values:
            raise UserError(f'--search: "{part}" is not FIELD=VALUE,VALUE')
        name = name.strip()
        check_once([*grid, name], "--search")
        changed = [override(config, {name: value.strip()}) for value in values.split(",")]
        grid[name] = [_field(c, name) for c in changed]
        check_once(grid[name], f"--search: {name}")
    return grid


def _field(config, name):
    """Return the field at a path such as "task_options.truncation"."""
    for key in name.split("."):
        config = config[key] if isinstance(config, dict) else value_of(config, key)
    return config


def run(config, workdir, grid, progress=True, overwrite=False):
    """Run every combination of `grid`.

    Args:
      config: FinetuneConfig that the combinations change.
      workdir: folder with one run's folder a combination, and search.json.
      grid: dict of field -> list of values; runs that differ only in `seed` are averaged.
      overwrite: rename an earlier search, and earlier runs, to NAME.~1~ first.

    Returns: {"best": {...}, "rows": [{fields..., "mean", "spread", "runs"}, ...]}, the best first.
    """
    workdir = local_path(workdir)
    path, options = workdir / "search.json", {"task": config.task}
    with locked(workdir) as lock:
        before = earlier(path, options, f"the search in {workdir}", "options", overwrite)
        if overwrite or before is None:
            begin(workdir, path.name, (), overwrite, lock)
            checked_json.write(path, {"options": options})
        summary = _searched(config, workdir, grid, progress, overwrite)
        checked_json.write(path, {"options": options, **summary})
    return summary


def _searched(config, workdir, grid, progress, overwrite):
    rows = {}
    names = [name for name in grid if name != "seed"]
    for values in itertools.product(*grid.values()):
        chosen = dict(zip(grid, values, strict=True))
        cell = override(config, chosen)
        name = re.sub(r"[^\w.=-]+", "-", "_".join(f"{k}={v}" for k, v in chosen.items())) or "run"
        results = runs.finetune(cell, workdir / name, progress, overwrite)
        key = tuple(chosen[name] for name in names)
        rows.setdefault(key, []).append((chosen.get("seed", config.seed), results))
    table = sorted(
        (_row(dict(zip(names, key, strict=True)), several) for key, several in rows.items()),
        key=lambda row: -row["mean"],
    )
    return {"task": config.task, "metric": table[0]["metric"], "rows": table, "best": table[0]}


def text(table):
    """Return the table for a terminal."""
    names = list(table["best"]["fields"])
    lines = ["\t".join([*names, f"dev {table['metric']}", "spread", "seeds"])]
    for row in table["rows"]:
        cells = [*map(str, row["fields"].values()), f"{row['mean']:.4f}", f"{row['spread']:.4f}"]
        lines.append("\t".join([*cells, str(len(row["runs"]))]))
    return "\n".join(lines).expandtabs(24)


def _row(fields, several):
    metric = several[0][1].main_metric
    scores = [results.dev[metric] for _, results in several]
    return {
        "fields": fields,
        "metric": metric,
        "mean": statistics.fmean(scores),
        "spread": statistics.stdev(scores) if len(scores) > 1 else 0.0,
        "runs": {str(seed): results.dev for seed, results in several},
    }
