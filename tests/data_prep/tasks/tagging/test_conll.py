import collections
import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.tasks import get_task, metrics
from data_prep.tasks.featurize import featurize
from data_prep.tasks.tagging import conll_columns, conll_files
from data_prep.tasks.tagging.tagged_document import TaggedDocument
from official_bert.common.errors import UserError

TEXT = """-DOCSTART- -X- O O

Peter NNP I-NP I-PER
lives VBZ I-VP O
in IN I-PP O
North NNP I-NP I-LOC
London NNP I-NP I-LOC

Paris NNP I-NP I-LOC
London NNP I-NP B-LOC

-DOCSTART- -X- O O

France NNP I-NP I-LOC
"""


@pytest.fixture
def task(write, tmp_path):
    write("eng.train", TEXT)
    write("eng.testa", TEXT)
    return get_task("conll2003", data_dir=str(tmp_path))


def perfect(features, labels, length=64):
    """Return logits of the labelled tags; where a token has no label, of the last one."""
    rows = []
    for feature in features:
        ids = np.asarray(feature["label_ids"])
        row = np.zeros((length, len(labels)))
        row[np.arange(len(ids)), np.where(ids < 0, len(labels) - 1, ids)] = 6.0
        rows.append(row)
    return {"logits": rows}


def test_documents_sentences_and_tags(task):
    first, second = task.examples("train")
    assert first.sentences[1] == ("Paris", "London")
    assert first.tags == (("B-PER", "O", "O", "B-LOC", "I-LOC"), ("B-LOC", "B-LOC"))
    assert second.sentences == (("France",),)
    assert task.labels == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]


def test_json_lines_hold_the_same_documents(task, write, tmp_path):
    documents = task.examples("train")
    lines = [
        {"tokens": words, "ner_tags": tags, "document": document.id}
        for document in documents
        for words, tags in zip(document.sentences, document.tags, strict=True)
    ]
    lines[1]["ner_tags"] = ["S-LOC", "S-LOC"]  # BIOES, with labels in IOB2 all the same
    folder = tmp_path / "json"
    text = "".join(json.dumps(line) + "\n" for line in lines)
    for name in ("train.jsonl", "validation.jsonl.gz"):
        write(f"json/{name}", gzip.compress(text.encode()) if name.endswith("gz") else text)
    write("json/test.json", json.dumps([{"words": ["Paris"], "tags": ["S-LOC"]}] * 2))
    read = get_task("conll2003", data_dir=str(folder), dev_file="validation.jsonl.gz")
    assert read.examples("train") == read.examples("dev") == documents
    assert read.labels == task.labels
    assert [d.sentences for d in read.examples("test")] == [(("Paris",),)] * 2


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "line 1: 2 words and 1 tags"),
        ({"tokens": ["a"], "tags": [3]}, r"line 1: tags is \[3\]: --task_options.tag_names="),
        ({"tokens": ["a", ""], "tags": ["O", "O"]}, "none of them empty"),
        ({"text": "a", "tags": ["O"]}, "line 1: which columns hold.* The columns are text, tags"),
        ({"tokens": ["a"], "pos_tags": ["O"]}, "or words, and tags or ner_tags or entities"),
        ({"tokens": ["a"], "tags": ["PER"]}, "line 1: 'PER' is not an IOB tag"),
        ({"tokens": [], "tags": []}, "has no sentences"),
    ],
)
def test_json_lines_that_are_none(write, line, match):
    path = write("bad.jsonl", json.dumps(line) + "\n")
    with pytest.raises(UserError, match=match):
        conll_files.read(path)


@given(st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"]), min_size=1, max_size=12))
def test_entities_are_those_of_seqeval(tags):
    from seqeval.metrics.sequence_labeling import get_entities

    expected = [(kind, first, last + 1) for kind, first, last in get_entities(tags)]
    assert conll_columns.entities(tags) == expected
    assert conll_columns.entities(conll_columns.to_iob2(tags)) == expected


def test_scores_of_conlleval_cases():
    # Wrong type, wrong boundary, and an I- that begins an entity, as conlleval counts them.
    gold = [["B-PER", "I-PER", "O"], ["B-LOC", "O", "B-LOC"], ["B-ORG", "I-ORG", "O"]]
    predicted = [["I-PER", "I-PER", "O"], ["B-ORG", "O", "B-LOC"], ["B-ORG", "O", "O"]]
    scores = metrics.entity_scores(gold, predicted)
    assert scores["precision"] == scores["recall"] == scores["f1"] == pytest.approx(2 / 4)
    nothing = metrics.entity_scores(gold, [["O"] * 3] * 3)
    assert nothing["f1"] == nothing["precision"] == 0.0


@pytest.mark.parametrize("piece", ["first", "last"])
def test_label_on_the_first_or_last_piece_only(task, tokenizer, piece):
    one = get_task("conll2003", data_dir=task.data_dir, label_piece=piece)
    document = TaggedDocument("0", (("Berlin", "river"),), (("B-LOC", "O"),))
    (feature,) = one.features(document, tokenizer, 64)
    others = [-1] * (len(tokenizer.encode("Berlin")) - 1)
    before, behind = ([], others) if piece == "first" else (others, [])
    assert others and feature["label_ids"] == [-1, *before, 1, *behind, 0, -1]
    assert feature["word_ids"] == [-1, *before, 0, *behind, 1, -1]
    assert feature["input_ids"] == task.features(document, tokenizer, 64)[0]["input_ids"]
    # The export and the prediction of the user's texts are told.
    assert get_task("conll2003", **one.settings()).features(document, tokenizer, 64) == [feature]


@pytest.mark.parametrize(
    ("column", "labels", "tags"),
    [
        ("chunks", "O B-NP I-NP B-PP I-PP B-VP I-VP", "B-NP B-VP B-PP B-NP I-NP"),
        ("part_of_speech", "IN NNP VBZ", "NNP VBZ IN NNP NNP"),
    ],
)
def test_other_columns(task, tokenizer, tmp_path, column, labels, tags):
    task = get_task("conll2003", data_dir=str(tmp_path), column=column)
    labels, tags = labels.split(), tuple(tags.split())
    assert task.labels == labels
    examples = task.examples("dev")
    assert examples[0].tags[0] == tags
    features = featurize(task, examples, tokenizer, 64)
    predictions = task.predictions(examples, features, perfect(features, labels))
    scores = task.score(examples, predictions)
    assert tuple(scores) == task.metrics and scores[task.metrics[0]] == 1.0
    assert predictions[0]["entities"][0]["text"] == "Peter"
    predictions[0]["tags"][0][1] = labels[0]
    assert task.score(examples, predictions)["accuracy"] == pytest.approx(7 / 8)
    analysis = task.analysis(examples, predictions)
    assert analysis["per_class"][task.column.kind(tags[1])]["recall"] == 0.0
    assert len(analysis["mistakes"]) == 1
    again = get_task("conll2003", **task.settings())
    assert again.head == task.head and again.metrics == task.metrics


def test_no_break_spaces_are_part_of_words(write):
    (document,) = conll_files.read(write("a.txt", "10\u00a0000 CD I-NP O\nParis NNP I-NP I-LOC\n"))
    assert document.sentences == (("10\u00a0000", "Paris"),)


def test_words_with_white_space_are_written_a_word_a_line(task, tmp_path):
    first = {"words": [["Bob", "\n", "a\tb"]], "tags": [["B-PER", "O", "O"]]}
    second = {"words": [["x y"]], "tags": [["B-LOC"]]}
    (path,) = task.write(tmp_path, [first, second])
    one, other = conll_files.read(path)
    assert (one.sentences, one.tags) == ((("Bob", r"\n", r"a\tb"),), (("B-PER", "O", "O"),))
    assert (other.sentences, other.tags) == ((("x y",),), (("B-LOC",),))


def test_baselines_of_single_words(write, tmp_path):
    write("eng.train", "cat NN I-NP O\ncat VB I-VP O\ncat NN I-NP O\nthe DT I-NP O\n")
    write("eng.testa", "cat NN I-NP O\nthe DT I-NP O\ndog NN I-NP O\n")
    task = get_task("conll2003", data_dir=str(tmp_path), column="part_of_speech")
    examples = task.examples("dev")
    assert task.baseline(task.examples("train"), examples) == {"accuracy": 1.0}  # dog: as most


def test_a_document_is_one_sequence_and_a_sentence_another(task, write, tmp_path, tokenizer):
    (whole,) = task.features(task.examples("train")[0], tokenizer, 64)
    assert sum(label >= 0 for label in whole["label_ids"]) == 7
    single = get_task("conll2003", data_dir=str(tmp_path), context="sentence")
    assert [e.sentences[0][0] for e in single.examples("train")] == ["Peter", "Paris", "France"]


@given(
    st.lists(st.lists(st.sampled_from(["cat", "Berlin", "Zürich", "the"]), min_size=1), min_size=1),
    st.integers(3, 20),
    st.integers(0, 6),
)
def test_every_word_is_labelled_once_and_comes_back(tokenizer, sentences, length, stride):
    task = get_task("conll2003", labels=["O", "B-X", "I-X"], stride=stride)
    sentences = tuple(map(tuple, sentences))
    tags = tuple(tuple("B-X" if w[0].isupper() else "O" for w in words) for words in sentences)
    document = TaggedDocument("0", sentences, tags)
    features = featurize(task, [document], tokenizer, length)
    labelled = [w for f in features for w in f["word_ids"].tolist() if w >= 0]
    assert sorted(labelled) == list(range(sum(map(len, sentences))))
    (prediction,) = task.predictions([document], features, perfect(features, task.labels, length))
    assert prediction["tags"] == [list(line) for line in tags]
    assert prediction["words"] == [list(line) for line in sentences]


def test_a_word_is_tagged_where_it_has_most_context(tokenizer):
    task = get_task("conll2003", labels=["O", "B-X", "I-X"], stride=4)
    document = TaggedDocument("0", (("cat",) * 12,), (("O",) * 12,))
    features = task.features(document, tokenizer, 10)  # windows of 8: words 0-7 and 4-11
    words = [[w for w in feature["word_ids"] if w >= 0] for feature in features]
    assert words == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]


def test_predictions_scores_and_files(task, tokenizer, tmp_path):
    examples = task.examples("dev")
    features = featurize(task, examples, tokenizer, 64)
    predictions = task.predictions(examples, features, perfect(features, task.labels))
    assert task.score(examples, predictions)["f1"] == 1.0
    entity = predictions[0]["entities"][1]
    assert (entity["type"], entity["text"], entity["sentence"]) == ("LOC", "North London", 0)
    assert 0.9 < entity["probability"] < 1.0
    predictions[0]["tags"][1] = ["O", "B-LOC"]
    analysis = task.analysis(examples, predictions)
    assert analysis["per_class"]["LOC"]["support"] == 4
    assert analysis["mistakes"][0]["gold"] == "Paris/LOC, London/LOC"
    assert analysis["mistakes"][0]["predicted"] == "London/LOC"
    (path,) = task.write(tmp_path, predictions)
    assert conll_files.read(path)[1].tags == (("B-LOC",),)


def test_running_text_gives_entities_with_characters(tokenizer):
    task = get_task("conll2003", labels=["O", "B-LOC", "I-LOC"])
    text = "Peter lives in (North London)."
    example = task.example({"text": text})
    features = featurize(task, [example], tokenizer, 64)
    row = np.zeros((64, 3))
    words = features[0]["word_ids"].tolist()
    row[words.index(4), 1] = row[words.index(5), 2] = 9.0
    (prediction,) = task.predictions([example], features, {"logits": [row]})
    (entity,) = prediction["entities"]
    assert text[entity["start"] : entity["end"]] == "North London"
    empty = task.example({"text": "  "})
    features = featurize(task, [empty], tokenizer, 64)
    (prediction,) = task.predictions([empty], features, {"logits": [row]})
    assert prediction["entities"] == [] and prediction["tags"] == [[]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Peter NNP I-PER\nlives O\n", "line 2: 2 columns, expected 3"),
        ("Peter PER\n", "line 1: 'PER' is not an IOB tag"),
        ("Peter B-\n", "line 1: 'B-' is not an IOB tag"),
        ("Peter B-O\n", "line 1: 'B-O' is not an IOB tag"),
        ("-DOCSTART- O\n\n", "has no sentences"),
        ("", "is empty"),
        ("Peter I-PER\nCo I-ORG\n", "line 2: the tag I-ORG is not among the training tags"),
        ("Peter\n", r"line 1: 1 columns, expected 2 \(word first, entities last;"),
    ],
)
def test_errors(task, write, content, message):
    write("eng.testa", content)
    with pytest.raises(UserError, match=message):
        task.examples("dev")


def test_columns_that_are_not_there(write, tmp_path):
    write("eng.train", "Peter O I-PER\nLondon O I-LOC\n")
    chunks = get_task("conll2003", data_dir=str(tmp_path), column="chunks")
    assert chunks.labels == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]  # the third is the last
    write("eng.train", "Peter I-PER\n")
    with pytest.raises(UserError, match=r"line 1: 2 columns, expected 3 .*chunks number 3"):
        chunks.examples("train")
    write("eng.train", "Peter NNP O I-PER\n")
    with pytest.raises(UserError, match="every word .* has the tag O in the column chunks"):
        get_task("conll2003", data_dir=str(tmp_path), column="chunks").head["labels"]


def test_a_file_without_documents_is_said_once(task, write, capsys):
    task.examples("dev")
    assert "put -DOCSTART-" not in capsys.readouterr().err
    write("eng.testa", "Peter NNP I-NP I-PER\n\n" * 1001)
    assert len(task.examples("dev")) == len(task.examples("dev")) == 1
    message = capsys.readouterr().err
    assert message.count("eng.testa is one document of 1001 sentences; put -DOCSTART-") == 1


def test_words_are_asked_for_before_they_are_encoded(task, tokenizer, monkeypatch):
    examples = task.examples("train")
    expected = [task.features(example, tokenizer, 64)[0]["input_ids"] for example in examples]
    monkeypatch.setattr(tokenizer, "encode", None)  # a whole chunk's words in one call
    features = featurize(get_task("conll2003", data_dir=task.data_dir), examples, tokenizer, 64)
    assert [feature["input_ids"].tolist() for feature in features] == expected


@pytest.mark.slow
def test_real_files_and_the_published_baseline(data_dir):
    task = get_task("conll2003", data_dir=str(data_dir / "conll2003"))
    train, dev = task.examples("train"), task.examples("dev")
    assert (len(train), len(dev)) == (946, 216)
    tagged = (conll_columns.entities(tags) for document in dev for tags in document.tags)
    counts = collections.Counter(kind for entities in tagged for kind, _, _ in entities)
    assert counts == {"LOC": 1837, "MISC": 922, "ORG": 1341, "PER": 1842}
    # Tjong Kim Sang and De Meulder (2003): 78.33 / 65.23 / 71.18.
    baseline = task.baseline(train, dev)
    assert baseline["precision"] == pytest.approx(0.7833, abs=1e-3)
    assert baseline["recall"] == pytest.approx(0.6523, abs=1e-3)
    assert baseline["f1"] == pytest.approx(0.7118, abs=1e-3)


@pytest.mark.slow
def test_other_columns_of_the_real_files(data_dir):
    folder = str(data_dir / "conll2003")
    chunks = get_task("conll2003", data_dir=folder, column="chunks", context="sentence")
    train, dev = chunks.examples("train"), chunks.examples("dev")
    assert (len(train), len(dev), len(chunks.labels)) == (14041, 3250, 1 + 2 * 10)
    found = [tag for document in dev for tags in document.tags for tag in tags]
    # In the file 1,071 phrases begin with B-, behind another of their kind; the rest with I-.
    assert sum(tag[0] == "B" for tag in found) == 1071 + 24666
    assert chunks.baseline(train, dev)["f1"] == pytest.approx(0.7326, abs=1e-4)
    speech = get_task("conll2003", data_dir=folder, column="part_of_speech")
    assert len(speech.labels) == 45
    baseline = speech.baseline(speech.examples("train"), speech.examples("dev"))
    assert baseline == {"accuracy": pytest.approx(0.8975, abs=1e-4)}


def test_a_document_may_have_a_name_beside_its_mark(write):
    text = "-DOCSTART- (227508)\n\nNaloxone\tB-Entity\nreverses\tO\nit\tO\n\n" * 2
    documents = get_task("conll2003", write("train.txt", text)).examples("train")
    assert [document.sentences[0][0] for document in documents] == ["Naloxone"] * 2
