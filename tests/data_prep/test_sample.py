"""The embedded sample: complete, small, in the documented formats, and free of leaks."""

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from corpora import documents

from data_prep import sample
from data_prep.tasks.classification.glue import Glue
from data_prep.tasks.tagging.conll import Conll
from official_bert.common.errors import UserError


def read_tsv(task, split):
    with open(Path(sample.task_dir(task)) / f"{split}.tsv", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def read_squad(split):
    text = (Path(sample.task_dir("squad")) / f"{split}-v1.1.json").read_text("utf-8")
    articles = json.loads(text)["data"]
    return [paragraph for article in articles for paragraph in article["paragraphs"]]


def words_in_a_row(text, count=8):
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[i : i + count]) for i in range(len(words) - count + 1)}


def test_the_corpus_is_as_its_readme_says():
    corpus = list(documents(sample.corpus_files()))
    assert len(corpus) == 714 and sum(len(document) for document in corpus) > 79_000
    assert min(len(document) for document in corpus) >= 10
    # Sentences, not paragraphs: few are longer than a training sequence of 128 pieces.
    lengths = [len(sentence.split()) for document in corpus for sentence in document]
    assert 12 < sum(lengths) / len(lengths) < 25
    assert sum(length > 100 for length in lengths) < 0.003 * len(lengths)


def test_no_evaluation_text_is_in_the_corpus():
    corpus = " ".join(s for document in documents(sample.corpus_files()) for s in document)
    known = words_in_a_row(corpus)
    # A sentence of the first novel is found, so the search works.
    assert words_in_a_row(next(documents(sample.corpus_files()))[1]) & known
    for paragraph in read_squad("dev"):
        assert not words_in_a_row(paragraph["context"]) & known
    train = {paragraph["context"] for paragraph in read_squad("train")}
    assert not train & {paragraph["context"] for paragraph in read_squad("dev")}


def test_squad_answers_are_where_they_say():
    counts = {}
    for split in ("train", "dev"):
        paragraphs = read_squad(split)
        counts[split] = sum(len(paragraph["qas"]) for paragraph in paragraphs)
        for paragraph in paragraphs:
            for question in paragraph["qas"]:
                assert question["answers"]
                for answer in question["answers"]:
                    start = answer["answer_start"]
                    end = start + len(answer["text"])
                    assert paragraph["context"][start:end] == answer["text"]
    assert counts == {"train": 3000, "dev": 400}


def test_snli_and_spam():
    snli = {split: read_tsv("snli", split) for split in ("train", "dev")}
    assert (len(snli["train"]), len(snli["dev"])) == (6001, 1000)
    labels = Counter(row["label"] for row in snli["dev"])
    assert set(labels) == {"entailment", "neutral", "contradiction"}
    assert max(labels.values()) < 350
    premises = {split: {row["premise"] for row in rows} for split, rows in snli.items()}
    assert not premises["train"] & premises["dev"]
    spam = {split: read_tsv("sms_spam", split) for split in ("train", "dev")}
    assert Counter(row["label"] for row in spam["dev"]) == {"ham": 873, "spam": 127}
    assert len(spam["train"]) == 3837
    assert not {row["text"] for row in spam["train"]} & {row["text"] for row in spam["dev"]}


def test_qnli():
    options = {"train_file": "train.tsv.gz", "dev_file": "dev.tsv.gz"}
    qnli = Glue(sample.task_dir("qnli"), task="qnli", **options)
    pairs = {split: qnli.examples(split) for split in ("train", "dev")}
    labels = {split: Counter(pair.label for pair in found) for split, found in pairs.items()}
    assert labels["train"] == {"entailment": 5000, "not_entailment": 5000}
    assert labels["dev"] == {"entailment": 2702, "not_entailment": 2761}
    for text in ("text_a", "text_b"):
        train, dev = ({getattr(pair, text) for pair in pairs[split]} for split in ("train", "dev"))
        assert not train & dev
    corpus = " ".join(s for document in documents(sample.corpus_files()) for s in document)
    known = words_in_a_row(corpus)
    assert not any(words_in_a_row(pair.text_b) & known for pair in pairs["dev"])


def test_a_file_of_the_corpus_goes_by_its_name():
    [path] = sample.corpus_files("wikipedia")
    assert Path(path).name == "wikipedia.txt.gz"
    with pytest.raises(UserError, match="has no file psalms.txt.gz"):
        sample.corpus_files("psalms")


def test_names():
    names = Conll(sample.task_dir("names"), context="sentence")
    documents = {split: names.examples(split) for split in ("train", "dev")}
    sentences = {k: [s for d in found for s in d.sentences] for k, found in documents.items()}
    assert {split: len(found) for split, found in sentences.items()} == {"train": 2976, "dev": 997}
    assert not set(sentences["train"]) & set(sentences["dev"])
    assert names.labels == ["O", "B-NAME", "I-NAME"]
    for document in documents["dev"]:
        for words, tags in zip(document.sentences, document.tags, strict=True):
            capital = [w[0].isupper() and w != "I" and len(w) > 1 for w in words[1:]]
            assert [tag != "O" for tag in tags] == [False, *capital]


def test_it_is_small_and_licensed():
    folder = Path(sample.__file__).parent
    files = [p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in str(p)]
    assert sum(path.stat().st_size for path in files) < 8_000_000
    licences = (folder / "LICENSES.md").read_text("utf-8")
    tasks = [f"tasks/{name}/" for name in sample.task_names()]
    for part in ["wikipedia.txt.gz", "squad_train_passages", *tasks]:
        assert part in licences
    assert sample.task_names() == ["names", "qnli", "sms_spam", "snli", "squad"]
    with pytest.raises(UserError, match="task='mnli'; it is one of names, qnli, sms_spam"):
        sample.task_dir("mnli")
