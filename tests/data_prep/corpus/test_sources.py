"""Layouts of raw text: WikiExtractor's output, rows, and what the text itself shows."""

import gzip
import json
import sys

import pytest
from corpora import documents

from data_prep.corpus import parquet_files
from data_prep.sentences import report, split_files
from official_bert.common.errors import UserError

LEAD = "Anarchism is a philosophy & a <movement>. It calls for change."
BODY = "The word is old. It comes from Greek."
BLOCKS = f"""<doc id="12" url="https://en.wikipedia.org/wiki?curid=12" title="Anarchism">
Anarchism

{LEAD.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}

Etymology.
{BODY}

</doc>
<doc id="13" url="https://en.wikipedia.org/wiki?curid=13" title="Say &quot;A&quot;">
Say "A"

A is a letter. It is the first.
</doc>
"""
TEXTS = {"Anarchism": f"{LEAD}\nEtymology.\n{BODY}", 'Say "A"': "A is a letter. It is the first."}
JSON = "".join(
    json.dumps({"id": "1", "revid": "1", "url": "u", "title": title, "text": text}) + "\n"
    for title, text in TEXTS.items()
)
EXPECTED = [
    ["Anarchism is a philosophy & a <movement>.", "It calls for change.", "The word is old.",
     "It comes from Greek."],
    ["A is a letter.", "It is the first."],
]  # fmt: skip


def split(tmp_path, content, name="a.txt", **options):
    (tmp_path / "in").mkdir(exist_ok=True)
    content = content.encode() if isinstance(content, str) else content
    (tmp_path / "in" / name).write_bytes(content)
    counts = split_files(str(tmp_path / "in" / name), tmp_path / "out", compress=False, **options)
    path = tmp_path / "out" / next(iter(counts))
    return list(documents(str(path))), counts


@pytest.mark.parametrize("content", [BLOCKS, JSON], ids=["text", "json"])
@pytest.mark.parametrize("layout", ["", "articles", "wikiextractor"])
def test_wikiextractors_output_is_read_as_what_it_is(tmp_path, content, layout):
    found, _ = split(tmp_path, content, "wiki_00", layout=layout, title_stops=True)
    assert found == EXPECTED


def test_a_folder_of_wikiextractors(tmp_path):
    for folder in ("AA", "AB"):
        (tmp_path / "extracted" / folder).mkdir(parents=True)
        (tmp_path / "extracted" / folder / "wiki_00.bz2").write_text(BLOCKS)
    counts = split_files(str(tmp_path / "extracted"), tmp_path / "out")
    found = {name: entry["documents"] for name, entry in counts.items()}
    assert found == {"AA-wiki_00.txt.gz": 2, "AB-wiki_00.txt.gz": 2}


def test_wikiextractors_output_is_not_taken_for_something_else(tmp_path):
    with pytest.raises(UserError, match="is WikiExtractor's output; pass --documents=wikiex"):
        split(tmp_path, BLOCKS, layout="chapters")
    with pytest.raises(UserError, match="line 1: text outside of <doc"):
        split(tmp_path, LEAD, layout="wikiextractor")


ROWS = [{"body": "One is here. Two is.\n\nThree is here.", "n": 1}, {"body": "Four is.", "n": 2}]
ROWS_EXPECTED = [["One is here.", "Two is.", "Three is here."], ["Four is."]]


@pytest.mark.parametrize("packed", [False, True])
def test_json_lines(tmp_path, packed):
    content = "\n".join(map(json.dumps, ROWS)).encode()
    content = gzip.compress(content) if packed else content
    found, counts = split(tmp_path, content, "c4.json", text_field="body")
    assert found == ROWS_EXPECTED
    with pytest.raises(UserError, match="line 1: no text in the field 'text'; the fields are body"):
        split_files(str(tmp_path / "in" / "c4.json"), tmp_path / "out2")
    with pytest.raises(UserError, match="is a file of JSON Lines or Parquet; pass --documents=ro"):
        split_files(str(tmp_path / "in" / "c4.json"), tmp_path / "out2", layout="lines")


SENTENCES = [*zip("aababb", ("One.", "Two.", "Three.", "Four.", "", "Six."), strict=True)]
JOINED = [["One.", "Two."], ["Three."], ["Four."], ["Six."]]


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "numbers"])
def test_rows_that_are_sentences_are_joined_by_a_column(tmp_path, kind):
    """Issue: each was a document of its own, and the advice gave the same again."""
    rows = [{"doc": ord(doc) if kind == "numbers" else doc, "text": t} for doc, t in SENTENCES]
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a"
    if kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    counts = split_files(str(path), tmp_path / "out", document_column="doc", compress=False)
    assert list(documents(str(tmp_path / "out" / "a.txt"))) == JOINED
    assert counts["a.txt"]["empty"] == 1
    with pytest.raises(UserError, match=r"no field 'dok'.*doc, text.*\(--document_column\)"):
        split_files(str(path), tmp_path / "out2", document_column="dok")
    (tmp_path / "page.txt").write_text("A page.\n\nOf text.\n")
    for option in ("document_column", "text_field"):
        with pytest.raises(UserError, match=f"--{option} is of rows.*page.txt is read as files"):
            split_files(str(tmp_path / "page.txt"), tmp_path / "o", "files", **{option: "doc"})
    alone = split_files(str(path), tmp_path / "out3")
    assert alone["a.txt.gz"]["documents"] == 5
    told = report({"a": alone["a.txt.gz"] | {"documents": 40, "sentences": 40}})
    assert any("--document_column= names the field" in line for line in told)
    shuffled = report({"a": {"documents": 40, "sentences": 40}}, document_column="doc")
    assert "joined where they are neighbours: sort them" in shuffled[1]


def test_half_a_character_of_json_becomes_one_that_can_be_written(tmp_path):
    (tmp_path / "a.jsonl").write_text(r'{"text": "He said \ud83d. So."}' + "\n")
    split_files(str(tmp_path / "a.jsonl"), tmp_path / "out", compress=False)
    assert (tmp_path / "out" / "a.txt").read_text("utf-8") == "He said \ufffd.\nSo.\n"


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([*ROWS, {"body": None}]), path)
    counts = split_files(str(path), tmp_path / "out", text_field="body")
    assert list(documents(str(tmp_path / "out" / "a.txt.gz"))) == ROWS_EXPECTED
    assert counts["a.txt.gz"]["documents"] == 2
    (tmp_path / "lists.jsonl").write_text('{"text": ["a", "b"]}\n')
    with pytest.raises(UserError, match=r"no text in the field 'text', but \["):
        split_files(str(tmp_path / "lists.jsonl"), tmp_path / "out2")
    with pytest.raises(UserError, match="has no field 'text'; it has body, n"):
        split_files(str(path), tmp_path / "out2")


def test_bytes_of_parquet_that_are_utf8_are_text(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {
        "plain": [b"Caf\xc3\xa9", b"\xff", None],
        "large": pyarrow.array([b"a", b"", b"b"], pyarrow.large_binary()),
        "fixed": pyarrow.array([b"ab", b"\xff\xff", b"cd"], pyarrow.binary(2)),
        "list": [[b"a", b"\xff"], [], None],
        "struct": [{"x": b"a", "y": [{"z": b"b"}]}, None, {"x": None, "y": None}],
        "other": [1, 2, 3],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    assert list(parquet_files.rows(str(tmp_path / "a.parquet"))) == [
        {"plain": "Café", "large": "a", "fixed": "ab", "list": ["a", b"\xff"],
         "struct": {"x": "a", "y": [{"z": "b"}]}, "other": 1},
        {"plain": b"\xff", "large": "", "fixed": b"\xff\xff", "list": [], "struct": None,
         "other": 2},
        {"plain": None, "large": "b", "fixed": "cd", "list": None,
         "struct": {"x": None, "y": None}, "other": 3},
    ]  # fmt: skip
    (one, *_) = parquet_files.rows(str(tmp_path / "a.parquet"), ["plain"])
    assert one == {"plain": "Café"}


def test_nanoseconds_of_parquet_need_no_pandas(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
    parquet = pytest.importorskip("pyarrow.parquet")
    kinds = (pyarrow.timestamp("ns"), pyarrow.duration("ns"), pyarrow.time64("ns"))
    columns = {str(kind): pyarrow.array([1_000_000_001], kind) for kind in kinds}
    parquet.write_table(pyarrow.table({"text": ["a"]} | columns), tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pandas", None)
    (row,) = parquet_files.rows(str(tmp_path / "a.parquet"))
    assert row["text"] == "a" and row["timestamp[ns]"] == "1970-01-01 00:00:01.000000001"
    inner = pyarrow.array([[1_000_000_001]], pyarrow.list_(kinds[0]))
    parquet.write_table(pyarrow.table({"when": inner}), tmp_path / "b.parquet")
    with pytest.raises(UserError, match="column when of list<.*> holds values that Python lacks"):
        list(parquet_files.rows(str(tmp_path / "b.parquet")))


def test_values_of_parquet_that_python_lacks_end_no_other_column(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = str(tmp_path / "a.parquet")
    damaged = pyarrow.array([b"ab\xff", b"cd"]).cast(pyarrow.string(), safe=False)
    late = pyarrow.array([2**62, 0], pyarrow.timestamp("us"))
    parquet.write_table(pyarrow.table({"text": damaged, "late": late}), path)
    one, other = parquet_files.rows(path)
    assert (one["text"], other["text"]) == (b"ab\xff", "cd") and "out of range" in one["late"]
    with pytest.raises(UserError, match=r"line 1: no text in the field 'text', but b'ab\\xff'"):
        split_files(path, tmp_path / "out")
    twice = pyarrow.Table.from_arrays([pyarrow.array(["a"]), pyarrow.array(["b"])], ["text"] * 2)
    parquet.write_table(twice, path)
    with pytest.raises(UserError, match="the columns: text is there twice"):
        list(parquet_files.rows(path))


GERMAN = """\
Anna Beispiel
Anna Beispiel wurde in Köln geboren. Sie lernte früh Klavier.
Ihr Vater war Müller.
Danach zog sie nach Hamburg.
Frühes Leben
Dort fand sie Arbeit.

Bertha Muster
Sie malte Bilder.
历史
"""


def test_titles_are_the_lines_that_no_mark_ends(tmp_path):
    """Issue: short sentences were titles by a list of English verbs."""
    found, counts = split(tmp_path, GERMAN, layout="articles", language="de")
    assert found == [
        ["Anna Beispiel wurde in Köln geboren.", "Sie lernte früh Klavier.",
         "Ihr Vater war Müller.", "Danach zog sie nach Hamburg.", "Dort fand sie Arbeit."],
        ["Sie malte Bilder."],
    ]  # fmt: skip
    (entry,) = counts.values()
    assert entry["lost: titles"] == len("Anna BeispielFrühes LebenBertha Muster历史")
    assert any("characters left out: titles: 40" in line for line in report(counts))
    text = f"A\nHistory.\n{LEAD}\n\n" * 60
    _, counts = split(tmp_path, text, "b.txt", layout="articles", language="de")
    assert "50% of the lines are a few words and a full stop" in report(counts)[-1]
    assert report(counts)[-1].endswith("pass --title_stops")


def test_a_row_is_a_text_and_never_a_title(tmp_path):
    rows = ["Great value for money.\nLoved it.", "Two words", None, "Historia\n\nLlueve"]
    content = "".join(json.dumps({"text": text, "more": "x" * 99}) + "\n" for text in rows)
    found, counts = split(tmp_path, content)
    assert found == [["Great value for money.", "Loved it."], ["Two words"], ["Historia", "Llueve"]]
    (entry,) = counts.values()
    assert (entry["characters"], entry["characters_read"], entry["empty"]) == (54, 54, 1)
    assert "1 rows hold no text" in report(counts)


def test_a_share_below_half_stops(tmp_path):
    content = "One\n" + "Short line without a mark\n" * 9 + "A sentence is here.\n"
    for _ in range(2):
        with pytest.raises(UserError, match=r"only 8% of the 247 .*\(titles: 228\).*--accept_loss"):
            split(tmp_path, content, layout="articles")
    found, _ = split(tmp_path, content, layout="articles", accept_loss=True)
    assert found == [["A sentence is here."]]


def test_what_chapters_lose_is_counted(tmp_path):
    start = "*** START OF THE PROJECT GUTENBERG EBOOK X ***"
    book = "CHAPTER {}\n\nTHE TITLE\n\n" + "He came home. He left.\n\n" * 20 + "12\n\n"
    text = f"Legal.\n{start}\n{book.format('I')}{book.format('II')}CHAPTER III\n\nToo short.\n"
    _, counts = split(tmp_path, text, layout="chapters")
    (entry,) = counts.values()
    assert {name: n for name, n in entry.items() if name.startswith("lost")} == {
        "lost: outside Project Gutenberg's marks": len("Legal.") + len(start),
        "lost: headings": len("CHAPTER ICHAPTER IICHAPTER III"),
        "lost: titles": len("THE TITLE") * 2,
        "lost: page numbers": 4,
        "lost: chapters under 200 characters": len("Too short."),
    }
    lost = sum(n for name, n in entry.items() if name.startswith("lost"))
    assert entry["characters_read"] == lost + entry["characters"] + 40  # blanks between sentences


def test_no_layout_is_guessed(tmp_path):
    plain = "The town lies in the north. It has a river.\n\n" * 9
    with pytest.raises(UserError, match="where do documents begin.*9 documents of 1.0 sentences"):
        split(tmp_path, plain)
    book = "".join(f"CHAPTER {n}\n\n{plain}" for n in ("I", "II", "III"))
    assert len(split(tmp_path, book)[0]) == 3
    (tmp_path / "in" / "b.txt").write_text(plain)
    with pytest.raises(UserError, match="laid out differently.*b.txt as unclear.*--documents"):
        split_files(str(tmp_path / "in" / "*.txt"), tmp_path / "out2")


def test_what_was_read_is_said(tmp_path):
    (tmp_path / "book.txt").write_text("CHAPTER I\n\n" + "He came home. He left.\n\n" * 20)
    (tmp_path / "note.txt").write_text("He came home.\n")
    counts = split_files(str(tmp_path / "*.txt"), tmp_path / "out", layout="chapters")
    first, lost, second = report(counts)
    assert first.startswith("2 files, 1 documents, 40 sentences (40.0 a document)")
    assert first.endswith("91% of those read")
    assert lost == "characters left out: chapters under 200 characters: 13; headings: 9"
    assert second.endswith("in 1 files, by the layout that was asked for: note.txt.gz")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '[{"text": "One is here."}]', "its lines are JSON"),
        ("a.csv", "id,text\n1,One is here.\n", "a.csv is a table by its name"),
        ("a.tsv.gz", gzip.compress(b"1\tOne is here.\n", mtime=0), "a table by its name"),
    ],
)
def test_what_is_no_plain_text_is_refused_whatever_the_layout(tmp_path, name, content, message):
    with pytest.raises(UserError, match=message):
        split(tmp_path, content, name, layout="lines")
