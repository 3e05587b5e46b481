"""The claims of several tables side by side: one line a claim, one column a scale.

    python -m experiments.report --workdir=experiments/results

writes claims.md from the results.json of every table below that folder.
"""

from pathlib import Path

from data_prep.jobs import storage
from experiments.tables.claims import NOT_DECIDED
from experiments.tables.intervals import INTERVAL
from experiments.tables.report import markdown_table
from experiments.tables.wording import SHORT, count, interval, name_of
from official_bert.common import manifests
from official_bert.common.files import atomic_write


def write(folder: Path) -> str:
    """Writes `folder`/claims.md; returns its text."""
    tables: dict[str, list[dict]] = {}
    for path in sorted(folder.glob("*/*/results.json")):
        results = storage.read_json(path, finite=False)
        tables.setdefault(results["name"], []).append(results)
    text = markdown(tables)
    manifests.adopt(folder, ["claims.md"])  # as it came with the repository
    with atomic_write(folder / "claims.md") as file:
        file.write(text)
    return text


def markdown(tables: dict[str, list[dict]]) -> str:
    """The overview of tables, each of which was run at one or more scales."""
    lines = ["# Claims of all tables", "", *_asked(tables), ""]
    for name, runs in tables.items():
        lines += [f"## {name_of(name)}: {runs[0]['title']}", "", *markdown_table(_rows(runs)), ""]
    return "\n".join(lines)


def _rows(runs: list[dict]) -> list[list[str]]:
    verdicts = [{v["name"]: v for v in results["verdicts"]} for results in runs]
    rows = [["claim", "whose", *(results["scale"] for results in runs)]]
    for name in dict.fromkeys(name for found in verdicts for name in found):
        one = next(found[name] for found in verdicts if name in found)
        whose = "ours" if one["own"] else "the paper's" if runs[0]["paper"] else "its paper's"
        cells = [_cell(found.get(name)) for found in verdicts]
        rows.append([one["text"].rstrip("."), whose, *cells])
    return rows


def _cell(verdict: dict | None) -> str:
    if not verdict:
        return "not asked"
    mean = verdict["mean_effect"]
    effect = f", {interval(mean, 1)}" if mean else ""
    return f"**{SHORT[verdict['verdict']]}**{effect}"


def _asked(tables) -> list[str]:
    """How many questions were asked in all, and what a correction for all of them leaves."""
    verdicts = [
        v | {"where": f"{name}:{results['scale']}"}
        for name, runs in tables.items()
        for results in runs
        for v in results["verdicts"]
    ]
    decided = [v for v in verdicts if v["verdict"] != NOT_DECIDED]
    tested = sorted(f["p"] for v in verdicts for f in v["findings"] if f["p"] is not None)
    # Holm: in rising order each p times the number of those that are left.
    bound = 0.0
    for rank, p in enumerate(tested):
        if p * (len(tested) - rank) >= 1 - INTERVAL:
            break
        bound = p
    kept = [v for v in decided if _deciding(v) <= bound]
    lost = [v for v in decided if v not in kept]
    said = [
        f"{count(len(verdicts), 'claim')} asked at all scales, {len(decided)} of them decided, by "
        f"{count(len(tested), 'tested comparison')}. Holm's correction over all of these "
        f"comparisons leaves {len(kept)} of the {len(decided)}."
    ]
    if lost:
        said += ["", "Decided, but not after that correction:", ""]
        said += [f"- {v['where']}, {SHORT[v['verdict']]}: {v['text'].rstrip('.')}" for v in lost]
    return said


def _deciding(verdict: dict) -> float:
    """The p value that a claim's verdict hangs on: of the comparison that refutes it best, or of
    the weakest of those that bear it out."""
    values = [f["p"] for f in verdict["findings"] if f["verdict"] == verdict["verdict"]]
    return max(values) if verdict["verdict"] == "reproduced" else min(values)
