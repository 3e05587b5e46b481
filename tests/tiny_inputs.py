"""One tiny, faultless input of every kind that is read from outside, and its reader, for damage.

`INPUTS` is the table. `tests.fuzz` damages its files at random, `tests/test_fuzz.py` each of them
in every way of `tests.damage`. Reading gives the right value, or a UserError says why not.
"""

import atexit
import bz2
import contextlib
import dataclasses
import functools
import gzip
import json
import logging
import lzma
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from official_bert.common.errors import UserError
from tests import guests
from tests.tiny import CONFIG, VOCAB, change_json, make_records


@dataclasses.dataclass(frozen=True)
class Input:
    """Files in a folder, and what reads them.

    Attributes:
      make: writes them into a folder.
      read: from the folder to what is in it, in a form that can be compared.
      names: patterns of the files that it reads, and of which it can say that one is none.
      checked: a pattern of those of which a checksum knows every bit.
      halves: whether half of a file may be a file, too.
      slow: whether reading takes more than some hundredths of a second.
    """

    make: Callable[[Path], None]
    read: Callable[[Path], object]
    names: str = "*"
    checked: str = ""
    halves: bool = False
    slow: bool = False

    @functools.cached_property
    def folder(self) -> Path:
        """Where the files are, made on the first call, until the process ends."""
        path = Path(tempfile.mkdtemp(prefix="tiny-input-"))
        atexit.register(shutil.rmtree, path, ignore_errors=True)
        self.make(path)
        return path

    @functools.cached_property
    def whole(self):
        """Return what is read of the files as they are."""
        unchanged = self.damaged(self.files[0], lambda content: content)
        with unchanged as copy, warnings.catch_warnings(action="ignore"):
            return self.read(copy)

    @functools.cached_property
    def files(self) -> list[str]:
        """The names, below the folder, of the files that are damaged."""
        found = (p for pattern in self.names.split() for p in self.folder.rglob(pattern))
        return sorted(str(p.relative_to(self.folder)) for p in found if p.name[0] != ".")

    @contextlib.contextmanager
    def damaged(self, name: str, damage: Callable[[bytes], bytes]):
        """Copy the folder and damage one file."""
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch) / "copy"
            shutil.copytree(self.folder, copy)
            (copy / name).write_bytes(damage((copy / name).read_bytes()))
            yield copy

    def check(self, name: str, damage: Callable[[bytes], bytes], seen: bool = True) -> bool:
        """Read a damaged copy; returns whether it was refused, by the file's name or its folder's.

        Args:
          seen: whether a checksum sees this damage.
        """
        whole = self.whole
        with self.damaged(name, damage) as copy, warnings.catch_warnings(action="ignore"):
            try:
                found = self.read(copy)
            except UserError as error:
                assert Path(name).name in str(error) or str(copy) in str(error), error
                return True
        assert found == whole or not (seen and Path(name).match(self.checked or " ")), name
        return False


def _save_model(kind: str, folder: Path) -> None:
    import official_bert as ob
    from official_bert.checkpoints import model_folder
    from official_bert.checkpoints.finding.resolve import EXPORTERS

    model = ob.BertClassifier(ob.BertEncoder(CONFIG, seed=1), 2)
    save = EXPORTERS.get(kind, model_folder.save)
    save(folder, model, ob.BertTokenizer(VOCAB), {"labels": ["x", "y"]}, overwrite=True)
    if kind == "huggingface":
        (folder / "vocab.txt").unlink()  # tokenizer.json has it too
    if kind == "stranger":
        change_json(folder / "model.json", drop=["checksums"])


def _load_model(folder: Path) -> list[bytes]:
    import official_bert as ob

    weights = ob.load(folder).model.weights
    assert all(np.isfinite(variable).all() for variable in weights)
    return [np.asarray(variable).tobytes() for variable in weights]


def _make_checkpoints(folder: Path) -> None:
    from experiments.training.folder.checkpointing import Checkpoints

    for step in (1, 2):
        Checkpoints(folder).save(step, _checkpoint_arrays(step), {"note": step})


def _checkpoint_arrays(step: int) -> dict[str, np.ndarray]:
    return {"a": np.arange(40.0) + step, "b/c": np.full((3, 5), step, "f4")}


def _load_checkpoint(folder: Path) -> None:
    """Load the newest; the one before it is read where a warning says why."""
    from experiments.training.folder.checkpointing import Checkpoints

    with mock.patch.object(logging, "warning") as warned:
        arrays, state = Checkpoints(folder).load_newest()
    step = state["step"]
    assert step == 2 - warned.called and state == {"step": step, "note": step}
    assert _bytes(arrays) == _bytes(_checkpoint_arrays(step))
    if warned.called:
        raise UserError(warned.call_args.args[0] % warned.call_args.args[1:])


def _make_records(folder: Path, drop: str = "", **options) -> None:
    """Two shards of pre-training records, their manifest without `drop`; or without a manifest."""
    with tempfile.TemporaryDirectory() as scratch:
        make_records(Path(scratch), folder, num_shards=2, **options)
    if drop == "manifest.json":
        (folder / drop).unlink()
    elif drop:
        change_json(folder / "manifest.json", drop=[drop])


def _read_records(folder: Path) -> list[dict]:
    from data_prep.pretraining.reading.numpy_batches import find_fault
    from data_prep.records import numpy_batches, open_records

    opened = open_records(str(folder))
    if (fault := find_fault(opened)) is not None:
        raise UserError(fault)
    found = numpy_batches(opened, 4, shuffle=False, drop_remainder=False)
    return [{name: values.tolist() for name, values in batch.items()} for batch in found]


def _train_on_records(folder: Path) -> list[dict]:
    """Train on the same records as TensorFlow's trainer reads them."""
    from data_prep.records import explained, open_records, pretraining_dataset

    opened = open_records(str(folder))
    with explained():
        dataset = pretraining_dataset(opened, 4, drop_remainder=False, shuffle=False)
        return [{name: v.numpy().tolist() for name, v in batch.items()} for batch in dataset]


def files(**contents: str | bytes) -> Callable[[Path], None]:
    """Write files of these names."""

    def make(folder):
        for name, content in contents.items():
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return make


def _read_task(task: str, folder: Path) -> list[str]:
    """Its examples and features; the file is looked at as an input of predict, too."""
    from data_prep.tasks import get_task
    from data_prep.tasks.files.table import FORMATS
    from official_bert.tokenization import BertTokenizer

    path = next(p for p in folder.iterdir() if p.name.startswith("train"))
    for format in ("", *FORMATS):
        with contextlib.suppress(UserError):
            rows = get_task(task, labels="x").inputs(str(path), format).rows
            assert all(isinstance(row, dict) for row, _ in rows)
    task = get_task(task, str(folder))
    examples = task.examples("train")
    for example in examples:
        task.features(example, BertTokenizer(VOCAB), 16)
    return [*map(str, examples)]


# Task, name and content of a training file of every format.
TASK_FILES = [
    ("squad", "train-v1.1.json", json.dumps(
        {"data": [{"paragraphs": [{"context": "a b c d", "qas": [
            {"id": "1", "question": "a b", "answers": [{"text": "b c", "answer_start": 2}]}]}]}]})),
    ("text_classification", "train.tsv", "text\tlabel\na b\tx\nc d\ty\n"),
    ("text_classification", "train.tsv.gz", gzip.compress(b"text\tlabel\na b\tx\nc d\ty\n")),
    ("text_classification", "train.csv", 'text,label\n"a, ""b""",x\nc d,y\n'),
    ("text_classification", "train.jsonl",
     '{"text": "a b", "label": "x"}\n{"text": "c", "label": "y"}\n'),
    ("text_classification", "train.json",
     '[{"text": "a b", "label": "x"}, {"text": "c", "label": "y"}]'),
    ("text_classification", "train.json", '{"text": ["a", "b"], "label": ["x", "y"]}'),
    ("conll2003", "train.txt",
     "-DOCSTART- O\n\na NNP I-NP B-PER\nb VB O O\n\nc NN I-NP B-LOC\n"),
    ("conll2003", "train.conllu",
     "# newdoc\n1-2\ta\t_\n1\ta\tB-PER\n2\tb\tO\n\n1\tc\tS-LOC\n"),
    ("conll2003", "train.jsonl", '{"tokens": ["a", "b"], "tags": ["B-X", "O"]}\n'
                                 '{"tokens": ["c"], "tags": ["O"], "document": 1}\n'),
    ("squad", "train.jsonl", '{"context": "a b", "question": "c", "answers": '
                             '{"text": ["b"], "answer_start": [2]}}\n' * 2),
    ("swag", "train.csv", "sent1,sent2,ending0,ending1,ending2,ending3,label\n"
                          "a b,c,d,e,a b,c,2\n"),
]  # fmt: skip

# Content of an input of every layout of `data_prep.corpus.sources`, by layout.
CORPORA = {
    "chapters": "CHAPTER I\n\nA b c. D e.\n\nCHAPTER II\n\nA b c.\n",
    "articles": "Title\nA b. C d.\n\nTitle\nE a.\n",
    "wikiextractor": '<doc id="1" url="u" title="t">\nt\n\nA b c. D e.\n</doc>\n',
    "rows": '{"text": "A b. C."}\n{"text": "D e."}\n',
}


def _read_corpus(layout: str, folder: Path) -> bytes:
    from data_prep.corpus.sources import Reading
    from data_prep.sentences import split_file

    (source,) = folder.glob("text*")
    split_file(str(source), folder / "sentences.txt", Reading(layout))
    return (folder / "sentences.txt").read_bytes()


def _make_parquet(name: str, folder: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    rows = [{"text": f"A b {number}. C.", "label": "xy"[number % 2]} for number in range(20)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / name)


def _read_lines(folder: Path) -> list[str]:
    from data_prep.corpus.text_files import text_lines

    return list(text_lines(str(folder / "text")))


def _zstandard(content: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


PACKS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress,
         "Zstandard": _zstandard}  # fmt: skip
_LINES = b"".join(b"line %d of a text\n" % (number * number) for number in range(999))


def _make_dump(pack: Callable[[bytes], bytes], folder: Path) -> None:
    text = "This is a sentence of some length about nothing at all. " * 9
    revision = f"<revision><id>2</id><text>{text}</text></revision>"
    pages = f"<page><title>T</title><ns>0</ns><id>1</id>{revision}</page>\n" * 3
    (folder / "dump.xml").write_bytes(pack(f"<mediawiki>\n{pages}</mediawiki>\n".encode()))


def _read_dump(folder: Path) -> bytes:
    from data_prep.wikipedia import extract

    extract(str(folder / "dump.xml"), folder / "out")
    return b"".join(gzip.decompress(p.read_bytes()) for p in sorted(folder.glob("out/*.gz")))


def _make_arrays(packed: bool, folder: Path) -> None:
    """Write a file of arrays, as features are kept in."""
    from data_prep.jobs import array_files

    ids = {"ids/values": np.arange(300, dtype="i2"), "ids/offsets": np.arange(9), "count": 7}
    array_files.write(folder / "a.npz", ids | {"empty": np.zeros((0, 3), "f4")}, packed)


def _read_arrays(folder: Path) -> dict[str, bytes]:
    from data_prep.jobs import array_files

    return _bytes(array_files.read(folder / "a.npz"))


def _bytes(arrays) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}


def _make_vocabulary(name: str, folder: Path) -> None:
    from tests.tiny import foreign

    if name == "vocab.txt":
        (folder / name).write_text("\n".join(VOCAB))
    else:
        foreign(VOCAB).write(folder)


def read_vocabulary(name: str, folder: Path) -> list[int]:
    from official_bert.tokenization import load_tokenizer

    tokenizer = load_tokenizer(folder / name)
    found = tokenizer.encode("the dog is é a b \U0001f600")
    assert all(0 <= index < len(tokenizer.vocab) for index in found)
    return found


def _read_configuration(folder: Path):
    from official_bert.config import BertConfig

    return BertConfig.from_json_file(folder / "bert_config.json")


def _inputs() -> dict[str, Input]:
    part, shards = functools.partial, "examples-*"

    def model(kind, *options, **more):
        return Input(part(_save_model, kind), _load_model, *options, **more)

    def records(*names, **options):
        return Input(part(_make_records, **options), _read_records, *names)

    rows = {
        "model folder": model("", "[!R]*", "*"),
        "model folder of a stranger": model("stranger"),
        "google": model("google", checked="*.ckpt.*"),
        "huggingface": model("huggingface", "*.json *.safetensors", "*.safetensors"),
        "keras_hub": model("keras_hub", "config.json *.h5", slow=True),
        "checkpoints": Input(_make_checkpoints, _load_checkpoint, "step-*2/*.*", "*"),
        "records": records(f"{shards} manifest.json", shards),
        "records, GZIP": records(shards, shards, compression="GZIP"),
        "records, dynamic masks": records(f"{shards} *b.txt", shards, dynamic_masking=True),
        "records without a checksum": records("manifest.json", drop="checksum"),
        **{
            f"records without a manifest, {kind}": records(
                shards, shards, drop="manifest.json", compression=kind
            )
            for kind in ("", "GZIP")
        },
        "records in TensorFlow": Input(_make_records, _train_on_records, shards, shards, slow=True),
        "rows, Parquet": Input(part(_make_parquet, "text.parquet"), part(_read_corpus, "rows")),
        "text_classification, Parquet": Input(
            part(_make_parquet, "train.parquet"), part(_read_task, "text_classification")
        ),
        "dump": Input(part(_make_dump, bytes), _read_dump),
        "dump, bzip2": Input(part(_make_dump, bz2.compress), _read_dump, checked="*"),
        "arrays": Input(part(_make_arrays, False), _read_arrays, checked="*"),
        "arrays, packed": Input(part(_make_arrays, True), _read_arrays, checked="*"),
        "configuration": Input(
            files(**{"bert_config.json": json.dumps(CONFIG.to_dict())}), _read_configuration
        ),
    }
    for task, name, content in TASK_FILES:
        label = f"{task}, {name}" if f"{task}, {name}" not in rows else f"{task}, other {name}"
        halves = name in ("train.txt", "train.jsonl")
        rows[label] = Input(files(**{name: content}), part(_read_task, task), halves=halves)
    for layout, text in CORPORA.items():
        halves = layout in ("chapters", "articles")
        make, read = files(**{"text.txt": text}), part(_read_corpus, layout)
        rows[layout] = Input(make, read, halves=halves)
    for kind, pack in PACKS.items():
        rows[kind] = Input(lambda f, p=pack: files(text=p(_LINES))(f), _read_lines, checked="*")
    for name in ("vocab.txt", "tokenizer.json"):
        rows[name] = Input(part(_make_vocabulary, name), part(read_vocabulary, name))
    return rows | guests.added("inputs", "inputs", dict)()


INPUTS = _inputs()
