"""Files with a token a line, as shared tasks and their relatives have them."""

import json

import pytest

from data_prep.tasks import get_task
from data_prep.tasks.tagging import conll_files
from data_prep.tasks.tagging.conll_columns import COLUMNS
from data_prep.tasks.tagging.conll_files import TagColumns
from official_bert.common.errors import UserError

MULTICONER = """# id 00aa-11 domain=en
the _ _ O
river _ _ O
rhine _ _ B-Station

# id 00aa-12 domain=en
anna _ _ B-Artist
sings _ _ O
"""
GERMEVAL = """#\thttp://de.example.org/wiki/Manfred_Korfmann [2009-10-17]
1\tAufgrund\tO\tO
2\tManfred\tB-PER\tO
3\tKorfmann\tI-PER\tB-LOC

#\thttp://de.example.org/wiki/Bonn [2010-01-02]
1\tBonn\tB-LOC\tO
"""
CONLL_U = """# newdoc id = a
# sent_id = a-1
# text = Vámonos al mar
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\t_
5.1\tfue\t_\tVERB\t_\t_\t_\t_\t0:x\t_

# newdoc id = b
# sent_id = b-1
1\t10 000\t10 000\tNUM\t_\t_\t0\troot\t_\t_
2\t#\t#\tSYM\t_\t_\t1\tx\t_\t_
"""


def read(path, column="entities", **options):
    return conll_files.read(path, layout=TagColumns(COLUMNS[column], **options))


def test_comments_before_a_sentence_are_no_words(write):
    (document,) = read(write("a.txt", MULTICONER))
    assert document.sentences == (("the", "river", "rhine"), ("anna", "sings"))
    assert document.tags == (("O", "O", "B-Station"), ("B-Artist", "O"))


def test_a_hash_is_a_word_where_it_has_a_tag(write):
    (document,) = read(write("a.txt", "# O\nrust O\n\n#Paris B-LOC\n# O\n"))
    assert document.sentences == (("#", "rust"), ("#Paris", "#"))


def test_several_columns_of_tags_are_asked_about(write):
    path = write("a.tsv", GERMEVAL)
    with pytest.raises(UserError, match="one of 3, 4.*--task_options.tag_column="):
        read(path)
    (outer,), (inner,) = read(path, tag_column="3"), read(path, tag_column="-1")
    assert outer.sentences == (("Aufgrund", "Manfred", "Korfmann"), ("Bonn",))
    assert outer.tags == (("O", "B-PER", "I-PER"), ("B-LOC",))
    assert inner.tags == (("O", "O", "B-LOC"), ("O",))
    task = get_task("conll2003", path, tag_column=3)
    assert task.settings()["tag_column"] == "3" and "B-PER" in task.labels


def test_conll_u(write):
    one, two = read(write("a.conllu", CONLL_U), "part_of_speech")
    assert one.sentences == (("Vamos", "nos", "a", "el", "mar"),)
    assert one.tags == (("VERB", "PRON", "ADP", "DET", "NOUN"),)
    assert two.sentences == (("10 000", "#"),) and two.tags == (("NUM", "SYM"),)


@pytest.mark.parametrize(
    ("content", "words", "tags"),
    [  # of German CoNLL-2003, without entities, with a header, numbered, ...
        ("Haus Haus NN I-NC O\nin in APPR B-PC O\nBonn Bonn NE I-PC I-LOC\n", 3, "O O B-LOC"),
        ("it PRP I-NP O\nis VBZ I-VP O\nup RB I-ADVP O\n", 3, "O O O"),
        ("token\ttag\nBonn\tB-LOC\nist\tO\n", 2, "B-LOC O"),
        ("1 Bonn B-LOC x\n2 ist O y\n", 2, "B-LOC O"),
        ("1 O\n2 B-NUM\n", 2, "O B-NUM"),  # words that are numbers
        ("Bonn B-LOC extra\nist O more\n", 2, "B-LOC O"),  # tags in the middle
        ("Bonn\tB-LOC\t\nist\tO\n", 2, "B-LOC O"),  # a tab at the end
        ("9" * 5000 + " O\n2 B-NUM\n", 2, "O B-NUM"),
        # Schemes of letters.
        ("李 B-NAME\n小 M-NAME\n红 E-NAME\n去 O\n京 S-LOC\n", 5, "B-NAME I-NAME I-NAME O B-LOC"),
        ("a B-X\nb I-X\nc E-X\nd S-X\ne O\n", 5, "B-X I-X I-X B-X O"),
        ("a I-X\nb I-X\nc B-X\nd O\ne I-Y\n", 5, "B-X I-X B-X O B-Y"),
        ("a B-X\nb L-X\nc U-X\nd O\ne B-Y\n", 5, "B-X I-X B-X O B-Y"),
        ("a I-X\nb I-X\nc O\nd I-Y\ne I-X\n", 5, "B-X I-X O B-Y B-X"),
    ],
)
def test_where_the_tags_stand_and_how_they_are_written(write, content, words, tags):
    path = write("a.txt", content)
    (document,) = read(path)
    assert document.tags == (tuple(tags.split()),) and len(document.sentences[0]) == words
    assert asked(path)[1] == [(document.sentences, 1)]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a b c d e\n", {"column": "part_of_speech"}, "one of 2, 3, 4, 5"),
        ("a O\n", {"tag_column": "5"}, "tag_column=5; its columns are 1 to 2"),
        ("a O\n", {"word_column": "x"}, "word_column=x; its columns are 1 to 2"),
        ("a\tO\n\tO\n", {}, "line 2: the word is empty"),
        ("1\ta\tO\n2\tb\n", {}, r"line 2: 2 columns, expected 3 \(word number 2, entities last"),
        ("# O\nof O\n", {"column": "chunks"}, r"line 1: 2 columns, expected 3 .*, chunks"),
        ("tumour\tB\nof\tO\n", {}, "the tag 'B' names no kind of phrase; write it as B-KIND"),
        ("Sentence #\tWord\tTag\ns 1\tBonn\tB-LOC\n", {}, "blank line between sentences"),
    ],
)
def test_what_is_in_doubt_is_refused(write, content, options, message):
    with pytest.raises(UserError, match=message):
        read(write("a.txt", content), **options)


def test_numbers_of_tags_have_names(write):
    rows = [{"tokens": ["Anna", "sings"], "ner_tags": [1, 0]}] * 2
    path = write("a.jsonl", "\n".join(map(json.dumps, rows)))
    with pytest.raises(UserError, match=r"ner_tags is \[1, 0\]: --task_options.tag_names="):
        get_task("conll2003", path).examples("train")
    named = get_task("conll2003", path, labels="O,B-PER,I-PER")
    assert named.examples("train")[0].tags == (("B-PER", "O"),)
    bioes = get_task("conll2003", path, labels="O,S-PER,B-PER,I-PER,E-PER")
    assert bioes.examples("train")[0].tags == (("B-PER", "O"),)
    assert bioes.labels == ["O", "B-PER", "I-PER"]
    again = get_task("conll2003", **bioes.settings(), train_file=path)
    assert again.labels == bioes.labels and again.examples("train") == bioes.examples("train")
    texts = write("b.txt", "Anna B-PER\nsings O\n")
    found = get_task("conll2003", texts)  # its labels are sorted, and name no numbers
    again = get_task("conll2003", **found.settings(), train_file=path)
    with pytest.raises(UserError, match="says what the numbers stand for"):
        again.examples("train")
    over = get_task("conll2003", path, labels="O,B-PER,I-PER", tag_names="O")
    with pytest.raises(UserError, match="holds the number 1, and the tags are 1: 0 O to 0 O"):
        over.examples("train")


def test_two_fields_of_tags_are_asked_about(write):
    row = {"tokens": ["Anna"], "ner_tags": ["B-PER"], "tags": ["B-X"], "fine": ["B-Y"]}
    path = write("a.jsonl", json.dumps(row))
    with pytest.raises(UserError, match="tags or ner_tags.*--task_options.tag_column="):
        read(path)
    assert read(path, tag_column="fine")[0].tags == (("B-Y",),)


TAGGER = {"labels": "O,B-PER,I-PER,B-LOC,I-LOC"}


def asked(path, **options):
    """Return the sentences of each example, and how many rows it answers."""
    inputs = get_task("conll2003", **TAGGER, **options).inputs(path)
    return inputs, [(example.sentences, len(rows)) for rows, example in inputs.rows]


def test_files_of_tokens_are_answered_line_for_line(write):
    path = write("a.txt", "Anna B-PER\nsings O\n\nOslo B-LOC\n\n-DOCSTART- O\n\nBonn B-LOC\n")
    inputs, found = asked(path)
    assert found == [((("Anna", "sings"), ("Oslo",)), 2), ((("Bonn",),), 1)]
    assert asked(path, context="sentence")[1][0] == ((("Anna", "sings"),), 1)
    lines = inputs.source.with_tags(["B-PER", "O", "O", "B-LOC"])
    whole = "Anna B-PER B-PER|sings O O||Oslo B-LOC O||-DOCSTART- O O||Bonn B-LOC B-LOC"
    assert lines == whole.split("|")


@pytest.mark.parametrize("content", [MULTICONER, "# no words here\na b c O\nd e f B-X\n"])
def test_comments_are_no_words_to_answer_either(write, content):
    path = write("a.txt", content)
    trained = [document.sentences for document in read(path)]
    assert [sentences for sentences, _ in asked(path)[1]] == trained


def test_a_line_that_lacks_its_tag_makes_no_text_of_the_others(write):
    with pytest.raises(UserError, match="line 2: 1 columns, expected 2"):
        asked(write("a.txt", "Anna B-PER\nsings\nOslo B-LOC\n"))


def test_a_column_with_a_number_is_one_of_lines(write):
    path = write("a.txt", "B-PER\tAnna\nO\tsings\n")
    assert asked(path, word_column="2", tag_column="1")[1] == [((("Anna", "sings"),), 1)]


def test_a_header_names_the_answers_too(write):
    inputs, _ = asked(write("a.txt", "word\ttag\nAnna\tB-PER\n"))
    assert inputs.source.with_tags(["O"]) == ["word\ttag\tpredicted", "Anna\tB-PER\tO"]


def test_rows_without_words_are_counted(write, capsys):
    rows = [{"tokens": [], "tags": []}, {"tokens": ["Anna"], "tags": ["B-PER"]}]
    assert len(read(write("a.jsonl", "\n".join(map(json.dumps, rows))))) == 1
    assert "1 rows without words left out" in capsys.readouterr().err


def test_ranges_and_comments_keep_their_lines(write):
    inputs, found = asked(write("a.conllu", CONLL_U))
    assert [words for document, _ in found for words in document][1] == ("10 000", "#")
    lines = inputs.source.with_tags(list("abcdefg"))
    assert len(lines) == CONLL_U.count("\n")
    assert lines[3].endswith("\t_") and lines[4].endswith("\ta") and lines[0].startswith("# newdoc")


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("Anna sings in Oslo\n\nBonn\n", 3),
        ("Peter lives here\nAnna lives there\n", 2),
        ("Anna\n", 1),
        ("Blood of type O\n", 1),
        ("Viva O Brasil\n", 1),
        ("text\tlabel\n" + "a film\tgood\n" * 6, 6),
    ],
)
def test_running_text_is_answered_text_for_text(write, content, texts):
    task = get_task("conll2003", **TAGGER)
    assert len(list(task.inputs(write("a.txt", content)).rows)) == texts


@pytest.mark.parametrize("content", ["Anna\nsings\n\nOslo\n", "a b\n" * 6])
def test_words_or_texts_are_asked_about(write, content):
    task, path = get_task("conll2003", **TAGGER), write("a.txt", content)
    with pytest.raises(UserError, match="--format=conll.*--format=lines"):
        task.inputs(path)
    assert len(list(task.inputs(path, "lines").rows)) == content.count("\n")
    assert task.inputs(path, "conll").source.documents


def test_rows_of_one_document_are_read_together(write):
    rows = [
        {"tokens": ["Anna"], "document": 1}, {"tokens": [], "document": 1},
        {"tokens": ["sings"], "document": 1}, {"tokens": ["Oslo"]},
        {"tokens": [["a"], ["b", "c"]]},
    ]  # fmt: skip
    path = write("a.jsonl", "\n".join(map(json.dumps, rows)))
    task = get_task("conll2003", **TAGGER)
    groups = list(task.inputs(path).rows)
    assert [len(rows) for rows, _ in groups] == [3, 1, 1]
    assert groups[0][1].sentences == (("Anna",), ("sings",))
    phrase = {"type": "PER", "sentence": 1, "first": 0}
    whole = {"words": [["Anna"], ["sings"]], "tags": [["O"], ["B-PER"]], "entities": [phrase]}
    answers = task.answers(groups[0][0], {**whole, "probabilities": [[1.0], [0.5]]})
    assert [answer["tags"] for answer in answers] == [[["O"]], [], [["B-PER"]]]
    assert [answer["entities"] for answer in answers] == [[], [], [{**phrase, "sentence": 0}]]
