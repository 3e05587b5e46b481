"""The cells of a table's data: sentences, vocabulary, vectors, records, and a mixture of NLI files.

sentences/N -> vocabulary -> records/NAME
            -> vectors/KIND/SEED
nli
"""

import dataclasses
from pathlib import Path

from data_prep.pretraining.record_options import RecordOptions
from experiments.tables.planning import key_fields, places
from experiments.tables.planning.ablation import Ablation, Corpus, RecordSpec
from experiments.tables.run import nli_mixture
from experiments.tables.run.grid import Cell
from experiments.training.folder.inputs import files_digest
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.config_values import changes_dict
from experiments.training.start import initialization
from official_bert.common.errors import UserError

NLI = "nli"
# Measured on the sample: compression of text, and bytes in records of a character and pass.
_PACKED, _OF_RECORDS = 2.7, 2.3
_OF_ENTRY, _OF_PAIR = 8.0, 150.0  # bytes of a vocabulary's entry and of an NLI pair


@dataclasses.dataclass(frozen=True)
class TableData:
    """The cells of a table's data, and what the cells of its runs need of them.

    Attributes:
      cells: in the order of their making.
      vocab: the vocabulary's file, or a reference to it; "" where no text is read.
      vectors: {(variant, seed): name of the cell of its learnt vectors}.
      examples: {cell of examples for fine-tuning: numbers for training and dev}.
    """

    cells: list[Cell]
    vocab: str
    vectors: dict[tuple[str, int], str]
    examples: dict[str, tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class _Sentences:
    """The sentences of a corpus, one a line.

    Attributes:
      cells: that divide texts into sentences.
      files: {"train" or "heldout": files, or references to them}.
      digests: {split: digest of its texts}; a split without text has none.
      sizes: {split: bytes of its text}.
    """

    cells: list[Cell]
    files: dict[str, list[str]]
    digests: dict[str, str]
    sizes: dict[str, float]

    def learner(self, name: str, kind: str, fields: dict, **estimates) -> Cell:
        """Return a cell that learns from the sentences for training.

        Args:
          fields: of its configuration, beside its inputs.
          estimates: `cost`, `bytes` and `round` of the `Cell`.

        Raises:
          UserError: there are none.
        """
        if not self.files["train"]:
            raise UserError(f"{name}: all text of the corpus is held out; give some for training")
        paths = {"inputs": self.files["train"]}
        files = key_fields.of_files(paths, {"text": self.digests["train"]})
        return Cell(name, kind, {**paths, **fields}, **files, **estimates)


def of_table(ablation: Ablation) -> TableData:
    """Return the cells of a table's data.

    Raises:
      UserError: a text, the vocabulary or a file of the mixture is missing.
    """
    corpus, cells, vocab, vectors, examples = ablation.corpus, [], "", {}, {}
    if any(variant.pretrain or variant.learnt for variant in ablation.variants):
        sentences = _sentences(corpus, ablation.data_dir)
        vocab, learnt = _vocabulary(corpus, ablation.data_dir, sentences)
        vectors = _vectors(ablation, sentences)
        records = [_records(spec, corpus, vocab, sentences) for spec in ablation.records]
        of_vectors = {cell.name: cell for cell in vectors.values()}
        cells = [*sentences.cells, *learnt, *of_vectors.values(), *records]
    folders = [column.finetune.data_dir for column in ablation.columns if column.finetune]
    if ablation.nli_mixture and any(folder.startswith(f"@{NLI}//") for folder in folders):
        mixture, examples[NLI] = _mixture(ablation.nli_mixture, ablation.data_dir)
        cells.append(mixture)
    names = {key: cell.name for key, cell in vectors.items()}
    return TableData(cells, vocab, names, examples)


def records_folder(name: str) -> str:
    """Return the reference to the folder of the records of a `RecordSpec`."""
    return f"@records/{name}//records"


def _sentences(corpus: Corpus, data_dir: str) -> _Sentences:
    cells: list[Cell] = []
    files: dict[str, list[str]] = {"train": [], "heldout": []}
    digests: dict[str, list[str]] = {"train": [], "heldout": []}
    sizes = {"train": 0.0, "heldout": 0.0}
    for index, text in enumerate(corpus.texts):
        texts = places.text_files(text.files, data_dir)
        split = "heldout" if text.heldout else "train"
        digest, size = files_digest(tuple(texts)), sum(map(_text_size, texts))
        digests[split].append(digest)
        sizes[split] += size
        if text.layout == "sentences":
            files[split] += texts
            continue
        name = f"sentences/{index + 1}"
        config = {"inputs": texts, "layout": text.layout}
        read = key_fields.of_files({"inputs": texts}, {"text": digest})
        seconds = sum(Path(file).stat().st_size for file in texts) / 4e6
        cells.append(Cell(name, "sentences", config, **read, cost=seconds, bytes=size / _PACKED))
        files[split].append(f"@{name}//text/*.txt.gz")
    joined = {split: " ".join(some) for split, some in digests.items() if some}
    return _Sentences(cells, files, joined, sizes)


def _text_size(path: str) -> float:
    """Return the bytes of a file's text, estimated where the file is compressed."""
    return Path(path).stat().st_size * (_PACKED if path.endswith((".gz", ".xz", ".bz2")) else 1)


def _vocabulary(corpus: Corpus, data_dir: str, sentences: _Sentences) -> tuple[str, list[Cell]]:
    """Return the vocabulary's file or a reference to it, and the cell that learns it, if any."""
    if corpus.vocab:
        return places.vocabulary(corpus.vocab, data_dir), []
    fields = {"vocab_size": corpus.vocab_size, "do_lower_case": corpus.do_lower_case}
    sizes = {"cost": 10, "bytes": _OF_ENTRY * corpus.vocab_size}
    return "@vocabulary//vocab.txt", [sentences.learner("vocabulary", "vocab", fields, **sizes)]


def _vectors(ablation: Ablation, sentences: _Sentences) -> dict[tuple[str, int], Cell]:
    """Return {(variant, seed): the cell that learns its vectors}; variants may share one."""
    found = {}
    for variant in (variant for variant in ablation.variants if variant.learnt):
        source = initialization.of(FinetuneConfig(model=variant.checkpoint))
        for seed in variant.seeds:
            asked = variant.learnt, seed, ablation.corpus.do_lower_case
            name, kind, options, sizes = source.corpus_cell(*asked)
            fields = {"options": options}
            cell = sentences.learner(name, kind, fields, round=seed, **sizes)
            found[variant.name, seed] = cell
    return found


def _records(spec: RecordSpec, corpus: Corpus, vocab: str, sentences: _Sentences) -> Cell:
    options = dataclasses.asdict(spec)
    options |= {"do_lower_case": corpus.do_lower_case, "held_out": corpus.held_out}
    del options["name"]
    paths, digests = dict(sentences.files), sentences.digests
    if corpus.vocab:
        paths["vocab"] = vocab
        digests = digests | {"vocab": files_digest((vocab,))}
    # Options that have their defaults are left out.
    fields = {"vocab": vocab, "options": changes_dict(RecordOptions(**options))}
    size = sentences.sizes["train"] * spec.dupe_factor + sentences.sizes["heldout"]
    return Cell(
        f"records/{spec.name}",
        "records",
        {**sentences.files, **fields},
        **key_fields.of_files(paths, digests),
        cost=20,
        bytes=_OF_RECORDS * size,
    )


def _mixture(paths: tuple[str, ...], data_dir: str) -> tuple[Cell, tuple[int, int]]:
    """Return the cell of `Ablation.nli_mixture`, and its numbers of training and dev pairs."""
    first, *others = (str(places.inside(data_dir, path)) for path in paths)
    config = {"mnli_dev": first, "others": others}
    read = key_fields.of_files(config, {"files": files_digest((first, *others))})
    counts = nli_mixture.counts(first, *others)
    return Cell(NLI, "nli", config, **read, cost=2, bytes=_OF_PAIR * sum(counts)), counts
