"""Tiny pre-training runs: a vocabulary of a few words, records of made-up sentences, two layers."""

import json
import random

import numpy as np

from data_prep.create_pretraining_data import create
from experiments.training.settings.config import BertConfig, FinetuneConfig, Phase, PretrainConfig
from experiments.training.settings.options import replaced

WORDS = [
    *("the", "a", "cat", "dog", "bird", "tree", "house", "river", "sees", "likes", "finds"),
    *("small", "old", "red", "green", "and", "not", "with", "under", "one", "two", "three"),
    *("four", "five", "six", "seven", "who", "what", "where", "sun", "moon", "star", "day"),
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LENGTH = 24
PAIRED = ("masked_lm", "next_sentence")


def write_vocab(path):
    path.write_text("\n".join([*SPECIAL, ".", *WORDS]) + "\n", encoding="utf-8")
    return path


def write_text(path, documents=40, seed=0):
    draw = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(documents):
            for _ in range(6):
                file.write(" ".join(draw.choices(WORDS, k=draw.randint(3, 8))) + " .\n")
            file.write("\n")
    return path


def make_records(folder, seed=0):
    """Make records of length 24 in folder/records and 16 in folder/short, and folder/vocab.txt."""
    vocab = write_vocab(folder / "vocab.txt")
    text = write_text(folder / "text.txt", seed=seed)
    for name, length in (("records", LENGTH), ("short", 16)):
        options = {"max_seq_length": length, "max_predictions_per_seq": 4, "dupe_factor": 4}
        options |= {"num_shards": 3, "num_workers": 1, "progress": False}
        create(str(text), str(vocab), str(folder / name), **options)
    return folder


def write_labelled_texts(folder):
    """folder/train.tsv (160 rows) and dev.tsv (43); texts with "cat" are of kind animal."""
    draw = random.Random(1)
    for name, rows in (("train", 160), ("dev", 43)):
        with open(folder / f"{name}.tsv", "w", encoding="utf-8") as file:
            file.write("text\tlabel\n")
            for _ in range(rows):
                words = [w for w in draw.choices(WORDS, k=draw.randint(3, 14)) if w != "cat"]
                animal = draw.random() < 0.4
                if animal:
                    words.insert(draw.randint(0, len(words)), "cat")
                file.write(f"{' '.join(words)}\t{'animal' if animal else 'other'}\n")
    return folder


def bert(**fields):
    sizes = {
        "vocab_size": len(SPECIAL) + 1 + len(WORDS),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
        "initializer_range": 0.1,  # as 0.02 at 768 wide: activations start as large
    }
    return BertConfig.from_dict({**sizes, **fields})


def batch(rows=8, length=12, seed=0, predictions=4):
    """Return a batch of pre-training: random ids, and of the predictions about half count."""
    draw = np.random.default_rng(seed)
    vocab = bert().vocab_size
    return {
        "input_ids": draw.integers(0, vocab, (rows, length)).astype(np.int32),
        "input_mask": np.ones((rows, length), np.int32),
        "segment_ids": np.zeros((rows, length), np.int32),
        "masked_lm_positions": draw.integers(0, length, (rows, predictions)).astype(np.int32),
        "masked_lm_ids": draw.integers(0, vocab, (rows, predictions)).astype(np.int32),
        "masked_lm_weights": draw.integers(0, 2, (rows, predictions)).astype(np.float32),
        "next_sentence_labels": draw.integers(0, 2, (rows, 1)).astype(np.int32),
    }


def quiet_bert():
    """Without dropout, and with BERT's initial deviation."""
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return bert(initializer_range=0.02, **rates)


def logged(workdir, name):
    """Return the values of a metric in the order of the steps that have it."""
    lines = (json.loads(line) for line in (workdir / "metrics.jsonl").open())
    return [line[name] for line in lines if name in line]


def pretrain_config(data, **fields):
    """24 steps: 16 at length 16 and 8 at length 24, evaluation at the end of each phase."""
    short, records = str(data / "short"), str(data / "records")
    values = {
        "bert": bert(),
        "vocab": str(data / "vocab.txt"),
        "phases": (Phase(short, 16, 16, short), Phase(records, LENGTH, 8, records)),
        "num_warmup_steps": 4,
        "train_batch_size": 8,
        "learning_rate": 1e-2,
        "max_heldout_examples": 32,
        "log_every": 5,
        "save_every": 4,
        "steps_per_loop": 3,
    }
    return replaced(PretrainConfig(), **{**values, **fields})


def short_config(data, steps=8, **fields):
    """One phase of few steps, with a short evaluation at its end."""
    records = str(data / "records")
    phases = (Phase(records, LENGTH, steps, records),)
    return pretrain_config(data, **{"phases": phases, "max_heldout_examples": 16, **fields})


def finetune_config(texts, model="", **fields):
    """Six epochs on the folder of `write_labelled_texts`, without dropout."""
    values = {
        "task": "text_classification",
        "data_dir": str(texts),
        "model": str(model),
        "bert": bert(),
        "max_seq_length": 16,
        "train_batch_size": 16,
        "learning_rate": 5e-3,
        "num_train_epochs": 6.0,
        "dropout": 0.0,
        # One or two of six seeds leave the plateau of so small a model, whatever the learning rate
        # and whichever the masks of dropout: any change of bits may ask for another.
        "seed": 1,
        "log_every": 10,
    }
    return FinetuneConfig(**{**values, **fields})


def trainer(kind, bert, strategy, precision="float32", objectives=PAIRED, **options):
    """Return a trainer of that class, with a schedule of 100 steps; `options`: of its
    StepOptions."""
    from experiments.training.step.trainer_state import StepOptions
    from official_bert.pretraining import BertPretrainer

    made = kind(
        lambda seed: BertPretrainer(bert, objectives, seed=seed),
        strategy,
        StepOptions(train_metrics=True, **options),
        precision,
        seed=1,
    )
    made.set_schedule(1e-2, 2, 100)
    return made


def train(trainer, batches, calls, **options):
    """(losses of the steps of several calls; final weights)."""
    losses = [trainer.train_from(batches, count, **options)["loss"] for count in calls]
    return np.concatenate(losses), trainer.model.get_weights()
