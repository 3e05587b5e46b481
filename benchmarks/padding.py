"""How much of a batch is padding, and what not computing it gains.

    python benchmarks/padding.py --vocab=vocab.txt --records=rec64,rec128 \\
        --tasks=sst2:glue_data/SST-2:128,mrpc:glue_data/MRPC:128 --size=mini

For records of pre-training: the share of padding, and what packing several short sequences into a
row could save at most (whole sequences, first fit). For the texts of tasks (NAME:FOLDER:LENGTH):
the share of padding with all batches padded to LENGTH and with the length buckets of `TrainBatches`
(multiples of 32), the time of the same steps both ways, turn and turn about, and the largest
difference that it makes to the loss (without dropout).
"""

import argparse
import dataclasses
import sys
import time
from pathlib import Path

import numpy as np

# The repository, not this folder, where data_prep.py is another benchmark.
sys.path[0] = str(Path(__file__).parents[1])

STEPS = 12  # measured steps each way
RECORDS = 4096  # records looked at


def records_row(folder: str) -> str:
    """A row of the table for one folder of records."""
    from data_prep.records import open_records, pretraining_dataset

    records = open_records(folder)
    batch = next(iter(pretraining_dataset(records, min(RECORDS, records.examples), seed=1)))
    lengths = batch["input_mask"].numpy().sum(axis=1)
    size = records.max_seq_length
    short = (lengths <= size // 2).mean()
    return (
        f"| {folder} | {len(lengths)} | {size} | {1 - lengths.mean() / size:.1%} | {short:.1%} | "
        f"{len(lengths) / rows_packed(lengths, size):.2f} |"
    )


def rows_packed(lengths, size: int) -> int:
    """Rows that hold all sequences: first fit, the longest first."""
    room = []
    for length in sorted(lengths.tolist(), reverse=True):
        for row, left in enumerate(room):
            if left >= length:
                room[row] -= length
                break
        else:
            room.append(size - length)
    return len(room)


def task_row(spec: str, tokenizer, bert, batch_size: int) -> str:
    """A row of the table for one task: padding and speed with and without length buckets."""
    from data_prep.tasks import get_task
    from data_prep.tasks.batches import TrainBatches
    from data_prep.tasks.featurize import featurize

    name, folder, length = spec.split(":")
    task = get_task(name, folder)
    examples = task.examples("train")[:4096]
    features = featurize(task, examples, tokenizer, int(length), None)
    ways = [TrainBatches(features, batch_size, 0, buckets) for buckets in (None, 32)]
    shares = []
    for batches in ways:
        all_batches = list(batches.from_step(0, batches.steps_per_epoch))
        real = sum(int(batch["input_mask"].sum()) for batch in all_batches)
        shares.append(1 - real / sum(batch["input_ids"].size for batch in all_batches))
    trainer = _trainer(task.head, bert)
    # The buckets' batches, and the same rows padded to the maximum: the losses must be equal.
    steps = np.linspace(0, ways[1].steps_per_epoch - 1, STEPS).astype(int)
    pairs = [_both(ways[1], step, int(length)) for step in steps]
    for pair in pairs[:1]:
        for batch in pair:
            trainer.read([trainer.train_on(batch)])
    seconds, difference = np.zeros(2), 0.0
    for pair in pairs:
        weights = trainer.arrays()
        losses = []
        for way, batch in enumerate(pair):
            trainer.load_arrays(weights)
            start = time.perf_counter()
            losses.append(trainer.read([trainer.train_on(batch)])["loss"][0])
            seconds[way] += time.perf_counter() - start
        difference = max(difference, abs(losses[0] - losses[1]))
    return (
        f"| {name} | {features.lengths.mean():.0f} | {length} | {shares[0]:.0%} | {shares[1]:.0%} "
        f"| {STEPS / seconds[0]:.2f} | {STEPS / seconds[1]:.2f} | {seconds[0] / seconds[1]:.2f} | "
        f"{difference:.0e} |"
    )


def _both(batches, step, length):
    """(the step's batch padded to `length`, the same in its bucket)"""
    from data_prep.tasks.batches import make_batch

    rows = batches.rows(step)
    return make_batch(batches.features, rows, batches.batch_size, length), batches.batch(step)


def _trainer(head, bert):
    from experiments.training import distribution
    from experiments.training.config import FinetuneConfig
    from experiments.training.finetune_run import build_model
    from experiments.training.starting_point import StartingPoint
    from experiments.training.trainer import Trainer
    from experiments.training.trainer_state import StepOptions

    trainer = Trainer(
        lambda seed: build_model(FinetuneConfig(), StartingPoint(bert, None), head, seed),
        distribution.get_strategy("one_device"),
        StepOptions(),
    )
    trainer.set_schedule(1e-4, 0, 1000)
    return trainer


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--records", default="", help="folders of records, separated by commas")
    parser.add_argument("--tasks", default="", help="NAME:FOLDER:LENGTH, separated by commas")
    parser.add_argument("--size", default="mini", help="of the model that is timed")
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()
    from official_bert import BertTokenizer, named_config

    tokenizer = BertTokenizer(options.vocab)
    quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    bert = dataclasses.replace(named_config(options.size), vocab_size=tokenizer.vocab_size, **quiet)
    if options.records:
        print("| records | looked at | length | padding | at most half full | packing saves |")
        print("|---|---|---|---|---|---|")
        for folder in options.records.split(","):
            print(records_row(folder), flush=True)
        print()
    if options.tasks:
        print(
            "| task | mean length | maximum | padding to it | padding in buckets | steps/s padded "
            "| steps/s in buckets | gain | loss differs by |\n|" + "---|" * 9
        )
        for spec in options.tasks.split(","):
            print(task_row(spec, tokenizer, bert, options.batch), flush=True)


if __name__ == "__main__":
    main()
