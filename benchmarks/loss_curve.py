"""The loss of one pre-training run by step: a figure, and the held-out metrics as JSON.

    python benchmarks/loss_curve.py runs/mini benchmarks/results/mini_pretraining

writes mini_pretraining.svg and mini_pretraining.json from the run's metrics.jsonl.
"""

import argparse
import json
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path, help="work folder of experiments.pretrain")
    parser.add_argument("output", type=Path, help="path of both files without their suffixes")
    options = parser.parse_args()
    lines = (options.run / "metrics.jsonl").read_text("utf-8").splitlines()
    points = [json.loads(line) for line in lines]
    training = [(p["step"], p["masked_lm_loss"]) for p in points if "masked_lm_loss" in p]
    heldout = [
        {key: value for key, value in p.items() if key == "step" or key.startswith("dev/")}
        for p in points
        if "dev/masked_lm_loss" in p
    ]
    options.output.with_suffix(".json").write_text(json.dumps(heldout, indent=1) + "\n", "utf-8")
    draw(training, heldout, options.output.with_suffix(".svg"))


def draw(training, heldout, path: Path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "official_bert"})
    figure, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
    axes.plot(*zip(*training, strict=True), color="#b9b4a5", linewidth=1, label="training")
    steps = [point["step"] for point in heldout]
    losses = [point["dev/masked_lm_loss"] for point in heldout]
    axes.plot(steps, losses, "o-", color="#b5533c", markersize=4, label="held out")
    axes.set_xlabel("step")
    axes.set_ylabel("masked-LM loss, nats a piece")
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
