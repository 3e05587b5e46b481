"""The work of each kind of cell of an ablation; runs in the workers of `experiments.tables.grid`.

A function takes the cell's configuration (paths filled in) and its folder, and returns its result
as JSON values. All of them continue what an interrupted call left in the folder.
"""

import json
import os
from pathlib import Path

import numpy as np

from experiments.training.config import FinetuneConfig, PretrainConfig
from experiments.training.config_values import from_dict
from official_bert.common.json_files import read_json


def run_cell(kind: str, config: dict, folder: Path) -> dict:
    """Runs one cell of an ablation."""
    return KINDS[kind](config, Path(folder))


def split_sentences(config: dict, folder: Path) -> dict:
    from data_prep.sentences import split_files

    # The articles of the tables are WikiExtractor's, whose section titles end with a full stop.
    stops, layout = config["layout"] == "articles", config["layout"]
    counts = split_files(config["inputs"], folder / "text", layout=layout, title_stops=stops)
    return {key: sum(c[key] for c in counts.values()) for key in ("documents", "sentences")}


def learn_vocabulary(config: dict, folder: Path) -> dict:
    from data_prep.vocab import learn_vocab
    from official_bert.tokenization import write_vocab

    vocab = learn_vocab(
        config["inputs"], config["vocab_size"], do_lower_case=config["do_lower_case"]
    )
    write_vocab(folder / "vocab.txt", vocab)
    return {"vocab_size": len(vocab)}


def learn_vectors(config: dict, folder: Path) -> dict:
    from data_prep import word2vec

    words, vectors = word2vec.learn(config["inputs"], **config["options"])
    word2vec.write(folder / "vectors.txt", words, vectors)
    return {"words": len(words), "width": vectors.shape[1]}


def make_records(config: dict, folder: Path) -> dict:
    from data_prep.create_pretraining_data import create

    settings = {"num_workers": 1, "progress": False}
    options = config["options"]
    manifest = create(
        config["train"], config["vocab"], str(folder / "records"), **settings, **options
    )
    heldout = folder / "records" / "heldout"
    if config["heldout"]:
        # One pass: the same held-out text again with other masks would tell nothing new.
        once = options | {"dupe_factor": 1, "held_out": 0.0}
        create(config["heldout"], config["vocab"], str(heldout), **settings, **once)
    counts = read_json(heldout / "manifest.json")["counts"]
    return {
        "counts": manifest["counts"],
        "heldout_counts": counts,
        "vocab_size": manifest["vocab_size"],
        "max_predictions_per_seq": manifest["max_predictions_per_seq"],
    }


def mix_nli(config: dict, folder: Path) -> dict:
    from experiments.tables.nli_mixture import mix

    return mix(config["mnli_dev"], config["others"], folder / "data")


def pretrain(config: dict, folder: Path) -> dict:
    from experiments.training import runs
    from official_bert.objectives import objective

    config = from_dict(PretrainConfig, config)
    results = runs.pretrain(config, folder / "run")
    bert = config.bert_config
    baseline = unigram_baseline(
        objective(config.objectives_of(bert)[0]),
        config.phases[-1].records,
        config.phases[-1].heldout_records,
        bert.vocab_size,
        every_token=bert.attention_direction != "bidirectional",
    )
    return {
        **{k: results[k] for k in ("steps", "examples", "tokens", "seconds", "heldout")},
        "parameters": results["parameters"],
        "train_seconds": results["train_seconds"],
        "baseline": baseline,
        "curve": learning_curve(folder / "run" / "metrics.jsonl"),
    }


def finetune(config: dict, folder: Path) -> dict:
    from experiments.training import runs

    results = runs.finetune(from_dict(FinetuneConfig, config), folder / "run")
    names = ("task", "dev", "main_metric", "baseline", "steps", "train_examples", "dev_examples")
    return {name: results[name] for name in (*names, "seconds")}


def cloze(config: dict, folder: Path) -> dict:
    """Scores a pre-trained model on held-out masked pieces (`experiments.training.cloze`)."""
    from experiments.training import cloze, example_scores

    found = cloze.score(config["model"], f"{config['records']}/heldout", config["max_examples"])
    example_scores.write(folder / "run" / "example_scores.npz", cloze.statistics(found))
    size = config["vocab_size"]
    known = np.ones(size) + _piece_counts(config["records"], size, every_token=False)
    loss, accuracy = _frequency_scores(known, np.bincount(found["piece"], minlength=size))
    return {
        "heldout": {
            "cloze_loss": float(found["loss"].mean()),
            "cloze_accuracy": float(found["correct"].mean()),
        },
        "baseline": {"cloze_loss": loss, "cloze_accuracy": accuracy},
        "examples": found["examples"],
        "pieces": len(found["piece"]),
    }


def pairs(config: dict, folder: Path) -> dict:
    """Asks a pre-trained model about pairs (`experiments.training.pair_questions`)."""
    from experiments.training import example_scores, pair_questions

    question, heldout = config["question"], f"{config['records']}/heldout"
    found = pair_questions.score(config["model"], heldout, question, config["max_examples"])
    sums = pair_questions.statistics(found, question)
    example_scores.write(folder / "run" / "example_scores.npz", sums)
    correct, label = (
        float(np.average(found[name], weights=found["weight"])) for name in ("correct", "label")
    )
    metric = f"{question}_accuracy"
    return {
        "heldout": {metric: correct},
        "baseline": {metric: max(label, 1 - label)},
        "examples": int(found["weight"].sum()),
    }


def export_model(config: dict, folder: Path) -> dict:
    """Exports a SavedModel and asks it about the examples."""
    from experiments.training.export_model import answer, export

    path = folder / "saved_model" / "1"
    if not path.exists():
        path = export(config["model"], folder / "saved_model")
    answers = answer(path, config["examples"])
    return {
        "saved_model": os.path.relpath(path, folder),  # the table may be moved
        "answers": [
            {"text": text, **_best_label(outputs)}
            for text, outputs in zip(config["examples"], answers, strict=True)
        ],
    }


KINDS = {
    "sentences": split_sentences,
    "vocab": learn_vocabulary,
    "vectors": learn_vectors,
    "records": make_records,
    "nli": mix_nli,
    "pretrain": pretrain,
    "finetune": finetune,
    "cloze": cloze,
    "pairs": pairs,
    "export": export_model,
}


def _best_label(outputs: dict) -> dict:
    label = outputs["labels"]
    label = label.decode() if isinstance(label, bytes) else str(label)
    return {"label": label, "probability": float(max(outputs["probabilities"]))}


def learning_curve(path: Path, points: int = 200) -> list[dict]:
    """Losses and held-out metrics by step, at most so many points of training loss."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    kept = []
    stride = max(1, len(lines) // points)
    for index, line in enumerate(lines):
        evaluation = any(key.startswith("dev/") for key in line)
        if evaluation or index % stride == 0 or index == len(lines) - 1:
            values = {
                key.removeprefix("dev/"): round(value, 5)
                for key, value in line.items()
                if not key.endswith("_per_second") and key != "time"
            }
            kept.append({"heldout": evaluation, **values})
    return kept


def unigram_baseline(
    objective, records: str, heldout: str, vocab_size: int, every_token: bool
) -> dict:
    """What a language model scores that knows only how frequent each piece is.

    The frequencies are those of the predicted pieces of the training records, one added to each.

    Args:
      objective: whose names the scores get; one that predicts no pieces has no such baseline.
      every_token: of all tokens (left-to-right models, and half of a shallow concatenation) rather
        than of the masked ones.
    """
    if not objective.perplexities:
        return {}
    counts = np.ones(vocab_size) + _piece_counts(records, vocab_size, every_token)
    loss, accuracy = _frequency_scores(counts, _piece_counts(heldout, vocab_size, every_token))
    [(perplexity, name)] = objective.perplexities.items()
    scored = name.removesuffix("_loss") + "_accuracy"
    return {name: loss, perplexity: float(np.exp(loss)), scored: accuracy}


def _frequency_scores(known: np.ndarray, seen: np.ndarray) -> tuple[float, float]:
    """(loss in nats, accuracy) of predicting the pieces counted in `seen` by how often they are
    in `known`, both float [vocab_size]."""
    loss = -float(seen @ np.log(known / known.sum()) / max(1.0, seen.sum()))
    return loss, float(seen[np.argmax(known)] / max(1.0, seen.sum()))


def _piece_counts(records: str, vocab_size: int, every_token: bool, limit: int = 400_000):
    from data_prep.records import numpy_batches, open_records

    counts = np.zeros(vocab_size)
    for batch in numpy_batches(open_records(records), 256, shuffle=False, drop_remainder=False):
        counts += _pieces_of(batch, vocab_size, every_token)
        if counts.sum() >= limit:
            break
    return counts


def _pieces_of(batch: dict, vocab_size: int, every_token: bool) -> np.ndarray:
    real = batch["masked_lm_weights"] > 0
    predicted = batch["masked_lm_ids"][real]
    if every_token:
        ids, rows = batch["input_ids"].copy(), np.nonzero(real)[0]
        ids[rows, batch["masked_lm_positions"][real]] = predicted
        predicted = ids[:, 1:][batch["input_mask"][:, 1:] > 0]
    return np.bincount(predicted, minlength=vocab_size)
