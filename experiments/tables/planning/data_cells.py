"""The cells of an ablation's text: sentences, vocabulary, records, and the mixture of NLI files."""

import dataclasses
import os
from pathlib import Path

from data_prep.corpus.input_files import expand_inputs
from data_prep.pretraining.record_options import RecordOptions
from experiments.tables.planning.ablation import Ablation, Corpus, RecordSpec
from experiments.tables.run.grid import Cell
from experiments.training.folder.inputs import files_digest
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.config_values import changes_dict
from experiments.training.start import initialization
from official_bert.checkpoints import embedded
from official_bert.common.errors import UserError


def of_corpus(ablation: Ablation) -> tuple[list[Cell], str]:
    """Return (the cells of sentences, vocabulary and records, the vocabulary's file or reference).

    Raises:
      UserError: a text or the vocabulary is missing.
    """
    corpus = ablation.corpus
    cells, inputs, prints = _sentences(ablation)
    if corpus.vocab:
        model = embedded.find(corpus.vocab)
        own = model / "vocab.txt" if model.is_dir() else inside(ablation.data_dir, corpus.vocab)
        vocab = str(own)
        read = prints | {"vocab": files_digest((vocab,))}
    else:
        vocab, read = "@vocabulary//vocab.txt", prints
        fields = {"vocab_size": corpus.vocab_size, "do_lower_case": corpus.do_lower_case}
        cells.append(_of_training_text("vocabulary", "vocab", inputs, prints, fields, cost=10))
    cells += _learnt_vectors(ablation, inputs, prints)
    for records in ablation.records:
        config = {**inputs, "vocab": vocab, "options": _record_options(records, corpus)}
        ignored = ("train", "heldout", *(("vocab",) if corpus.vocab else ()))
        name = f"records/{records.name}"
        cells.append(Cell(name, "records", config, ignored, fingerprints=read, cost=20))
    return cells, vocab


def records_folder(name: str) -> str:
    """Return the reference to the folder of the records of a `RecordSpec`."""
    return f"@records/{name}//records"


def _of_training_text(name: str, kind: str, inputs, prints, fields: dict, **more) -> Cell:
    """Return a cell that learns from the sentences for training."""
    if not inputs["train"]:
        raise UserError(f"{name}: all text of the corpus is held out; give some for training")
    fingerprints = {"text": prints["train"]}
    read = {"inputs": inputs["train"], **fields}
    return Cell(name, kind, read, ignored=("inputs",), fingerprints=fingerprints, **more)


def _learnt_vectors(ablation: Ablation, inputs, prints) -> list[Cell]:
    """Return the cells that learn vectors of `Variant.learnt`, one a seed."""
    cells, lower = [], ablation.corpus.do_lower_case
    for variant in (v for v in ablation.variants if v.learnt):
        source = initialization.of(FinetuneConfig(model=variant.checkpoint))
        for seed in variant.seeds:
            name, kind, options, cost = source.corpus_cell(variant.learnt, seed, lower)
            read, more = {"options": options}, {"cost": cost, "round": seed}
            cells.append(_of_training_text(name, kind, inputs, prints, read, **more))
    return cells


def _record_options(records: RecordSpec, corpus: Corpus) -> dict:
    """Return the `RecordOptions` of records, as far as they differ from the defaults."""
    options = dataclasses.asdict(records)
    options |= {"do_lower_case": corpus.do_lower_case, "held_out": corpus.held_out}
    del options["name"]
    return changes_dict(RecordOptions(**options))


def _sentences(ablation: Ablation) -> tuple[list[Cell], dict[str, list[str]], dict[str, str]]:
    """Return the cells that divide texts into sentences, and for "train" and "heldout" the files of
    sentences (or references to them) and a digest of the texts."""
    cells: list[Cell] = []
    inputs: dict[str, list[str]] = {"train": [], "heldout": []}
    digests: dict[str, list[str]] = {"train": [], "heldout": []}
    for index, text in enumerate(ablation.corpus.texts):
        files = _text_files(text.files, ablation.data_dir)
        split = "heldout" if text.heldout else "train"
        digest = files_digest(tuple(files))
        digests[split].append(digest)
        if text.layout == "sentences":
            inputs[split] += files
            continue
        cells.append(
            Cell(
                f"sentences/{index + 1}",
                "sentences",
                {"inputs": files, "layout": text.layout},
                ignored=("inputs",),
                fingerprints={"text": digest},
                cost=sum(Path(f).stat().st_size for f in files) / 4e6,
            )
        )
        inputs[split].append(f"@{cells[-1].name}//text/*.txt.gz")
    return cells, inputs, {split: " ".join(found) for split, found in digests.items() if found}


def nli(ablation: Ablation) -> Cell:
    """Return the cell that makes training and dev data of the ablation's NLI files."""
    paths = [str(inside(ablation.data_dir, path)) for path in ablation.nli_mixture]
    return Cell(
        "nli",
        "nli",
        {"mnli_dev": paths[0], "others": paths[1:]},
        ignored=("mnli_dev", "others"),
        fingerprints={"files": files_digest(tuple(paths))},
        cost=2,
    )


def task_folder(data_dir: str, folder: str) -> str:
    """Return the folder of a task's files that `FinetuneConfig.data_dir` of a column names."""
    if folder.startswith("@"):
        return folder
    if folder.startswith("sample:"):
        from data_prep import sample

        return sample.task_dir(folder.removeprefix("sample:"))
    return str(inside(data_dir, folder)) if folder else ""


def inside(data_dir: str, path: str) -> Path:
    """Return a path inside the data folder; an absolute one is returned as it is."""
    if Path(path).is_absolute():
        return Path(path)
    if not data_dir:
        raise UserError(
            f"{path} is a file of the data folder, but there is none: set BERT_DATA_DIR or "
            "--config.data_dir"
        )
    return Path(os.path.realpath(data_dir), path)


def _text_files(patterns, data_dir: str) -> list[str]:
    files = []
    for pattern in patterns:
        if pattern.partition(":")[0] == "sample":
            from data_prep import sample

            files += sample.corpus_files(pattern.partition(":")[2] or "*")
        else:
            files += expand_inputs([str(inside(data_dir, pattern))])
    return sorted(files)
