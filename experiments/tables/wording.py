"""How a report says things: its heading and first paragraph, what was run, findings, numbers."""

import collections
import re

from experiments.tables.verdicts import NOT_DECIDED, NOT_REPRODUCED, REPRODUCED

MINUS = "\N{MINUS SIGN}"
SHORT = {REPRODUCED: "reproduced", NOT_REPRODUCED: "not reproduced", NOT_DECIDED: "open"}


def heading(results: dict) -> str:
    name = results["name"].replace("table", "Table ").replace("figure", "Figure ").strip()
    name = name[:1].upper() + name[1:]
    return f"{name}: {results['title']} ({results['scale']} scale)"


def lead(results: dict) -> str:
    """One paragraph: what was found, and why what is open is open."""
    claims = {verdict: [] for verdict in SHORT}
    for verdict in results["verdicts"]:
        claims[verdict["verdict"]].append(verdict)
    counts = [f"{are(len(found))} {SHORT[key]}" for key, found in claims.items() if found]
    claimed = count(len(results["verdicts"]), "claim") + " of the paper" * bool(results["paper"])
    sentences = [f"Of {claimed} {join(counts)}."]
    for key, found in claims.items():
        if found:
            said = "; ".join(verdict["text"].rstrip(".") + _mean(verdict) for verdict in found)
            sentences.append(f"**{SHORT[key].capitalize()}**: {said}.")
    return " ".join(sentences + _why_open(claims[NOT_DECIDED], bool(results["paper"])))


def _mean(verdict: dict) -> str:
    mean = verdict.get("mean_effect")
    return f" ({interval(mean, 1)})" if mean and mean["effect"] is not None else ""


def _why_open(verdicts: list[dict], of_paper: bool) -> list[str]:
    """Sentences: the reasons of the open comparisons, and what they could have shown."""
    found = [f for v in verdicts for f in v["findings"] if f["verdict"] == NOT_DECIDED]
    reasons = collections.Counter(_general_reason(finding) for finding in found)
    sentences = []
    if reasons:
        shown = [f"{times} because {reason}" for reason, times in reasons.most_common()]
        sentences.append(f"{are(len(found), 'comparison')} open: {'; '.join(shown)}.")
    known = [f for f in found if f.get("detectable") is not None]
    if known:
        least, most = (f(finding["detectable"] for finding in known) for f in (min, max))
        said = (
            f"In these an effect shows four times of five if it lies {number(least)} (in the most "
            f"precise comparison) to {number(most)} (in the least) beyond the claim's bound"
        )
        if of_paper:
            reached = sum(abs(_paper_beyond_margin(f)) >= f["detectable"] for f in known)
            said += f"; the paper's own does in {reached or 'none'} of them"
        sentences.append(said + ".")
    excluding = sum(_excludes_the_paper(finding) for finding in found)
    if excluding:
        sentences.append(f"In {excluding} of them the interval excludes the paper's own effect.")
    return sentences


def _paper_beyond_margin(finding: dict) -> float:
    """The paper's effect less the bound that the claim sets; 0 where the paper has none."""
    effect = finding.get("paper_effect")
    return 0.0 if effect is None else effect - finding["margin"]


def _excludes_the_paper(finding: dict) -> bool:
    """An open comparison's interval holds the claim's bound; does it miss the paper's effect?

    Only where it was asked, so where there is a p value: a guard may have come first."""
    effect = finding.get("paper_effect")
    asked = finding["verdict"] == NOT_DECIDED and finding.get("p") is not None
    return asked and effect is not None and not finding["low"] <= effect <= finding["high"]


def _general_reason(finding: dict) -> str:
    """The first part of the reason, without the names and bounds that differ between findings."""
    reason = finding["reason"].split("; ")[0]
    for row in sorted((finding["better"], finding["worse"]), key=len, reverse=True):
        if reason.startswith(row):
            reason = "a row" + reason.removeprefix(row)
    return re.sub(r"(interval holds) \S+", r"\1 the claim's bound", reason)


def facts(results: dict) -> list[str]:
    """What was run: models, steps, tokens, text, examples, substitutions; a line each."""
    facts = results["scale_facts"]
    lines = []
    shapes: dict[str, list[str]] = {}
    for model in facts["models"]:
        if model.get("checkpoint"):
            lines.append(f"{model['name']}: the checkpoint {model['checkpoint']}")
        elif "steps" in model:
            shapes.setdefault(_training(model), []).append(model["name"])
    lines += [f"{join(names)}: {training}" for training, names in shapes.items()]
    if facts["corpus"]:
        lines.append(f"Corpus: {facts['corpus']}")
    for records in list(facts["records"].values())[:1]:
        counts = records["counts"]
        lines.append(
            f"{counts['corpus_tokens']:,} tokens in {counts['corpus_documents']:,} documents; "
            f"held out: {records['heldout_counts']['corpus_documents']:,} documents"
        )
    for column in results["columns"]:
        parts = [column["note"]] if column["note"] else []
        if not column["heldout"]:
            parts.append(
                f"{column['train_examples']:,} training and {column['dev_examples']:,} dev examples"
            )
        lines.append(f"{column['label']}: {'; '.join(parts)}")
    return [line.rstrip(".") for line in [*lines, *results["notes"]]]


def _training(model: dict) -> str:
    lengths = "/".join(map(str, model["lengths"]))
    heads = f"{model['heads']} heads, " if model["heads"] else ""
    words = (
        f"{model['layers']} layers, {model['hidden']} wide, {heads}"
        f"{model['parameters'] / 1e6:.1f} M parameters, {model['vocabulary']:,} word pieces, "
        f"{model['steps']:,} steps of {model['batch_size']} sequences of {lengths}"
    )
    if model["tokens"]:
        words += f" ({model['tokens'] / 1e6:.1f} M tokens)"
    return words + f", {model['seeds']} pre-training{'s' if model['seeds'] > 1 else ''}"


def footer(results: dict) -> str:
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    return (
        f"Made on {results['date']} with Python {machine['python']}, {versions}, on "
        f"{machine['processor']} with {machine['cores']} cores; {results['cells']['finished']} "
        f"cells of together {results['seconds'] / 60:.0f} minutes, at least one of them at work "
        f"for {results['wall_seconds'] / 60:.0f} minutes."
    )


def holes(results: dict) -> list[str]:
    """Why a cell of the table is empty or short of runs."""
    return [
        f"{row['label']}, {label}: {cell['hole']}"
        for row in results["rows"]
        for label, cell in row["cells"].items()
        if "hole" in cell
    ]


def comparison(finding: dict) -> str:
    column, better, worse = (finding[key] for key in ("column", "better", "worse"))
    if finding.get("whole"):
        return f"{column}: {better}, share of the way from {worse} to {finding['whole']}"
    return f"{column}: {better} less {worse}"


def interval(finding: dict, digits: int = 2) -> str:
    """ "+3.50 [1.25, 5.75]", as much of it as there is."""
    if finding["effect"] is None:
        return ""
    bounds = ""
    if finding["low"] is not None:
        bounds = f" [{number(finding['low'], digits)}, {number(finding['high'], digits)}]"
    return signed(finding["effect"], digits) + bounds


def reason(finding: dict) -> str:
    """Why a comparison has its verdict, and of an open one that the paper's effect is excluded."""
    said = finding["reason"]
    if _excludes_the_paper(finding):
        said += f" but not the paper's {signed(finding['paper_effect'])}"
    return said


def finding(finding: dict) -> str:
    """ "QNLI: BERT less No NSP +3.50 [1.25, 5.75]: the interval lies above 0"."""
    return f"{comparison(finding)} {interval(finding)}".rstrip() + f": {reason(finding)}"


def count(many: int, thing: str) -> str:
    return f"{many} {thing}" + ("" if many == 1 else "s")


def are(many: int, thing: str = "") -> str:
    return f"{count(many, thing) if thing else many} {'is' if many == 1 else 'are'}"


def join(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def number(value: float, digits: int = 1) -> str:
    shown = f"{value:,.{digits}f}"
    if float(shown.replace(",", "")) == 0:
        shown = shown.lstrip("-")
    return shown.replace("-", MINUS)


def signed(value: float, digits: int = 1) -> str:
    shown = number(value, digits)
    return shown if shown.startswith(MINUS) else f"+{shown}"
