"""Fine-tuning on small data with `transformers`' Trainer: the peer of the table `own_data`.

    BERT_DATA_DIR=DATA python -m benchmarks.own_data_trainer                 # 60 runs, 14 minutes
    BERT_DATA_DIR=DATA python -m benchmarks.own_data_trainer --scale=minilm  # 12 runs, 20 minutes
    python -m benchmarks.own_data_trainer --table > experiments/results/own_data/trainer.md

The last puts them beside this project's. Minutes are of one core; the extras `peers` and `bench`
are needed.

One run for each checkpoint, task, rate and seed of experiments/configs/own_data.py. Both sides have
its examples, features, batch size, steps, rates and warm-up, and start from the same weights; the
head is drawn for each seed. Trainer has its own AdamW (with bias correction, without weight decay),
order, dropout and clipping, and computes in float32. Scores are added to
experiments/results/own_data/trainer.json as they come; those that are there are not made again.
"""

import argparse
import collections
import dataclasses
import itertools
import json
import os
import statistics
import tempfile
from pathlib import Path

from benchmarks.machine import kept
from experiments.configs.own_data import get_config
from experiments.tables.planning import places
from official_bert.common.markdown import markdown_table

RESULTS = Path(__file__).parents[1] / "experiments" / "results" / "own_data"
THEIRS = RESULTS / "trainer.json"


def runs(scale: str) -> dict[str, tuple]:
    """Return {name: (checkpoint, FinetuneConfig, metric)} of a scale's rows with the correction."""
    ablation, found = get_config(scale), {}
    checkpoints = {variant.name: variant.checkpoint for variant in ablation.variants}
    corrected = [row for row in ablation.rows if row.finetune["bias_correction"]]
    for row, column in itertools.product(corrected, ablation.columns):
        folder = str(Path(ablation.data_dir) / column.finetune.data_dir)
        for seed in column.seeds:
            config = dataclasses.replace(
                column.finetune, data_dir=folder, seed=seed, **row.finetune
            )
            name = f"{row.label}/{column.label}/{seed}"
            found[name] = places.checkpoint(checkpoints[row.variant]), config, column.metric
    return found


def train(checkpoint: str, config) -> dict[str, float]:
    """Return the scores of one fine-tuning with Trainer."""
    import torch
    import transformers

    from data_prep.tasks import get_task
    from data_prep.tasks.batches import make_batch
    from data_prep.tasks.featurize import featurize
    from experiments.training.start.examples import read_examples
    from experiments.training.step.evaluation import outputs
    from official_bert.checkpoints.finding import resolve
    from official_bert.heads import build_head
    from tests.parity import finetuning, peers

    task = get_task(config.task, config.data_dir, **config.task_options)
    start, length, size = resolve.load(checkpoint), config.max_seq_length, config.train_batch_size
    train, dev = (read_examples(task, split, config) for split in ("train", "dev"))
    features, asked = (featurize(task, e, start.tokenizer, length) for e in (train, dev))
    model = peers.in_transformers(build_head(start.encoder, task.head, seed=config.seed))

    def collate(rows):
        batch = make_batch(features, rows, len(rows), int(features.lengths[rows].max()))
        return peers.their_inputs(batch) | finetuning.their_labels(batch)

    def predict(batch):
        with torch.no_grad():
            found = model(**peers.their_inputs(batch))
        return {name: values.numpy() for name, values in found.items()}

    steps = -(-len(features) // size) * int(config.num_train_epochs)
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder,
            per_device_train_batch_size=size,
            max_steps=steps,
            learning_rate=config.learning_rate,
            warmup_steps=int(steps * config.warmup_proportion),
            seed=config.seed,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            remove_unused_columns=False,
        )
        transformers.Trainer(
            model, arguments, data_collator=collate, train_dataset=range(len(features))
        ).train()
    model.eval()
    return task.score(dev, task.predictions(dev, asked, outputs(predict, asked, 32)))


def ours() -> list[dict]:
    """Return the committed tables of every scale."""
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*/results.json"))]


def table(ours: list[dict], theirs: dict[str, float]) -> str:
    """Return means of the seeds side by side, and the larger of the two standard deviations."""
    groups, cells = collections.defaultdict(list), {}
    for name, score in theirs.items():
        groups[name.rpartition("/")[0]].append(100 * score)
    for row in (row for scale in ours for row in scale["rows"]):
        cells |= {f"{row['label']}/{column}": cell for column, cell in row["cells"].items()}
    lines = [["model, rate", "task", "this project", "Trainer", "spread"]]
    for group, scores in groups.items():
        cell, label = cells.get(group, {}), group.split(", corrected/")
        mine = f"{cell['mean']:.1f}" if "mean" in cell else "not run"
        spread = max(cell.get("deviation", 0.0), statistics.stdev(scores) if scores[1:] else 0.0)
        lines.append([*label, mine, f"{statistics.fmean(scores):.1f}", f"{spread:.1f}"])
    return "\n".join(markdown_table(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scale", default="tiny", choices=("tiny", "minilm"))
    parser.add_argument("--only", default="", help="runs whose name has this: questions/1")
    parser.add_argument("--output", type=Path, default=THEIRS)
    parser.add_argument("--table", action="store_true", help="print what is there, run nothing")
    options = parser.parse_args()
    os.environ.setdefault("KERAS_BACKEND", "torch")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # beside other work two wait for each other
    known = {} if options.table else runs(options.scale)
    wanted = [name for name in known if options.only in name]

    def score(name):
        *run, metric = known[name]
        return train(*run)[metric]

    print(table(ours(), kept(options.output, wanted, score)))


if __name__ == "__main__":
    main()
