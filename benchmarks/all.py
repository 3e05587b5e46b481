"""Runs the benchmarks that have committed figures, in about an hour, and says what changed.

    python -m benchmarks.all --data_dir=DATA --corpus='sentences/*.txt.gz' --vocab=vocab.txt

Machines differ, and one machine differs from day to day: so plain matrix products are timed before
and after each part, and a figure counts in relation to their rate, now as when it was committed
(`results/reference.json`). A part beside which something else ran (the rate of its products is more
than a tenth off that of the other parts) is measured again. Changes of more than a tenth are
listed, those of this project first. --output keeps what was measured; benchmarks/results makes it
the committed figures, from which contestants go that are not installed.

Benchmarks that answer a question once (memory) are not run.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import machine
from official_bert.common.markdown import markdown_table

HERE = Path(__file__).parent
RESULTS = HERE / "results"
REFERENCE = "reference.json"


def of_pretraining(results) -> dict[str, float]:
    return {
        f"{run}: {row['contestant']}, sequences/s": row["sequences_per_s"]
        for run, result in results["runs"].items()
        for row in result["rows"]
    }


def of_serving(results) -> dict[str, float]:
    found = {}
    for shape, rows in results.items():
        for row in rows:
            for kind, of_kind in row.items():
                if isinstance(of_kind, dict):
                    name = f"{shape}, {kind}: {row['contestant']}"
                    found[f"{name}, one text, texts/s"] = 1e3 / of_kind["p50_ms"]
                    found[f"{name}, batches, texts/s"] = of_kind["texts_per_s"]
    return found


def of_data_prep(results) -> dict[str, float]:
    return {
        f"{part}, {name}, {rate}": row[rate]
        for part, rows in results.items()
        for name, row in rows.items()
        for rate in ("sequences/s", "MB/s")
        if rate in row
    }


@dataclasses.dataclass(frozen=True)
class Part:
    """A benchmark: how it is run within a share of the hour, and the rates in its results.

    Attributes:
      options: of its command, apart from --output; {words} are values of this command's flags.
      rates: from the contents of its JSON file to {label: rate}; more is better.
    """

    options: tuple[str, ...]
    rates: Callable[[dict], dict[str, float]]


PARTS = {
    "pretraining": Part(
        ("--rounds=4", "--slow_rounds=2", "--model_garden_python={model_garden_python}"),
        of_pretraining,
    ),
    "serving": Part(("--rounds=2", "--data_dir={data_dir}"), of_serving),
    "formats": Part(("--rounds=2", "--data_dir={data_dir}"), of_serving),
    "data_prep": Part(("--rounds=1", "--corpus={corpus}", "--vocab={vocab}"), of_data_prep),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--data_dir", default=os.environ.get("BERT_DATA_DIR", ""))
    parser.add_argument("--corpus", default="", help="glob of sentence files, for data_prep")
    parser.add_argument("--vocab", default="", help="uncased vocabulary, for data_prep")
    parser.add_argument("--model_garden_python", default="", help="see pretraining.py")
    parser.add_argument("--output", default="", help="folder that keeps what was measured")
    options = parser.parse_args()
    names = options.parts.split(",")
    for name in names:
        if name not in PARTS:
            parser.error(f"--parts: no part {name!r}; there are {', '.join(PARTS)}")
        needed = " ".join(PARTS[name].options)
        for flag in ("data_dir", "corpus", "vocab"):
            if f"{{{flag}}}" in needed and not getattr(options, flag):
                parser.error(f"{name} needs --{flag}; --parts=NAME,NAME leaves it out")
    committed, known = read(RESULTS), reference(RESULTS)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.output or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        rates = run(names, vars(options) | {"output": str(folder)})
        now = {name: read(folder)[name] for name in names}
        print(report(committed, now, known, rates))
        content = {"machine": machine.name(), "matrix_gflops_per_s": known | rates}
        (folder / REFERENCE).write_text(json.dumps(content, indent=1) + "\n")


def run(names, options) -> dict[str, float]:
    """Run the parts into the folder `options["output"]`; {part: GFLOP/s beside it}."""
    rates = {name: _run_part(name, options) for name in names}
    for name in machine.disturbed(rates):
        print(f"{name}: {rates[name]:.0f} GFLOP/s beside it; again", file=sys.stderr)
        rates[name] = _run_part(name, options)
    return rates


def _run_part(name, options) -> float:
    before, started = machine.matrix_gflops(), time.time()
    print(f"{name}: products at {before:.0f} GFLOP/s", file=sys.stderr, flush=True)
    arguments = [text.format(**options) for text in (*PARTS[name].options, "--output={output}")]
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *arguments],
        stdout=subprocess.DEVNULL,  # its tables are in files; here stands what changed
        env={**machine.importing(), "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    if done.returncode:
        raise SystemExit(f"{name} failed ({done.returncode}); run it alone to see why")
    print(f"{name}: {time.time() - started:.0f} s", file=sys.stderr, flush=True)
    return (before + machine.matrix_gflops()) / 2


def read(folder: Path) -> dict[str, dict[str, float]]:
    """Return {part: its rates} of a folder of results."""
    return {
        name: part.rates(json.loads((folder / f"{name}.json").read_text()))
        for name, part in PARTS.items()
        if (folder / f"{name}.json").is_file()
    }


def reference(folder: Path) -> dict[str, float]:
    """Return {part: GFLOP/s of the products} of committed figures."""
    return json.loads((folder / REFERENCE).read_text())["matrix_gflops_per_s"]


def report(committed, now, committed_rates, rates) -> str:
    """Report the changes of figures, in relation to matrix products.

    Args:
      committed, now: {part: {label: rate}}.
      committed_rates, rates: {part: GFLOP/s of matrix products}.
    """
    changed, same, new = [], 0, 0
    for part, found in now.items():
        speed = rates[part] / committed_rates[part]
        for label, rate in found.items():
            old = committed.get(part, {}).get(label)
            if old is None:
                new += 1
                continue
            ratio = rate / old / speed
            if abs(ratio - 1) <= machine.A_TENTH:
                same += 1
                continue
            others = "official_bert" not in label and part != "formats"
            cells = [f"{part}, {label}", f"{old:.4g}", f"{rate:.4g}", f"{speed:.2f}"]
            changed.append((others, ratio, [*cells, f"{ratio:.2f}"]))
    total = f"{len(changed)} of {len(changed) + same} figures changed by more than a tenth"
    header = ["a second", "committed", "now", "matrix products", "in relation to them"]
    table = markdown_table([header, *(cells for *_, cells in sorted(changed))])
    return "\n".join([*table, "", total + (f"; {new} have no committed figure" if new else "")])


if __name__ == "__main__":
    main()
