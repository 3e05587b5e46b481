"""One tiny, faultless input of every kind, for `tests.fuzz` to damage.

Each is made on the first call, in one temporary folder.
"""

import atexit
import functools
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcde"]


@functools.cache
def folder() -> Path:
    """Where all of them are, until the process ends."""
    path = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@functools.cache
def model(kind: str) -> Path:
    """A model in a folder: "model_folder", or a name of `resolve.EXPORTERS`."""
    from official_bert.checkpoints import model_folder
    from official_bert.checkpoints.resolve import EXPORTERS

    classifier, tokenizer = _classifier()
    save = EXPORTERS.get(kind, model_folder.save)
    save(folder() / kind, classifier, tokenizer, {"labels": ["x", "y"]})
    return folder() / kind


@functools.cache
def vocabularies() -> Path:
    """A folder with the vocabulary file of every kind of tokeniser."""
    from tests.official_bert.successor_tokenizers import byte_pairs, sentence_piece_model

    path = folder() / "vocabularies"
    path.mkdir()
    (path / "vocab.txt").write_text("\n".join(VOCAB))
    tokenizer = byte_pairs(["Ġthe", "dog"])
    tokenizer.write(path)
    (path / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(tokenizer.vocab)}))
    merges = "".join(f"{left} {right}\n" for left, right in tokenizer.merges)
    (path / "merges.txt").write_text(f"#version: 0.2\n{merges}")
    (path / "spiece.model").write_bytes(sentence_piece_model())
    return path


@functools.cache
def checkpoints() -> Path:
    """Checkpoints of steps 1 and 2 with the arrays of `checkpoint_arrays`, noted as "note"."""
    from experiments.training.checkpointing import Checkpoints

    path = folder() / "checkpoints"
    for step in (1, 2):
        Checkpoints(path).save(step, checkpoint_arrays(step), {"note": step})
    return path


def checkpoint_arrays(step: int) -> dict[str, np.ndarray]:
    return {"a": np.arange(40.0) + step, "b/c": np.full((3, 5), step, "f4")}


@functools.cache
def records(compression: str = "", dynamic_masking: bool = False) -> Path:
    """Two shards of pre-training records with their manifest; compression "" or "GZIP"."""
    from data_prep.create_pretraining_data import create

    path = folder() / f"records{compression}{dynamic_masking}"
    (folder() / "a.txt").write_text("\n\n".join(["a b c\nd e a b\nc c a"] * 6) + "\n")
    (folder() / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
    options = {"max_seq_length": 16, "max_predictions_per_seq": 2, "dupe_factor": 1}
    options |= {"compression": compression, "dynamic_masking": dynamic_masking}
    options |= {"num_shards": 2, "num_workers": 1, "progress": False}
    create(str(folder() / "a.txt"), str(folder() / "vocab.txt"), str(path), **options)
    return path


# Task and content of a training file of every format, by name.
TASK_FILES = {
    "train-v1.1.json": ("squad", json.dumps(
        {"data": [{"paragraphs": [{"context": "a b c d", "qas": [
            {"id": "1", "question": "a b", "answers": [{"text": "b c", "answer_start": 2}]}]}]}]})),
    "train.tsv": ("text_classification", "text\tlabel\na b\tx\nc d\ty\n"),
    "train.csv": ("text_classification", 'text,label\n"a, ""b""",x\nc d,y\n'),
    "train.jsonl": ("text_classification",
                    '{"text": "a b", "label": "x"}\n{"text": "c", "label": "y"}\n'),
    "train.json": ("text_classification",
                   '[{"text": "a b", "label": "x"}, {"text": "c", "label": "y"}]'),
    "train.txt": ("conll2003", "-DOCSTART- O\n\na NNP I-NP B-PER\nb VB O O\n\nc NN I-NP B-LOC\n"),
    "numbered/train.conllu": ("conll2003", "# newdoc\n1-2\ta\t_\n1\ta\tB-PER\n2\tb\tO\n\n"
                                           "1\tc\tS-LOC\n"),
    "words/train.jsonl": ("conll2003", '{"tokens": ["a", "b"], "tags": ["B-X", "O"]}\n'
                                       '{"tokens": ["c"], "tags": ["O"], "document": 1}\n'),
    "columns/train.json": ("text_classification", '{"text": ["a", "b"], "label": ["x", "y"]}'),
    "rows/train.jsonl": ("squad", '{"context": "a b", "question": "c", "answers": '
                                  '{"text": ["b"], "answer_start": [2]}}\n' * 2),
    "swag/train.csv": ("swag", "sent1,sent2,ending0,ending1,ending2,ending3,label\n"
                               "a b,c,d,e,a b,c,2\n"),
}  # fmt: skip

_PATIENTS = (
    '{"patient": "1", "visits": [{"diagnoses": ["a"], "medications": ["m"]}, '
    '{"diagnoses": ["a", "b"], "medications": ["m", "n"]}]}\n'
    '{"patient": 2, "visits": [{"diagnoses": ["b"], "medications": []}]}\n'
)
_PAIRS = "source\ttarget\na b\tc d\ne\tb a\n"
# The files of tasks that read several, by task.
TASK_FOLDERS = {
    "visits": {"ontology.tsv": "a\tx\nb\tx\nm\ty\nn\ty\n",
               "train.jsonl": _PATIENTS, "dev.jsonl": _PATIENTS},
    "videos": {"vocab.txt": "\n".join(VOCAB), "segments.jsonl": (
        '{"video": "1", "split": "train", "first": 0, "clips": 2, "text": "a b"}\n'
        '{"video": "2", "split": "dev", "first": 2, "clips": 1, "verb": "a", "noun": "b"}\n')},
    "word_senses": {
        **{f"{each}.{kind}": "" for kind in ("verb", "adj", "adv") for each in ("index", "data")},
        **{f"{kind}.exc": "as a\n" for kind in ("noun", "verb", "adj", "adv")},
        "index.noun": "a n 2 1 @ 2 2 00000002 00000001\nb n 2 1 @ 2 2 00000002 00000001\n",
        "data.noun": '00000001 03 n 02 a 0 b 0 000 | c d; "e a b"\n'
                     '00000002 03 n 02 a 0 b 0 000 | c; "a b as"; "c b"\n'},
    "text_to_text": {"train.tsv": _PAIRS, "dev.tsv": _PAIRS},
}  # fmt: skip


@functools.cache
def task_folder(name: str) -> Path:
    path = folder() / "task folders" / name
    path.mkdir(parents=True)
    for file, content in TASK_FOLDERS[name].items():
        (path / file).write_text(content)
    if name == "videos":
        np.save(path / "features.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    return path


# Content of an input of every layout of `data_prep.corpus.sources`, by layout.
CORPORA = {
    "chapters": "CHAPTER I\n\nA b c. D e.\n\nCHAPTER II\n\nA b c.\n",
    "articles": "Title\nA b. C d.\n\nTitle\nE a.\n",
    "wikiextractor": '<doc id="1" url="u" title="t">\nt\n\nA b c. D e.\n</doc>\n',
    "rows": '{"text": "A b. C."}\n{"text": "D e."}\n',
}


@functools.cache
def arrays(packed: bool = False) -> Path:
    """A file of arrays, as features are kept in."""
    from data_prep.jobs import array_files

    path = folder() / f"arrays{packed}.npz"
    ids = {"ids/values": np.arange(300, dtype="i2"), "ids/offsets": np.arange(9), "count": 7}
    array_files.write(path, ids | {"empty": np.zeros((0, 3), "f4")}, packed)
    return path


@functools.cache
def _classifier():
    import official_bert as ob

    config = ob.BertConfig(
        vocab_size=10, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=12, max_position_embeddings=8,
    )  # fmt: skip
    return ob.BertClassifier(ob.BertEncoder(config, seed=1), 2), ob.BertTokenizer(VOCAB)
