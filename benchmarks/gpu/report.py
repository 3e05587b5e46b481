"""`gpu.md`: what the pieces have found so far, as tables."""

from benchmarks.gpu.results import read
from official_bert.common.errors import UserError
from official_bert.common.files import write_text

_STEPS = """
| | rows | step, ms | tokens/s | share of the peak | first step, s |
|---|---|---|---|---|---|"""


def write(folder):
    """Writes `folder`/gpu.md from the results that lie there; UserError where one is damaged."""
    parts = ["# One GPU"]
    for name, section in (("steps", _steps), ("equality", _equality), ("attention", _attention)):
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        found = read(path)
        try:
            parts += [f"{found['date']}, {found['device']}", section(found["runs"])]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{path}: no figures of this command ({error!r}); move it away, and its piece is "
                "measured again"
            ) from error
    write_text(folder / "gpu.md", "\n\n".join(parts) + "\n")


def _steps(runs):
    return "## Steps\n" + _STEPS + "".join(f"\n{_step(part, run)}" for part, run in runs.items())


def _step(part, run):
    if reason := run.get("failed") or run.get("skipped"):
        return f"| {part} | did not run: {reason} | | | | |"
    return (
        f"| {part} | {run['rows']} | {run['step_ms']:.2f} | {run['tokens_per_s']:,.0f} | "
        f"{run['share']:.1%} | {run['first_step_s']:.0f} |"
    )


def _equality(runs):
    lines = [
        "## 50 steps on the GPU and on the CPU", "",
        "| | loss apart at the first step | at most | norm of the gradient, at most | weights |",
        "|---|---|---|---|---|",
    ]  # fmt: skip
    for precision, run in runs.items():
        if "loss_apart_at_most" in run:
            values = ("loss_apart_at_first", "loss_apart_at_most", "gradient_norm_apart_at_most",
                      "weights_apart")  # fmt: skip
            lines.append(f"| {precision} | " + " | ".join(f"{run[v]:.1e}" for v in values) + " |")
    same = runs.get("deterministic", {}).get("same_bits")
    return "\n".join([*lines, "", f"Twice with deterministic operations: same bits: {same}."])


def _attention(runs):
    lines = [
        "## Attention by itself", "",
        "| | | forward and backward, ms | forward, ms | distance |",
        "|---|---|---|---|---|",
    ]  # fmt: skip
    for case, ways in runs.items():
        for way, found in ways.items():
            if isinstance(found, str):
                lines.append(f"| {case} | {way} | did not run: {found} | | |")
            else:
                both, forward, distance = found
                lines.append(f"| {case} | {way} | {both:.3f} | {forward:.3f} | {distance:.1e} |")
    note = "Distance: of the output from that of plain products in float32, relative."
    return "\n".join([*lines, "", note])
