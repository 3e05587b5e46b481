"""The work of each kind of cell of an ablation, which the workers of `pool.py` do.

A function takes the cell's configuration (paths filled in) and its folder, and returns its result
as JSON values. Every function continues what an interrupted call left in the folder. A cell that
trains is a run of `experiments.training`, which writes its results itself.
"""

import os
from pathlib import Path

import numpy as np

from data_prep.jobs.processes import available_cores
from data_prep.records import open_records
from experiments.tables.run import nli_mixture
from experiments.training.settings.config import FinetuneConfig, PretrainConfig
from experiments.training.settings.config_values import from_dict
from official_bert.common.files import remove
from official_bert.common.json_files import read_json
from official_bert.extension import find


def run_cell(kind: str, config: dict, folder: Path, lock=None):
    """Run one cell of an ablation; `lock`: the lock of its folder, if the caller holds it.

    Returns: the result as JSON values; a training's as of `training.runs`."""
    if kind not in TRAININGS:
        return find("cells", kind, KINDS)(config, Path(folder))
    from experiments.training import runs

    return getattr(runs, kind)(from_dict(TRAININGS[kind], config), folder, lock=lock)


def split_sentences(config: dict, folder: Path) -> dict:
    from data_prep.sentences import split_files

    # The articles of the tables are WikiExtractor's, whose section titles end with a full stop.
    stops, layout = config["layout"] == "articles", config["layout"]
    options = {"layout": layout, "title_stops": stops, "num_workers": _half_of_the_cores()}
    counts = split_files(config["inputs"], folder / "text", **options)
    return {key: sum(c[key] for c in counts.values()) for key in ("documents", "sentences")}


def learn_vocabulary(config: dict, folder: Path) -> dict:
    from data_prep.vocab import learn_vocab
    from official_bert.tokenization import write_vocab

    vocab = learn_vocab(
        config["inputs"], config["vocab_size"], do_lower_case=config["do_lower_case"]
    )
    remove(folder / "vocab.txt")  # of a process that was killed here
    write_vocab(folder / "vocab.txt", vocab)
    return {"vocab_size": len(vocab)}


def make_records(config: dict, folder: Path) -> dict:
    from data_prep.create_pretraining_data import create

    settings = {"num_workers": _half_of_the_cores(), "progress": False}
    options = config["options"]
    manifest = create(
        config["train"], config["vocab"], str(folder / "records"), **settings, **options
    )
    heldout = folder / "records" / "heldout"
    if config["heldout"]:
        # One pass: a second one has the same text with other masks, and tells nothing new.
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
    return nli_mixture.mix(config["mnli_dev"], config["others"], folder / "data", own=True)


def cloze(config: dict, folder: Path) -> dict:
    """Score a pre-trained model on held-out masked pieces (`zero_shot_probes.py`)."""
    from experiments.training.finetuning import example_scores
    from experiments.training.pretraining import heldout, zero_shot_probes

    records = f"{config['records']}/heldout"
    found = zero_shot_probes.cloze(config["model"], records, config["max_examples"])
    example_scores.write(folder / "example_scores.npz", zero_shot_probes.cloze_statistics(found))
    size = config["vocab_size"]
    known = heldout.piece_counts(heldout.in_order(open_records(config["records"]), 256), size)
    loss, accuracy = heldout.frequency_scores(
        1 + known, np.bincount(found["piece"], minlength=size)
    )
    return {
        "heldout": {
            "cloze_loss": float(found["loss"].mean()),
            "cloze_accuracy": float(found["correct"].mean()),
        },
        "baseline": {"cloze_loss": loss, "cloze_accuracy": accuracy},
        "examples": found["examples"],
        "pieces": len(found["piece"]),
    }


def export_model(config: dict, folder: Path) -> dict:
    """Export a SavedModel and ask it about the examples."""
    from experiments.training.answers.export_model import answer, export

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


TRAININGS = {"pretrain": PretrainConfig, "finetune": FinetuneConfig}
KINDS = {
    "sentences": split_sentences,
    "vocab": learn_vocabulary,
    "records": make_records,
    "nli": mix_nli,
    "cloze": cloze,
    "export": export_model,
}


def _half_of_the_cores() -> int:
    """Return the number of processes that make text or records: half of the cores.

    Two such cells run side by side before all others. The output does not depend on the number."""
    return max(1, available_cores() // 2)


def _best_label(outputs: dict) -> dict:
    label = outputs["labels"]
    label = label.decode() if isinstance(label, bytes) else str(label)
    return {"label": label, "probability": float(max(outputs["probabilities"]))}
