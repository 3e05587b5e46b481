"""The cells of a table's data: sentences, vocabulary, vectors, records, and a mixture of NLI files.

sentences/N -> vocabulary -> records/NAME
            -> vectors/KIND/SEED
nli
"""

import dataclasses
from pathlib import Path

from data_prep.pretraining.record_options import RecordOptions
from experiments.tables.planning import cell_inputs, places
from experiments.tables.planning.ablation import Ablation, Corpus, RecordSpec, Text, Variant
from experiments.tables.run import nli_mixture
from experiments.tables.run.grid import Cell, reference, referred
from experiments.training.folder.inputs import files_digest
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.config_values import changes_dict
from experiments.training.start import initialization
from official_bert.common.errors import UserError

NLI = "nli"
# Measured on the sample and on 117 MB of books and articles.
_TEXT_BYTES = 2.7  # of text for each compressed byte
_RECORD_BYTES = 2.3  # of records for each byte of text, each pass
_ENTRY_BYTES = 8  # of a vocabulary's entry
_PAIR_BYTES = 150  # of an NLI pair
_SPLIT_RATE, _VOCABULARY_RATE, _RECORDS_RATE = 3e6, 1.2e7, 4e7  # bytes of text a second
_START = 3.0  # seconds until a cell's work begins


@dataclasses.dataclass(frozen=True)
class TableData:
    """The cells of a table's data, and what the cells of its runs need of them.

    Attributes:
      cells: each after the cells that it reads.
      vocab: the vocabulary's file, or a reference to it; "" where no text is read.
      vectors: {(variant, seed): name of the cell of its learnt vectors}.
      examples: {name of the cell that makes a task's data: (training, dev examples)}.
    """

    cells: list[Cell]
    vocab: str
    vectors: dict[tuple[str, int], str]
    examples: dict[str, tuple[int, int]]


@dataclasses.dataclass
class _Split:
    """The sentences for training, or those held out, one a line.

    Attributes:
      files: files, or references to them.
      digests: of the texts that they come from.
      size: bytes of text.
    """

    files: list[str] = dataclasses.field(default_factory=list)
    digests: list[str] = dataclasses.field(default_factory=list)
    size: float = 0.0


@dataclasses.dataclass(frozen=True)
class _Sentences:
    """The sentences of a corpus; `cells` divide texts into them."""

    cells: list[Cell]
    train: _Split
    heldout: _Split

    def learner(self, name: str, kind: str, fields: dict, **of_cell) -> Cell:
        """Return a cell that learns from the sentences for training.

        Args:
          fields: of its configuration, beside its inputs.
          of_cell: further fields of the `Cell`.

        Raises:
          UserError: there are none.
        """
        if not self.train.files:
            raise UserError(f"{name}: the corpus has no text for training")
        read = {"inputs": self.train.files}
        inputs = cell_inputs.of_fields(read, {"text": " ".join(self.train.digests)})
        return Cell(name, kind, {**read, **fields}, inputs=inputs, **of_cell)


def table_data(ablation: Ablation) -> TableData:
    """Return the cells of a table's data.

    Raises:
      UserError: a text, the vocabulary or a file of the mixture is missing.
    """
    cells, vocab, vectors, examples = [], "", {}, {}
    if any(variant.pretrain or variant.learnt for variant in ablation.variants):
        sentences = _sentences(ablation.corpus, ablation.data_dir)
        if ablation.records:
            _check_splits(sentences, ablation.corpus.held_out)
        cells, vocab, vectors = _cells_of_text(ablation, sentences)
    columns = (column.finetune for column in ablation.columns if column.finetune)
    if ablation.nli_mixture and any(referred(config.data_dir)[0] == NLI for config in columns):
        mixture, examples[NLI] = _mixture(ablation.nli_mixture, ablation.data_dir)
        cells.append(mixture)
    return TableData(cells, vocab, vectors, examples)


def records_folder(name: str) -> str:
    """Return the reference to the folder of the records of a `RecordSpec`."""
    return reference(f"records/{name}", "records")


def _sentences(corpus: Corpus, data_dir: str) -> _Sentences:
    cells, train, heldout = [], _Split(), _Split()
    purposes: dict[str, bool] = {}  # {file: whether it is held out}
    for index, text in enumerate(corpus.texts):
        files = places.text_files(text.files, data_dir)
        digest, size = files_digest(tuple(files)), sum(map(_text_size, files))
        split = heldout if text.heldout else train
        for file in files:
            if purposes.setdefault(file, text.heldout) != text.heldout:
                raise UserError(f"corpus: {file} is for training and held out; leave it out of one")
        split.digests.append(digest)
        split.size += size
        if text.layout == "sentences":
            split.files += files
        else:
            cell = _divided(f"sentences/{index + 1}", text, files, digest, size)
            cells.append(cell)
            split.files.append(reference(cell.name, "text/*.txt.gz"))
    return _Sentences(cells, train, heldout)


def _check_splits(sentences: _Sentences, held_out: float) -> None:
    if not sentences.train.files:
        raise UserError("records: the corpus has no text for training; not all may be held out")
    if bool(sentences.heldout.files) == bool(held_out):
        raise UserError(
            "records: give the corpus text for evaluation: held_out, a share of the training text, "
            "or a text with heldout=true, not both"
        )


def _divided(name: str, text: Text, files: list[str], digest: str, size: float) -> Cell:
    """Return the cell that divides a text into sentences."""
    return Cell(
        name,
        "sentences",
        {"inputs": files, "layout": text.layout},
        inputs=cell_inputs.of_fields({"inputs": files}, {"text": digest}),
        cost=_START + size / _SPLIT_RATE,
        bytes=size / _TEXT_BYTES,
    )


def _text_size(path: str) -> float:
    """Return the bytes of a file's text, estimated where the file is compressed."""
    packed = path.endswith((".gz", ".xz", ".bz2"))
    return Path(path).stat().st_size * (_TEXT_BYTES if packed else 1)


def _cells_of_text(
    ablation: Ablation, sentences: _Sentences
) -> tuple[list[Cell], str, dict[tuple[str, int], str]]:
    """Return `cells`, `vocab` and `vectors` of `TableData`, all that is made of text."""
    corpus, cells = ablation.corpus, [*sentences.cells]
    if corpus.vocab:
        vocab = places.vocabulary(corpus.vocab, ablation.data_dir)
    else:
        cells.append(_vocabulary(corpus, sentences))
        vocab = reference(cells[-1].name, "vocab.txt")
    vectors = {}
    for variant in (variant for variant in ablation.variants if variant.learnt):
        for seed in variant.seeds:
            cell = _vectors(variant, seed, corpus, sentences)
            vectors[variant.name, seed] = cell.name
            if cell not in cells:  # variants may share one
                cells.append(cell)
    cells += [_records(spec, corpus, vocab, sentences) for spec in ablation.records]
    return cells, vocab, vectors


def _vocabulary(corpus: Corpus, sentences: _Sentences) -> Cell:
    return sentences.learner(
        "vocabulary",
        "vocab",
        {"vocab_size": corpus.vocab_size, "do_lower_case": corpus.do_lower_case},
        cost=_START + sentences.train.size / _VOCABULARY_RATE,
        bytes=_ENTRY_BYTES * corpus.vocab_size,
    )


def _vectors(variant: Variant, seed: int, corpus: Corpus, sentences: _Sentences) -> Cell:
    source = initialization.of(FinetuneConfig(model=variant.checkpoint))
    try:
        name, kind, options, sizes = source.corpus_cell(variant.learnt, seed, corpus.do_lower_case)
    except UserError as error:
        raise UserError(f"variant {variant.name}: {error}") from None
    return sentences.learner(name, kind, {"options": options}, round=seed, **sizes)


def _records(spec: RecordSpec, corpus: Corpus, vocab: str, sentences: _Sentences) -> Cell:
    options = dataclasses.asdict(spec)
    options |= {"do_lower_case": corpus.do_lower_case, "held_out": corpus.held_out}
    del options["name"]
    splits = {"train": sentences.train, "heldout": sentences.heldout}
    read: dict[str, str | list[str]] = {name: split.files for name, split in splits.items()}
    # A split without text has no digest.
    digests = {name: " ".join(split.digests) for name, split in splits.items() if split.digests}
    if corpus.vocab:
        read["vocab"], digests["vocab"] = vocab, files_digest((vocab,))
    text = sentences.train.size * spec.dupe_factor + sentences.heldout.size
    return Cell(
        f"records/{spec.name}",
        "records",
        # Options that have their defaults are left out.
        {**read, "vocab": vocab, "options": changes_dict(RecordOptions(**options))},
        inputs=cell_inputs.of_fields(read, digests),
        cost=_START + text / _RECORDS_RATE,
        bytes=_RECORD_BYTES * text,
    )


def _mixture(paths: tuple[str, ...], data_dir: str) -> tuple[Cell, tuple[int, int]]:
    """Return the cell of `Ablation.nli_mixture`, and its numbers of training and dev pairs."""
    first, *others = (str(places.inside(data_dir, path)) for path in paths)
    config = {"mnli_dev": first, "others": others}
    inputs = cell_inputs.of_fields(config, {"files": files_digest((first, *others))})
    counts = nli_mixture.counts(first, *others)
    size = _PAIR_BYTES * sum(counts)
    return Cell(NLI, "nli", config, inputs=inputs, cost=2, bytes=size), counts
