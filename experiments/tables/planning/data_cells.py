"""The cells of a table's data: sentences, vocabulary, vectors, records, and a mixture of NLI files.

sentences -> vocabulary -> records/NAME
          -> vectors/KIND/SEED
"""

import dataclasses
from pathlib import Path

from data_prep.pretraining.record_options import RecordOptions
from experiments.tables.planning import places
from experiments.tables.planning.ablation import Ablation, Corpus, RecordSpec
from experiments.tables.run import nli_mixture
from experiments.tables.run.grid import Cell
from experiments.training.folder.inputs import files_digest
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.config_values import changes_dict
from experiments.training.start import initialization
from official_bert.common.errors import UserError

NLI = "nli"


@dataclasses.dataclass
class TableData:
    """The cells of a table's data, and what the cells of its runs need of them.

    Attributes:
      cells: in the order of their making.
      vocab: the vocabulary's file, or a reference to it; "" where no text is read.
      vectors: {(variant, seed): name of the cell of its learnt vectors}.
      nli_examples: numbers of training and dev examples of the mixture of NLI files.
    """

    cells: list[Cell] = dataclasses.field(default_factory=list)
    vocab: str = ""
    vectors: dict[tuple[str, int], str] = dataclasses.field(default_factory=dict)
    nli_examples: tuple[int, int] = (0, 0)


@dataclasses.dataclass
class _Sentences:
    """The sentences of a corpus, by split ("train", "heldout").

    Attributes:
      files: files of sentences, or references to them.
      digests: of the texts; a split without text has none.
    """

    files: dict[str, list[str]]
    digests: dict[str, str]

    def learner(self, name: str, kind: str, fields: dict, **of_cell) -> Cell:
        """Return a cell that learns from the sentences for training; `fields`: of its
        configuration."""
        if not self.files["train"]:
            raise UserError(f"{name}: all text of the corpus is held out; give some for training")
        config, digest = {"inputs": self.files["train"], **fields}, {"text": self.digests["train"]}
        return Cell(name, kind, config, ignored=("inputs",), fingerprints=digest, **of_cell)


def of_table(ablation: Ablation) -> TableData:
    """Return the cells of a table's data.

    Raises:
      UserError: a text, the vocabulary or a file of the mixture is missing.
    """
    data = TableData()
    if any(variant.pretrain or variant.learnt for variant in ablation.variants):
        _add_text(data, ablation)
    asked = (column.label for column in ablation.columns if _reads_mixture(column))
    if (label := next(asked, None)) is not None:
        _add_mixture(data, ablation, label)
    return data


def records_folder(name: str) -> str:
    """Return the reference to the folder of the records of a `RecordSpec`."""
    return f"@records/{name}//records"


def _add_text(data: TableData, ablation: Ablation) -> None:
    corpus, sentences = ablation.corpus, _sentences(data, ablation)
    prints = sentences.digests
    if corpus.vocab:
        data.vocab = places.vocabulary(corpus.vocab, ablation.data_dir)
        prints = prints | {"vocab": files_digest((data.vocab,))}
    else:
        data.vocab = "@vocabulary//vocab.txt"
        fields = {"vocab_size": corpus.vocab_size, "do_lower_case": corpus.do_lower_case}
        data.cells.append(sentences.learner("vocabulary", "vocab", fields, cost=10))
    for variant in ablation.variants:
        for seed in variant.seeds if variant.learnt else ():
            source = initialization.of(FinetuneConfig(model=variant.checkpoint))
            asked = variant.learnt, seed, corpus.do_lower_case
            name, kind, options, cost = source.corpus_cell(*asked)
            fields = {"options": options}
            data.cells.append(sentences.learner(name, kind, fields, cost=cost, round=seed))
            data.vectors[variant.name, seed] = name
    for spec in ablation.records:
        options = _record_options(spec, corpus)
        config = {**sentences.files, "vocab": data.vocab, "options": options}
        ignored = ("train", "heldout", *(("vocab",) if corpus.vocab else ()))
        name = f"records/{spec.name}"
        data.cells.append(Cell(name, "records", config, ignored, fingerprints=prints, cost=20))


def _sentences(data: TableData, ablation: Ablation) -> _Sentences:
    """Add the cells that divide texts into sentences, and return these."""
    files: dict[str, list[str]] = {"train": [], "heldout": []}
    digests: dict[str, list[str]] = {"train": [], "heldout": []}
    for index, text in enumerate(ablation.corpus.texts):
        texts = places.text_files(text.files, ablation.data_dir)
        split = "heldout" if text.heldout else "train"
        digest = files_digest(tuple(texts))
        digests[split].append(digest)
        if text.layout == "sentences":
            files[split] += texts
            continue
        name = f"sentences/{index + 1}"
        config = {"inputs": texts, "layout": text.layout}
        cost = sum(Path(file).stat().st_size for file in texts) / 4e6
        read = {"ignored": ("inputs",), "fingerprints": {"text": digest}, "cost": cost}
        data.cells.append(Cell(name, "sentences", config, **read))
        files[split].append(f"@{name}//text/*.txt.gz")
    return _Sentences(files, {split: " ".join(all_) for split, all_ in digests.items() if all_})


def _record_options(spec: RecordSpec, corpus: Corpus) -> dict:
    """Return the `RecordOptions` of records, as far as they differ from the defaults."""
    options = dataclasses.asdict(spec)
    options |= {"do_lower_case": corpus.do_lower_case, "held_out": corpus.held_out}
    del options["name"]
    return changes_dict(RecordOptions(**options))


def _reads_mixture(column) -> bool:
    return bool(column.finetune) and column.finetune.data_dir.startswith(f"@{NLI}//")


def _add_mixture(data: TableData, ablation: Ablation, column: str) -> None:
    if not ablation.nli_mixture:
        raise UserError(f"column {column}: it reads @{NLI}, and the table has no nli_mixture")
    files = [str(places.inside(ablation.data_dir, path)) for path in ablation.nli_mixture]
    digest = {"files": files_digest(tuple(files))}
    config = {"mnli_dev": files[0], "others": files[1:]}
    data.cells.append(Cell(NLI, "nli", config, tuple(config), fingerprints=digest, cost=2))
    data.nli_examples = nli_mixture.counts(*files)
