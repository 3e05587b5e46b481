"""The claims of several tables side by side: one line a claim, one column a scale."""

from pathlib import Path

from experiments.tables.judging.intervals import INTERVAL
from experiments.tables.judging.p_values import holm
from experiments.tables.judging.results import Results, read
from experiments.tables.judging.verdicts import NOT_DECIDED, NOT_REPRODUCED, REPRODUCED, Verdict
from experiments.tables.reporting import implied_claims, number_words, wording
from experiments.tables.reporting.number_words import count
from official_bert.common.files import write_text
from official_bert.common.markdown import markdown_table


def write(folder: Path, overwrite: bool = False) -> str:
    """Write `folder`/claims.md, unless it has this text already; return the text.

    Raises:
      UserError: there is another one, and `overwrite`, which renames it, is false.
    """
    text, path = of_folder(folder), folder / "claims.md"
    if not (path.is_file() and path.read_bytes() == text.encode()):
        write_text(path, text, overwrite)
    return text


def of_folder(folder: Path) -> str:
    """Return the overview of the tables in a folder of results."""
    tables: dict[str, list[Results]] = {}
    for path in sorted(folder.glob("*/*/results.json")):
        results = read(path)
        tables.setdefault(results.name, []).append(results)
    return markdown(tables)


def markdown(tables: dict[str, list[Results]]) -> str:
    """Return the overview of tables, each of which was run at one or more scales."""
    lines = ["# Claims of all tables", "", *_count(tables), ""]
    for name, runs in tables.items():
        title = f"## {wording.name_of(name)}: {runs[0].title}"
        lines += [title, "", *markdown_table(_rows(runs)), ""]
    return "\n".join(lines)


def _rows(runs: list[Results]) -> list[list[str]]:
    verdicts = [{v.claim.name: v for v in results.verdicts} for results in runs]
    rows = [["claim", "whose", *(results.scale for results in runs)]]
    for name in dict.fromkeys(name for found in verdicts for name in found):
        one = next(found[name] for found in verdicts if name in found)
        whose = "ours" if one.claim.own else "the paper's" if runs[0].paper else "its paper's"
        cells = [_cell(found.get(name)) for found in verdicts]
        rows.append([wording.claim_text(one), whose, *cells])
    return rows


def _cell(verdict: Verdict | None) -> str:
    if not verdict:
        return "not asked"
    mean = verdict.mean_effect
    effect = f", {number_words.interval(mean, 1)}" if mean else ""
    return f"**{wording.outcome(verdict)}**{wording.dependence(verdict)}{effect}"


def _count(tables) -> list[str]:
    """Return sentences on the number of all claims, and on those that a joint correction leaves."""
    planned, exploratory, tested, where = [], [], [], {}
    for name, results in ((name, one) for name, runs in tables.items() for one in runs):
        of_table = wording.split_exploratory(results.verdicts)
        for counted, found in zip((planned, exploratory), of_table, strict=True):
            counted += implied_claims.drop_implied(found)
        where |= dict.fromkeys(map(id, results.verdicts), f"{name}:{results.scale}")
        asked = {f.comparison: f for v in results.verdicts for f in v.findings}
        tested += [p for p in map(wording.p_of, asked.values()) if p is not None]
    decided = [v for v in planned if v.verdict != NOT_DECIDED]
    corrected = holm(tested)
    kept = [v for v in decided if corrected[_deciding(v)] < 1 - INTERVAL]
    lost = [v for v in decided if v not in kept]
    paragraphs = [
        f"{count(len(planned), 'claim')} asked at all scales, {len(decided)} of them decided; "
        f"{len(exploratory)} more are exploratory. (A claim that another of its table with the "
        "same verdict implies, and a comparison that two claims share, count once.) All together "
        f"rest on {count(len(tested), 'tested comparison')}. Holm's correction over all of these "
        f"leaves {len(kept)} of the {len(decided)}."
    ]
    if lost:
        paragraphs += ["", "Decided, but not after that correction:", ""]
        for v in lost:
            paragraphs.append(f"- {where[id(v)]}, {wording.outcome(v)}: {wording.claim_text(v)}")
    return paragraphs


def _deciding(verdict: Verdict) -> float:
    """Return the p value that decides a claim.

    It is the smallest of the comparisons that refute it, or the largest of those that support it.
    """
    refuted = verdict.verdict == NOT_REPRODUCED
    decisive = NOT_REPRODUCED if refuted else REPRODUCED
    values = [wording.p_of(f) for f in verdict.findings if f.verdict == decisive]
    return min(values) if refuted else max(values)
