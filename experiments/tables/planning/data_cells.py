"""The cells of an ablation's text: sentences, vocabulary, records, and the mixture of NLI files."""

import dataclasses
import os
from pathlib import Path

from data_prep.corpus.input_files import expand_inputs
from data_prep.pretraining.record_options import RecordOptions
from experiments.tables.planning.ablation import Ablation
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

    def of_training_text(name: str, kind: str, fields: dict, **more) -> Cell:
        read = {"inputs": inputs["train"], **fields}
        fingerprints = {"text": prints["train"]}
        return Cell(name, kind, read, ignored=("inputs",), fingerprints=fingerprints, **more)

    if corpus.vocab:
        model = embedded.find(corpus.vocab)
        own = model / "vocab.txt" if model.is_dir() else inside(ablation.data_dir, corpus.vocab)
        vocab = str(own)
        vocab_print = {"vocab": files_digest((vocab,))}
    else:
        vocab, vocab_print = "@vocabulary//vocab.txt", {}
        options = {"vocab_size": corpus.vocab_size, "do_lower_case": corpus.do_lower_case}
        cells.append(of_training_text("vocabulary", "vocab", options, cost=10))
    for variant in (v for v in ablation.variants if v.learnt):
        source = initialization.of(FinetuneConfig(model=variant.checkpoint))
        for seed in variant.seeds:
            name, kind, options, seconds = source.corpus_cell(
                variant.learnt, seed, corpus.do_lower_case
            )
            made = of_training_text(name, kind, {"options": options}, cost=seconds, round=seed)
            cells.append(made)
    for records in ablation.records:
        options = dataclasses.asdict(records)
        options |= {"do_lower_case": corpus.do_lower_case, "held_out": corpus.held_out}
        del options["name"]
        options = changes_dict(RecordOptions(**options))
        cells.append(
            Cell(
                f"records/{records.name}",
                "records",
                {**inputs, "vocab": vocab, "options": options},
                ignored=("train", "heldout", *(("vocab",) if corpus.vocab else ())),
                fingerprints=prints | vocab_print,
                cost=20,
            )
        )
    return cells, vocab


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
