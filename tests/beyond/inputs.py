"""Inputs of guests, for the damage of `tests.damage`."""

import functools
from pathlib import Path

import numpy as np

from experiments.beyond.byte_pair.files import write_parts
from official_bert.checkpoints.hugging_face import huggingface_tokenizer
from tests.beyond.successor_tokenizers import byte_pairs, sentence_piece_model, unigram_model
from tests.tiny_inputs import VOCAB, Input, files, read_vocabulary


def inputs() -> dict[str, Input]:
    """Return {label: Input} of what guests read."""
    part = functools.partial
    rows = {
        "word vectors": Input(
            files(**{"vectors.txt": "the 0.1 -2 3e-1\ncat 1 2 3\ndog 0 0 1\n"}),
            _read_vectors,
            halves=True,
        )
    }
    for name in TASK_FOLDERS:
        names = "*.noun *.exc" if name == "word_senses" else "*.jsonl *.tsv *.npy"
        make, read = part(_make_task_folder, name), part(_read_task_folder, name)
        rows[name] = Input(make, read, names)
    rows["XLM-R's sentencepiece.bpe.model"] = Input(_make_unigrams, _read_unigrams, "*.model")
    for name in ("tokenizer.json", "vocab.json", "spiece.model"):
        make, read = part(_make_vocabulary, name), part(read_vocabulary, name)
        rows[f"guest's {name}"] = Input(make, read, slow=name == "spiece.model")
    return rows


def _make_vocabulary(name: str, folder: Path) -> None:
    tokenizer = byte_pairs(["Ġthe", "dog"])
    if name == "tokenizer.json":
        tokenizer.write(folder)
    elif name == "vocab.json":
        write_parts(folder, tokenizer.vocab, tokenizer.merges)
    else:
        (folder / name).write_bytes(sentence_piece_model())


def _make_unigrams(folder: Path) -> None:
    (folder / "sentencepiece.bpe.model").write_bytes(unigram_model())


def _read_unigrams(folder: Path) -> list[int]:
    tokenizer = huggingface_tokenizer.read(folder, kind="unigram")
    return tokenizer.encode("the dog is é a b \U0001f600")


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
    "sentence_vectors": {
        "train.tsv": "anchor\tpositive\tnegative\na b\tc d\te\ne\tb a\t\n",
        "dev.tsv": "sentence1\tsentence2\tscore\na b\tc d\t0.5\ne\tb a\t1\n"},
    "text_to_text": {"train.tsv": _PAIRS, "dev.tsv": _PAIRS},
}  # fmt: skip


def _make_task_folder(name: str, folder: Path) -> None:
    files(**TASK_FOLDERS[name])(folder)
    if name == "videos":
        np.save(folder / "features.npy", np.arange(6, dtype=np.float32).reshape(3, 2))


def _read_task_folder(name: str, folder: Path) -> list[str]:
    from data_prep.tasks import get_task

    task = get_task(name, str(folder))
    train, dev = task.examples("train"), task.examples("dev")
    assert isinstance(task.head.get("labels", []), list)
    if train and dev and name == "visits":
        task.baseline(train, dev)
    return [*map(str, [*train, *dev])]


def _read_vectors(folder: Path) -> tuple[list[str], bytes]:
    from experiments.beyond.words.vectors import read_vectors

    words, vectors = read_vectors(folder / "vectors.txt")
    return words, vectors.tobytes()
