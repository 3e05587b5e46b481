"""Entities by characters, as annotation tools export them."""

import json

import pytest

from data_prep.tasks import get_task
from official_bert.common.errors import UserError

TEXT = "Mira Okada visits Oslo."
TUPLES = [[0, 10, "PER"], [18, 22, "LOC"]]
OBJECTS = [{"start": 0, "end": 10, "label": "PER"}, {"start": 18, "end": 22, "label": "LOC"}]
OFFSETS = [{"id": 1, "label": k, "start_offset": s, "end_offset": e} for s, e, k in TUPLES]
STUDIO = [{"start": s, "end": e, "text": TEXT[s:e], "labels": [k]} for s, e, k in TUPLES]
RESULT = [{"value": value, "type": "labels"} for value in STUDIO]
TYPES = [{"start": e["start"], "end": e["end"], "type": e["label"]} for e in OBJECTS]
GROUPS = [{"start": s, "end": e, "entity_group": k, "word": TEXT[s:e]} for s, e, k in TUPLES]
TOKENS = [{"text": "Mira", "start": 0, "end": 4, "id": 0}]
ROWS = {
    "doccano": {"id": 0, "text": TEXT, "label": TUPLES},
    "doccano, labels": {"text": TEXT, "labels": TUPLES},
    "doccano, entities": {"id": 0, "text": TEXT, "entities": OFFSETS, "relations": []},
    "Prodigy": {"text": TEXT, "tokens": TOKENS, "spans": OBJECTS, "answer": "accept"},
    "spaCy, a Doc": {"text": TEXT, "ents": OBJECTS, "sents": [], "tokens": TOKENS},
    "spaCy": [TEXT, {"entities": TUPLES}],
    "one of this project's": {"text": TEXT, "entities": TYPES},
    "a pipeline of transformers": {"text": TEXT, "entities": GROUPS},
    "Label Studio": {"data": {"text": TEXT}, "annotations": [{"result": RESULT}]},
    "Label Studio, other field": {
        "data": {"id": 3, "review": TEXT},
        "annotations": [{"result": [], "was_cancelled": True}, {"result": RESULT}],
    },
    "Label Studio, small": {"text": TEXT, "label": STUDIO, "annotator": 1},
}
TAGS = ("B-PER", "I-PER", "O", "B-LOC", "O")


def read(write, content, name="a.json"):
    lines = "\n".join(map(json.dumps, content)) if name == "a.jsonl" else json.dumps(content)
    return get_task("conll2003", write(name, lines)).examples("train")


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_every_tool(write, kind, name):
    for document in read(write, [ROWS[kind]] * 2, name):
        assert document.sentences == (("Mira", "Okada", "visits", "Oslo", "."),)
        assert document.tags == (TAGS,)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "#FORMAT=WebAnno TSV 3.3\n\n#Text=A\n1-1\t0-1\tA\tPER\n", "INCEpTION's .*TSV"),
        ("a.json", '{\n "%TYPES": {},\n "%FEATURE_STRUCTURES": []}', "UIMA CAS as JSON"),
        ("a.xmi", '<?xml version="1.0"?>\n<xmi:XMI/>\n', "XML, as UIMA's"),
        ("a.ann", "T1\tPER 0 4\tMira\n", "brat's"),
        ("a.json", '[{"id": 0, "paragraphs": []}]', "a tool's own JSON"),
        ("a.jsonl", '{"doc_key": "a", "sentences": [["A"]], "ner": [[]]}', "a tool's own JSON"),
    ],
)
def test_other_forms_of_tools_are_named(write, name, content, message):
    with pytest.raises(UserError, match=f"{message}.*; export it as CoNLL 2003"):
        get_task("conll2003", write(name, content)).examples("train")


def test_a_tool_that_lists_classes(write):
    found = read(write, {"classes": ["PER"], "annotations": [ROWS["spaCy"], None]})
    assert [document.tags for document in found] == [(TAGS,)]


@pytest.mark.parametrize(
    ("entities", "tags"),
    [
        ([[1, 8, "PER"]], ("B-PER", "I-PER", "O", "O", "O")),  # within words
        ([[0, 4, "A b"], [5, 10, "A b"]], ("B-A b", "B-A b", "O", "O", "O")),
        ([[4, 6, "X"]], ("O", "B-X", "O", "O", "O")),  # with a blank
        ([[18, 23, "X"]], ("O", "O", "O", "B-X", "I-X")),
        ([[18, 22, "X"], [0, 4, "Y"]], ("B-Y", "O", "O", "B-X", "O")),
        ([], ("O",) * 5),
        (None, ("O",) * 5),
    ],
)
def test_words_are_tagged_by_overlap(write, entities, tags):
    rows = [{"text": TEXT, "label": entities}, {"text": "a", "label": [[0, 1, "PER"]]}]
    first, _ = read(write, rows)
    assert first.tags == (tags,)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": TEXT, "label": [[0, 10, "A"], [5, 8, "B"]]}, "object 1: .* shares a word"),
        ({"text": TEXT, "label": [[4, 5, "A"]]}, "has no word; leave it out"),
        ({"text": TEXT, "label": [[0, 99, "A"]]}, "not an entity .* of a text of 23 characters"),
        ({"text": TEXT, "label": [[3, 3, "A"]]}, "not an entity"),
        ({"text": TEXT, "label": [[-1, 3, "A"]]}, "not an entity"),
        ({"text": TEXT, "label": [[0, 3]]}, "not an entity"),
        ({"text": TEXT, "label": [["0", 3, "A"]]}, "not an entity"),
        ({"text": TEXT, "label": "positive"}, "label must be a list"),
        ({"text": 3, "label": []}, "text must be a text, not 3"),
        ({"text": TEXT, "label": [STUDIO[0] | {"start": 1}]}, 'is "Mira Okada", and its charac'),
        ({"data": {"text": TEXT}, "annotations": [{"result": []}] * 2}, "2 annotations of one"),
        ({"data": {"n": 3}, "annotations": [{"result": []}]}, "text must be a text"),
        ({"data": {"text": TEXT}, "annotations": []}, "a.json has no sentences"),
        ({"title": TEXT}, "words and their tags.*or text with entities by characters"),
    ],
)
def test_what_cannot_be_read_is_named(write, row, message):
    with pytest.raises(UserError, match=message):
        read(write, [row])


@pytest.mark.parametrize("name", ["a.txt", "a.json"])
def test_tags_without_sentence_breaks_are_told(write, capsys, name):
    rows = [{"tokens": ["a"] * 300, "tags": [tag] * 300} for tag in ("O", "B-X")]
    text = "a B-X\n" * 300 if name == "a.txt" else json.dumps(rows)
    get_task("conll2003", write(name, text)).examples("train")
    told = "300 words in 1 sentences" if name == "a.txt" else "600 words in 2 sentences"
    assert f"{told}; a blank line" in capsys.readouterr().err


def test_rejected_rows_are_counted(write, capsys):
    rows = [ROWS["Prodigy"], ROWS["Prodigy"] | {"answer": "reject"}]
    assert len(read(write, rows, "a.jsonl")) == 1
    assert "1 rows not accepted or not annotated left out" in capsys.readouterr().err
