"""Corpora by their TFDS name, on small data sets written in TFDS's format."""

import functools
from unittest import mock

import pytest
from corpora import documents

from data_prep.corpus import tfds_corpora
from data_prep.sentences import split_files
from official_bert.common.errors import UserError

CHAPTER = "It was a long story, and nobody knew its end. " * 6
TOWN = (
    "Town {} is a town. It is old.\n\nHistory\n\nIt grew. Then it shrank.\n\nSee also\n\nCategory:A"
)
LEEDS = """
_START_ARTICLE_
Leeds
_START_PARAGRAPH_
Leeds is a city.
_START_SECTION_
History
_START_PARAGRAPH_
It is old._NEWLINE_It is big."""


@pytest.fixture(scope="module", autouse=True)
def prepared(tmp_path_factory):
    """Return a folder with tiny versions of wikipedia, wiki40b, pg19, another one."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    folder = tmp_path_factory.mktemp("tfds")

    def store(name, texts, config=None, version="1.0.0", field="text"):
        splits = {"train": texts, "test": texts[:1]}
        datasets = {s: tf.data.Dataset.from_tensor_slices({field: t}) for s, t in splits.items()}
        tfds.dataset_builders.store_as_tfds_dataset(
            name=name, config=config, version=version, data_dir=folder, split_datasets=datasets,
            features=tfds.features.FeaturesDict({field: tfds.features.Text()}),
            disable_shuffling=True,
        )  # fmt: skip

    store("wikipedia", [TOWN.format(number) for number in range(25)], "20230601.en")
    store("wiki40b", [LEEDS], "en", "1.3.0")
    book = f"CHAPTER I\n\n{CHAPTER}\n\nCHAPTER II\n{CHAPTER}"
    store("pg19", [book], version="0.1.1", field="book_text")
    store("my_reviews", ["Good  film.\nSee it."])
    store("my_labels", ["x"], field="label")
    patch = pytest.MonkeyPatch()
    patch.setattr(tfds, "builder", functools.partial(tfds.builder, data_dir=str(folder)))
    yield folder
    patch.undo()


def test_wikipedia():
    name = "tfds:wikipedia/20230601.en"
    found = list(tfds_corpora.documents(name))
    towns = (f"Town {number} is a town. It is old." for number in range(25))
    assert sorted(found) == sorted([town, "It grew. Then it shrank."] for town in towns)
    assert tfds_corpora.size(name) == (25, "1.0.0")
    parts = tfds_corpora.slices(name, 10)
    assert parts == [f"{name}@train[{start}:{min(start + 10, 25)}]" for start in (0, 10, 20)]
    assert [document for part in parts for document in tfds_corpora.documents(part)] == found
    middle = tfds_corpora.slices(f"{name}@train[20%:80%]", 10)
    assert middle == [f"{name}@train[5:15]", f"{name}@train[15:20]"]
    assert len(list(tfds_corpora.documents(f"{name}@test"))) == 1


def test_wiki40b_books_and_others():
    (article,) = tfds_corpora.documents("tfds:wiki40b/en")
    assert article == ["Leeds is a city.", "It is old.", "It is big."]
    assert list(tfds_corpora.documents("tfds:pg19")) == [[CHAPTER.strip()], [CHAPTER.strip()]]
    assert list(tfds_corpora.documents("tfds:my_reviews")) == [["Good film.", "See it."]]


def test_sentences_of_a_corpus(tmp_path):
    name = "tfds:wikipedia/20230601.en@train[:5]"
    counts = split_files([name, "tfds:wiki40b/en"], tmp_path / "out")
    assert counts["wikipedia-20230601.en-train-000000000.txt.gz"]["sentences"] == 20
    path = tmp_path / "out" / "wiki40b-en-train-000000000.txt.gz"
    assert list(documents(str(path))) == [["Leeds is a city.", "It is old.", "It is big."]]
    before = path.stat().st_mtime_ns
    assert split_files([name, "tfds:wiki40b/en"], tmp_path / "out") == counts
    assert path.stat().st_mtime_ns == before
    with pytest.raises(UserError, match="--text_field is of rows.*a corpus of TensorFlow Datasets"):
        split_files(name, tmp_path / "other", text_field="title")


@pytest.mark.parametrize(
    "name, message",
    [
        ("tfds:lm1b", "shuffled sentences"),
        ("tfds:no_such_corpus", "not in TensorFlow Datasets"),
        ("tfds:wiki40b/xx_none", "not in TensorFlow Datasets"),
        ("tfds:wiki40b/en@dev", "no split 'dev'; there are .*train"),
        ("tfds:my_labels", "none of the fields text, .*its fields: label"),
        ("tfds:", "name a data set"),
    ],
)
def test_errors(name, message):
    with pytest.raises(UserError, match=message):
        list(tfds_corpora.documents(name))


def test_data_that_cannot_be_prepared(monkeypatch):
    import tensorflow_datasets as tfds

    offline = mock.Mock(side_effect=ConnectionError("no network"))
    monkeypatch.setattr(tfds.core.DatasetBuilder, "download_and_prepare", offline)
    with pytest.raises(UserError, match=r"could not be prepared: ConnectionError: no network"):
        tfds_corpora.slices("tfds:wiki40b/de")
