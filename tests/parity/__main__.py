"""`BERT_SLOW=1 python -m tests.parity`: runs every check and writes docs/parity.md; of checks that
are named behind it, it prints the lines alone."""

import os
import platform
import sys
import time
from importlib import metadata
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from tests.parity.results import Result, why_not

DOCUMENT = Path(__file__).parents[2] / "docs" / "parity.md"
PACKAGES = ("tensorflow", "keras", "keras-hub", "torch", "transformers", "numpy", "jax")
HEADER = """# Parity

Figures of `BERT_DATA_DIR=... BERT_SLOW=1 python -m tests.parity`, which wrote this file;
`make test-parity` runs the same checks as tests. "Difference" is the largest absolute difference
over all elements, in float32, unless the line says otherwise; dropout is off. A lower bound is
written "at least".

*Sentences of one page*: a page with the same content in 25 scripts, as its wiki's dump has it
(`tests/data_prep/scripts.txt`).

Two lines need a word. *Hidden states at all places*: what stands at places of padding is computed
though nothing reads it, and there MiniLM amplifies rounding, so that PyTorch's own float32 is as
far from float64 as ours; at the places of tokens the plain bound holds. *bfloat16* has 8 bits of
precision, so its bounds are loose: they say that vectors keep their direction, no more.
"""


def main() -> int:
    from tests.parity.all_checks import CHECKS

    data = os.environ.get("BERT_DATA_DIR")
    data_dir = Path(data) if data else None
    rows, skipped = [], []
    named = sys.argv[1:]
    for name, one in ((name, CHECKS[name]) for name in named or CHECKS):
        if reason := why_not(one, data_dir):
            skipped.append(f"- {name}: {reason}")
            continue
        start = time.perf_counter()
        results = [*(one.run(data_dir) if one.needs_data else one.run())]
        print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
        rows += results
    text = "\n".join([HEADER, _versions(), "", *_table(rows), *_skipped(skipped)]) + "\n"
    print(text)
    if not named:
        DOCUMENT.write_text(text, encoding="utf-8")
    failed = [row.what for row in rows if not row.holds]
    for what in failed:
        print(f"does not hold: {what}", file=sys.stderr)
    return 1 if failed else 0


def _table(rows: list[Result]) -> list[str]:
    lines = ["| what | against | difference | bound | holds |", "|---|---|---|---|---|"]
    for row in rows:
        bound = f"at least {row.bound:g}" if row.at_least else f"{row.bound:g}"
        holds = "yes" if row.holds else "**no**"
        lines.append(f"| {row.what} | {row.against} | {row.figure:.3g} | {bound} | {holds} |")
    return lines


def _versions() -> str:
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            found.append(f"no {package}")
    return f"Python {platform.python_version()}, {', '.join(found)}, on CPU."


def _skipped(lines: list[str]) -> list[str]:
    return ["", "Not run here:", *lines] if lines else []


if __name__ == "__main__":
    sys.exit(main())
