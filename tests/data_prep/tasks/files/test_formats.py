"""Formats of strangers' files, each made after a public report or a tool's own output."""

import gzip
import io
import json
import sys

import pytest

from data_prep.tasks import get_task
from data_prep.tasks.files import formats
from official_bert.common.errors import UserError

ROWS = [
    {"text": "good, film", "label": "pos"},
    {"text": 'a "bad"\nfilm', "label": "neg"},
    {"text": "fine", "label": "pos"},
]


def rows_of(path, wanted=(("text",),), **options):
    table = formats.detect_format(str(path), wanted, **options)
    return table, [row for _, row in table.rows()]


def columns_of(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


SHAPES = {
    "an array": json.dumps(ROWS),
    "an indented array": json.dumps(ROWS, indent=2),
    "data": json.dumps({"version": "1", "data": ROWS}),
    "columns": json.dumps(columns_of(ROWS)),
    "pandas columns": json.dumps(
        {name: dict(zip("012", values, strict=True)) for name, values in columns_of(ROWS).items()}
    ),
    "pandas index": json.dumps(dict(zip("012", ROWS, strict=True))),
    "pandas split": json.dumps(
        {"columns": ["text", "label"], "index": [0, 1, 2], "data": [[*r.values()] for r in ROWS]}
    ),
    "lines": "\n".join(map(json.dumps, ROWS)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["a.json", "a.txt", "a"])
def test_every_shape_of_json(write, shape, name):
    _, rows = rows_of(write(name, SHAPES[shape]))
    assert rows == ROWS


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.tsv"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_the_one_that_shows_the_wanted_columns(write, name, delimiter):
    content = f'text{delimiter}label\n"one, two; three"{delimiter}x\n"""a"" b"{delimiter}y\n'
    table, rows = rows_of(write(name, content), also=("label",))
    assert [row["text"] for row in rows] == ["one, two; three", '"a" b']
    assert table.header and table.delimiter == delimiter


def test_a_crlf_file_and_a_packed_one(write):
    assert rows_of(write("a.csv", "text,label\r\nx,1\r\n"))[1] == [{"text": "x", "label": "1"}]
    packed = write("a.csv.gz", gzip.compress(b"text,label\nx,1\n"))
    assert rows_of(packed)[1] == [{"text": "x", "label": "1"}]
    assert rows_of(write("b.tsv", "text\tlabel\nx\t1\n".encode("utf-16")))[1][0]["label"] == "1"


def test_columns_without_a_name_get_a_number(write):
    table, rows = rows_of(write("a.csv", 'v1,v2,,\nham,"hi, you",,\n'), (("v2",),))
    assert rows == [{"v1": "ham", "v2": "hi, you", "column 3": "", "column 4": ""}]
    assert rows_of(write("b.csv", ",text\n0,hi\n"))[1] == [{"": "0", "text": "hi"}]


def test_the_header_of_a_second_file_is_no_row(write):
    with pytest.raises(UserError, match="line 3: the header once more"):
        rows_of(write("a.csv", "text,label\nx,1\ntext,label\ny,0\n"))
    assert rows_of(write("b.csv", "text\ntext\n"))[1] == [{"text": "text"}]


def test_a_file_without_header(write):
    path = write("a.tsv", "ham\thello\nspam\tbuy\n")
    with pytest.raises(UserError, match=r"columns are ham, hello.*--task_options.columns=label"):
        get_task("text_classification", path).head  # noqa: B018
    task = get_task("text_classification", path, columns="label,text")
    found = [(example.text_a, example.label) for example in task.examples("train")]
    assert found == [("hello", "ham"), ("buy", "spam")]
    again = get_task("text_classification", **task.settings())
    assert [example.text_a for _, example in again.inputs(path).rows] == ["hello", "buy"]
    headed = write("b.tsv", "text\tlabel\nhello\tham\n")  # the names in their place
    assert [example.text_a for _, example in again.inputs(headed).rows] == ["hello"]
    plain = write("c.txt", "hello\nbuy, now\n")
    assert [example.text_a for _, example in again.inputs(plain).rows] == ["hello", "buy, now"]
    plain = write("d.tsv", "hello you\nbuy, now\n")  # a tab may come to stand in some
    assert [example.text_a for _, example in again.inputs(plain).rows] == ["hello you", "buy, now"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "mood\tmessage\nx\ty\n", r"no column text; the columns are mood, message"),
        ("a.csv", "Nr;Urteil;Text\n1;gut;a, b\n", "no column text; .*are Nr, Urteil, Text"),
        ("a.csv", "good film\nbad film\n", r"no column text; .*--format=lines takes every line"),
        ("a.txt", "good\tpos\nbad\tneg\n", r"no column text; the columns are good, pos"),
        ("a.tsv", "message\ngood film\nbad film\n", r"are message.*--format=lines takes every"),
        ("a.txt", "text\rone\rtwo\r", "lines end with carriage returns alone"),
        ("a.jsonl", '{"message": "x"}\n', r"a.jsonl line 1: no column text.*are message"),
        ("a.json", '{"train": [{"text": "x"}], "test": [{"text": "y"}]}', "holds train, test"),
        ("a.json", '{"text": ["x"], "label": []}', r"different numbers of rows \(text 1, label 0"),
        ("a.tsv", "text\tlabel\tlabel\nx\t1\t2\n", "header: label is there twice"),
        ("a.csv", b"version https://git-lfs.github.com/spec/v1\noid x\n", "a pointer of Git LFS"),
        ("a.txt", b"%PDF-1.4\n", "a PDF; make text of it first"),
        ("a.arrow", b"ARROW1\0\0", "an Arrow file; write it as Parquet"),
        ("a.xlsx", b"PK\x03\x04abc", "archive of files.*spreadsheet: save it as CSV"),
    ],
)
def test_what_is_in_doubt_is_refused(write, name, content, message):
    task = get_task("text_classification", text_column="text", labels="pos,neg")
    with pytest.raises(UserError, match=message):
        list(task.inputs(write(name, content)).rows)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "sep=;\ntext;label\nx;1\n", r'a.csv: line 2 names.*Excel.s "sep=;"; delete'),
        ("a.csv", "sep=,\ntext,label\nx,1\n", "line 2 names the columns"),
        ("a.csv", '"sep=;"\ntext;label\nx;1\n', "line 2 names.*Excel's"),
        ("a.tsv", "sep=\t\ntext\tlabel\nx\t1\n", "line 2 names the columns"),
        ("a.csv", "Reviews;;\n\nid;text;label\n1;x;1\n", 'line 3 names.*no header: "Reviews'),
        ("a.csv", "# of 2024-01-02\n# by hand\ntext,label\nx,1\n", "delete what is above line 3"),
        ("a.txt", "Umfrage\ntext|label\nx|1\n", "line 2 names the columns"),
    ],
)
def test_lines_above_the_header_are_named(write, name, content, message):
    path = write(name, content)
    with pytest.raises(UserError, match=message):
        get_task("text_classification", path, labels="1,2").examples("train")
    if name != "a.txt":  # which may be plain lines
        with pytest.raises(UserError, match=message):
            list(get_task("text_classification", text_column="text").inputs(path).rows)


def test_excels_line_is_named_where_columns_are_said(write):
    path = write("a.csv", "sep=;\n1;x\n2;y\n")
    with pytest.raises(UserError, match='a.csv line 1 is Excel.s "sep=;"; delete it'):
        get_task("text_classification", path, columns="label,text").examples("train")


@pytest.mark.parametrize("done", ["annotations", "predictions", "completions"])
@pytest.mark.parametrize("task", ["text_classification", "squad_v1.1"])
def test_label_studios_json_is_named(write, task, done):
    path = write("a.json", json.dumps([{"id": 1, "data": {"text": "x"}, done: []}]))
    with pytest.raises(UserError, match="it is Label Studio's JSON: export JSON-MIN or CSV"):
        get_task(task, path).examples("train")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<!DOCTYPE html>\n<html>Sign in</html>\n", "a.csv is a web page"),
        ('<?xml version="1.0"?>\n<rows/>\n', "a.csv is XML"),
        ("<table><tr><td>text</td></tr></table>\n", "a.csv is a web page"),
        ("__label__1 a text\n__label__2 b\n", "a.csv is fastText's"),
    ],
)
def test_what_is_no_table_is_named(write, content, message):
    with pytest.raises(UserError, match=message):
        get_task("text_classification", write("a.csv", content)).examples("train")
    task = get_task("text_classification", text_column="text")
    with pytest.raises(UserError, match=f"{message}.*--format=lines takes"):
        list(task.inputs(write("a.csv", content)).rows)
    assert list(task.inputs(write("a.csv", content), "lines").rows)


def test_long_lists_of_columns_are_shortened(write):
    names = [f"column{number}" for number in range(10_000)]
    for row in (",".join(names) + ",x\n", "x\n"):
        path = write("a.csv", ",".join([*names, "text"]) + "\n" + row + "y\n")
        for options in ({}, {"label_column": "column0"}):
            with pytest.raises(UserError) as raised:
                get_task("text_classification", path, **options).examples("train")
            assert len(str(raised.value)) < 1000


def test_what_the_user_says_counts(write):
    task = get_task("text_classification", text_column="text", labels="pos,neg")
    path = write("a.csv", "text,label\ngood film\n")
    texts = [e.text_a for _, e in task.inputs(path, format="lines").rows]
    assert texts == ["text,label", "good film"]
    with pytest.raises(UserError, match="--format=jsonl, but its first line is not JSON"):
        task.inputs(path, format="jsonl")
    with pytest.raises(UserError, match="--format=parquet, but it is text"):
        task.inputs(path, format="parquet")


def test_it_is_said_in_one_line_once(write, capsys):
    path = write("a.csv", "text;label\nx;1\n")
    rows_of(path)
    rows_of(path)
    assert capsys.readouterr().err == f"{path}: CSV with ';', a header; read: text\n"
    content = "id,text,body,title,label\n1,x,y,t,z\n"
    rows_of(write("b.csv", content), also=("label",), optional=("title", "date"))
    assert capsys.readouterr().err.endswith("read: text, label, title; ignored: body\n")
    many = ",".join(f"c{i}" for i in range(10))
    rows_of(write("c.csv", f"text,{many}\n{many},x\n"), also=("c0",), optional=())
    told = "read: text, c0; ignored: c1, c2, c3, c4, c5, c6, c7, c8 and 1 more\n"
    assert capsys.readouterr().err.endswith(told)


def test_standard_input_is_looked_at_too(monkeypatch):
    def stream(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return rows_of("-", texts=True)[1]

    assert stream(b"text\tlabel\nx\t1\n") == [{"text": "x", "label": "1"}]
    assert stream(b"x\ny\n") == [{"text": "x"}, {"text": "y"}]
    assert stream(json.dumps(ROWS, indent=1).encode()) == ROWS
    many = "".join(f"line {number}\n" for number in range(1000))
    assert len(stream(many.encode())) == 1000
    for content, message in (
        ("x\n".encode("utf-16"), "standard input is UTF-16"),
        (gzip.compress(b"x\n", mtime=0), "standard input is gzip"),
        (b"PAR1x", "standard input is a Parquet file"),
        (b"", "standard input is empty"),
    ):
        with pytest.raises(UserError, match=message):
            stream(content)


@pytest.fixture
def parquet(tmp_path):
    """Write rows as Hugging Face's `datasets` does, with the names of classes."""
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
    pytest.importorskip("pyarrow.parquet")

    def write(name, rows, **features):
        table = pyarrow.Table.from_pylist(rows)
        told = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": told})
        pyarrow.parquet.write_table(table, tmp_path / name)
        return str(tmp_path / name)

    return write


def test_parquet_with_names_of_classes(parquet):
    rows = [{"text": "good", "label": 1}, {"text": "bad", "label": 0}, {"text": "ok", "label": 1}]
    path = parquet("a.parquet", rows, label={"names": ["neg", "pos"], "_type": "ClassLabel"})
    task = get_task("text_classification", path)
    assert [example.label for example in task.examples("train")] == ["pos", "neg", "pos"]
    assert task.settings()["label_names"] == []
    tags = [{"tokens": ["Anna", "sings"], "ner_tags": [1, 0]}]
    feature = {"feature": {"names": ["O", "B-PER", "I-PER"], "_type": "ClassLabel"}}
    path = parquet("b.parquet", tags, ner_tags=feature, tokens={"feature": {"dtype": "string"}})
    (document,) = get_task("conll2003", path).examples("train")
    assert document.tags == (("B-PER", "O"),)


def test_numbers_of_classes_need_their_names(write):
    rows = [{"text": "a", "label": 1}, {"text": "b", "label": 0}]
    path = write("a.jsonl", "\n".join(map(json.dumps, rows)))
    assert get_task("text_classification", path).labels == ["0", "1"]
    named = get_task("text_classification", path, labels="neg,pos")
    assert [example.label for example in named.examples("train")] == ["pos", "neg"]
    assert get_task("text_classification", **named.settings()).settings() == named.settings()
    listed = get_task("text_classification", path, labels="1,0")  # an order, and no names
    assert [example.label for example in listed.examples("train")] == ["1", "0"]
    words = write("b.tsv", "text\tlabel\na\tpos\nb\tneg\n")
    found = get_task("text_classification", words).settings()
    numbers = get_task("text_classification", path, **found, train_file="a.jsonl")
    with pytest.raises(UserError, match="label '1' is not among"):  # their order is not known
        numbers.examples("train")
    unlabelled = write("test.jsonl", '{"text": "a", "label": -1}\n')
    named = get_task("text_classification", path, labels="neg,pos", test_file=unlabelled)
    assert named.examples("test")[0].label is None


@pytest.mark.parametrize("name", ["mrpc", "cola", "sst2", "qqp"])
def test_official_files_are_answered_row_for_row(write, name):
    header = {
        "mrpc": "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t2\t3\tone\ttwo\n",
        "cola": "gj04\t1\t\tone\n",
        "sst2": "sentence\tlabel\none\t1\n",
        "qqp": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\tone\ttwo\t1\n",
    }
    task = get_task(name)
    ((_, example),) = task.inputs(write("dev.tsv", header[name])).rows
    assert (example.text_a, example.text_b) == ("one", "two" if name in ("mrpc", "qqp") else None)
    pair = "one\ttwo\n" if example.text_b else "one, of, four, words\n"
    ((_, example),) = task.inputs(write("a.txt", pair)).rows
    assert example.text_a == pair.split("\t")[0].strip()


def test_broken_lines_of_qqp_have_no_answer(write):
    content = "id\tquestion1\tquestion2\tis_duplicate\n0\tone\ttwo\t1\n1\tbroken\n2\ta\tb\t0\n"
    asked = [example and example.text_a for _, example in get_task("qqp").inputs(
        write("dev.tsv", content)).rows]  # fmt: skip
    assert asked == ["one", None, "a"]


def test_a_header_with_a_wrong_name_is_no_pair_of_texts(write):
    wanted = (("question1", "question2"),)
    path = write("pairs.tsv", "question1\tq2\nis it?\tit is\n")
    with pytest.raises(UserError, match="no column question2; the columns are question1, q2"):
        formats.detect_format(path, wanted, texts=True)
    path = write("bare.tsv", "is it?\tit is\n")
    assert not formats.detect_format(path, wanted, texts=True).header
