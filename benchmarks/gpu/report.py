"""`gpu.md`: what the pieces have found so far, as tables."""

from benchmarks.gpu.results import read
from benchmarks.gpu.steps import THEIRS
from official_bert.common.errors import UserError
from official_bert.common.files import write_text
from official_bert.common.markdown import markdown_table


def write(folder):
    """Write `folder`/gpu.md from the results that lie there; UserError where one is damaged."""
    parts = ["# One GPU"]
    for name, section in (
        ("kernels", _kernels),
        ("steps", _steps),
        ("equality", _equality),
        ("attention", _attention),
    ):
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
    write_text(folder / "gpu.md", "\n\n".join(parts) + "\n", own=True)


def _kernels(runs):
    rows = [["", ""], *([case, reason or "taken"] for case, reason in runs["refused"].items())]
    times = [["kernel", "queries, warps, stages, keys by pairs", "microseconds"]]
    for kernel, divisions in runs["microseconds"].items():
        for division, found in divisions.items():
            shown = found if isinstance(found, str) else f"{found:.0f}"
            times.append([kernel, division.strip("()"), shown])
    return "\n".join(
        ["## Kernels of attention", "", *markdown_table(rows), "", *markdown_table(times)]
    )


def _steps(runs):
    rows = [["", "rows", "step, ms", "tokens/s", "share of the peak", "memory, GiB",
             "beside transformers", "first step, s"]]  # fmt: skip
    for part, run in runs.items():
        if reason := run.get("failed") or run.get("skipped"):
            rows.append([part, f"did not run: {reason}", *[""] * 6])
            continue
        peer = runs.get(f"{part.partition(':')[0]}: {THEIRS}", {})
        ratio = peer.get("step_ms", 0) / run["step_ms"]
        rows.append([
            part, str(run["rows"]), f"{run['step_ms']:.2f}", f"{run['tokens_per_s']:,.0f}",
            f"{run['share']:.1%}", f"{run['peak_gib']:.1f}" if "peak_gib" in run else "",
            f"{ratio:.2f} times as fast" if ratio else "", f"{run['first_step_s']:.0f}",
        ])  # fmt: skip
    return "\n".join(["## Steps", "", *markdown_table(rows)])


def _equality(runs):
    rows = [["", "loss apart at the first step", "at most", "norm of the gradient, at most",
             "weights"]]  # fmt: skip
    for precision, run in runs.items():
        if "loss_apart_at_most" in run:
            values = ("loss_apart_at_first", "loss_apart_at_most", "gradient_norm_apart_at_most",
                      "weights_apart")  # fmt: skip
            rows.append([precision, *(f"{run[v]:.1e}" for v in values)])
    same = runs.get("deterministic", {}).get("same_bits")
    note = f"Twice with deterministic operations: same bits: {same}."
    title = "## 50 steps on the GPU and on the CPU"
    return "\n".join([title, "", *markdown_table(rows), "", note])


def _attention(runs):
    rows = [["", "", "forward and backward, ms", "forward, ms", "distance"]]
    for case, ways in runs.items():
        for way, found in ways.items():
            if isinstance(found, str):
                rows.append([case, way, f"did not run: {found}", "", ""])
            else:
                both, forward, distance = found
                rows.append([case, way, f"{both:.3f}", f"{forward:.3f}", f"{distance:.1e}"])
    note = "Distance: of the output from that of plain products in float32, relative."
    return "\n".join(["## Attention by itself", "", *markdown_table(rows), "", note])
