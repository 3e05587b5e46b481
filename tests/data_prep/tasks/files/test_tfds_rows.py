"""The tasks on TFDS: its own builders, with local files in place of what they download."""

import json
import pathlib
from unittest import mock

import pytest

from data_prep.tasks import get_task
from data_prep.tasks.files import formats
from official_bert.common.errors import UserError

tfds = pytest.importorskip("tensorflow_datasets")

PARAGRAPHS = (
    ("Zürich is big.", [("q3", "What is big?", "Zürich", 0), ("q1", "Is it?", "", -1)]),
    ("A dog ran.  Home.", [("q2", "Who ran?", "dog", 2)]),
)
SENTENCES = """-DOCSTART- -X- O O

Peter NNP I-NP I-PER
lives VBZ I-VP O

Zürich NNP I-NP I-LOC
London NNP I-NP B-LOC

-DOCSTART- -X- O O

France NNP I-NP I-LOC

"""


@pytest.fixture
def downloads(monkeypatch, tmp_path):
    """Return downloads(what): makes it the answer of TFDS's next download; returns the folder of
    TFDS."""

    def answer(what) -> str:
        manager = tfds.download.DownloadManager
        for method in ("download", "download_and_extract"):
            monkeypatch.setattr(manager, method, lambda self, urls: what)
        return str(tmp_path / "tfds")

    return answer


def squad_file(version: str) -> str:
    paragraphs = []
    for context, questions in PARAGRAPHS:
        qas = []
        for id, text, answer, start in questions:
            answers = [{"text": answer, "answer_start": start}] * 2 if answer else []
            more = {"is_impossible": not answer} if version == "2.0" else {}
            if answers or version == "2.0":
                qas.append({"id": id, "question": text, "answers": answers, **more})
        paragraphs.append({"context": context, "qas": qas})
    return json.dumps({"data": [{"title": "T", "paragraphs": paragraphs}]})


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_squad_has_the_questions_of_the_files(downloads, write, tmp_path, version):
    paths = {s: write(f"{s}-v{version}.json", squad_file(version)) for s in ("train", "dev")}
    task = get_task(f"squad_v{version}", tfds_dir=downloads(paths))
    for split in paths:
        local = get_task(f"squad_v{version}", data_dir=str(tmp_path)).examples(split)
        assert len(local) == (2 if version == "1.1" else 3)
        # TFDS does not keep their order; those of a paragraph stand together.
        assert task.examples(split) == sorted(local, key=lambda e: (e.context, e.id))
    with pytest.raises(UserError, match="TFDS has no split test of squad/v.*; set data_dir to"):
        task.examples("test")


def test_conll_has_the_sentences_of_the_files(downloads, write, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(formats, "_announced", set())
    for name in ("train", "valid", "test"):
        write(f"{name}.txt", SENTENCES)
    task = get_task("conll2003", tfds_dir=downloads(pathlib.Path(tmp_path)))
    files = get_task("conll2003", data_dir=str(tmp_path), context="sentence")
    for split in task.splits:
        both = (source.examples(split) for source in (task, files))
        sentences, expected = (sorted((e.sentences, e.tags) for e in found) for found in both)
        assert sentences == expected and len(sentences) == 3
    assert task.labels == files.labels
    assert capsys.readouterr().err.count("TFDS has no documents") == 1
    few = get_task("conll2003", tfds_dir=task.tfds_dir, labels="O,B-PER,I-PER")
    with pytest.raises(UserError, match="the tag [BI]-LOC is not among the training tags"):
        few.examples("train")


def test_mrpc_is_numbered_as_its_files_are(downloads, write, tmp_path):
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    rows = [f"{i % 2}\t{i}\t{i}\tthe cat {i}\tthe dog {i}\n" for i in range(5)]
    joint = write("joint.txt", "\ufeff" + header + "".join(rows))
    dev_ids = write("dev_ids.tsv", "0\t0\n3\t3\n")
    test = write("MRPC/test.tsv", "\ufeff" + header + "".join(rows[:2]))
    write("MRPC/train.tsv", header + "".join(rows[i] for i in (1, 2, 4)))
    write("MRPC/dev.tsv", header + "".join(rows[i] for i in (0, 3)))
    copy = downloads({"dev_ids": dev_ids, "train": joint, "test": test})
    task, files = get_task("mrpc", tfds_dir=copy), get_task("mrpc", data_dir=str(tmp_path))
    for split in task.splits:
        assert task.examples(split) == files.examples(split)


@pytest.mark.parametrize("name", ["squad_v1.1", "conll2003", "rte"])
def test_tfds_that_cannot_be_had_says_what_to_do(tmp_path, monkeypatch, name):
    no_network = mock.Mock(side_effect=ConnectionError("no route to host"))
    monkeypatch.setattr(tfds, "builder", no_network)
    with pytest.raises(UserError, match="could not prepare .*no route to host.*set data_dir to"):
        get_task(name, tfds_dir=str(tmp_path)).examples("train")


@pytest.mark.parametrize("name", ["squad_v1.1", "conll2003"])
def test_named_files_are_read_without_a_folder(write, name):
    with pytest.raises(UserError, match=r"looked for mine\.txt"):
        get_task(name, train_file="mine.txt").examples("train")
