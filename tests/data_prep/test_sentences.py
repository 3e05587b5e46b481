"""Sentence splitting: quality on hard passages, and the command's files."""

import gzip
import json
from pathlib import Path

import pytest
from corpora import documents
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import call

from data_prep import sentences
from data_prep.corpus.text_files import text_lines
from data_prep.sentences import split_file, split_files, split_sentences
from official_bert.common.errors import UserError

HARD = Path(__file__).with_name("hard_sentences.txt")


def hard_passages():
    for line in HARD.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            language, *expected = line.split("|")
            yield language, expected


def ends(parts):
    """Return positions of the inner sentence ends, counted without blanks."""
    position, found = 0, set()
    for part in parts:
        position += len("".join(part.split()))
        found.add(position)
    return found - {position}


@pytest.mark.parametrize(
    "english, precision, recall", [(True, 0.94, 0.97), (False, 0.85, 0.97)], ids=["en", "others"]
)
def test_hard_passages(english, precision, recall):
    right = found = expected_ends = 0
    for language, expected in hard_passages():
        if (language == "en") != english:
            continue
        paragraph = ("" if language in ("zh", "ja") else " ").join(expected)
        split = ends(split_sentences(paragraph, language))
        right += len(split & ends(expected))
        found += len(split)
        expected_ends += len(ends(expected))
    assert right / found >= precision and right / expected_ends >= recall


def test_dialogue_and_abbreviations_word_for_word():
    assert split_sentences(
        '"Awfully," the young man answered in a trembling voice. "Awfully, Mrs. Lennox. You ought '
        'to have gone to the hills two weeks ago." Lt. Col. Smith agreed at 5 p.m. on Friday.'
    ) == [
        '"Awfully," the young man answered in a trembling voice.',
        '"Awfully, Mrs. Lennox.',
        'You ought to have gone to the hills two weeks ago."',
        "Lt. Col. Smith agreed at 5 p.m. on Friday.",
    ]


@settings(max_examples=150)
@given(
    text=st.text(
        st.one_of(
            st.sampled_from(list(" .?!\"'“”()A aé。？！\n\u2028")), st.characters(codec="utf-8")
        )
    ),
    language=st.sampled_from(["en", "de", "zh", "ko", "xx"]),
)
def test_nothing_but_blanks_is_lost(text, language):
    split = split_sentences(text, language)
    assert "".join("".join(split).split()) == "".join(text.split())
    assert all(sentence and sentence == " ".join(sentence.split()) for sentence in split)


def test_real_prose_keeps_every_word(data_dir):
    """On a real book: no word lost, and few lone fragments or endless sentences."""
    path = data_dir / "corpus" / "books" / "Doyle_Lost_1912.txt.gz"
    paragraph = " ".join([line for line in text_lines(str(path)) if line.strip()])
    split = split_sentences(paragraph)
    assert " ".join(split).split() == paragraph.split()
    lengths = [len(sentence.split()) for sentence in split]
    assert 12 < sum(lengths) / len(lengths) < 25
    assert sum(length > 120 for length in lengths) < 0.002 * len(lengths)


@pytest.fixture
def books(write, tmp_path):
    for number in range(3):
        page = f"Mr. No. {number} came. He\nleft.\n\n" * 20
        text = "".join(f"CHAPTER {numeral}\n\n{page}" for numeral in "IVX")
        write(f"in/book{number}.txt", text)
    write("in/packed.txt.gz", gzip.compress(text.encode()))
    return tmp_path / "in"


def test_files_do_not_depend_on_workers_and_are_skipped_when_done(books, tmp_path):
    one = split_files(str(books / "*"), tmp_path / "one", layout="chapters")
    two = split_files(str(books / "*"), tmp_path / "two", num_workers=2, layout="chapters")
    sizes = {name: counts["sentences"] for name, counts in one.items()}
    names = ["book0.txt.gz", "book1.txt.gz", "book2.txt.gz", "packed.txt.gz"]
    assert sizes == dict.fromkeys(names, 120)
    for name in one:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    first = next(documents(str(tmp_path / "one" / "book0.txt.gz")))
    assert first[:3] == ["Mr. No. 0 came.", "He left.", "Mr. No. 0 came."]
    assert sum(1 for _ in documents(str(tmp_path / "one" / "book0.txt.gz"))) == 3
    assert two == split_files(str(books / "*"), tmp_path / "two", layout="chapters")

    # A finished file is left alone, a changed or missing one is made again.
    before = {name: (tmp_path / "one" / name).stat().st_mtime_ns for name in one}
    (books / "book1.txt").write_text("Now it is short. " * 20)
    (tmp_path / "one" / "book2.txt.gz").unlink()
    again = split_files(str(books / "*"), tmp_path / "one", layout="chapters")
    after = {name: (tmp_path / "one" / name).stat().st_mtime_ns for name in one}
    assert again["book1.txt.gz"]["sentences"] == 20
    kept = [name for name in one if before[name] == after[name]]
    assert kept == ["book0.txt.gz", "packed.txt.gz"]


def test_an_interrupted_call_continues(books, tmp_path, monkeypatch):
    calls = []

    def failing(source, target, *arguments):
        calls.append(Path(source).name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return split_file(source, target, *arguments)

    monkeypatch.setattr(sentences, "split_file", failing)
    with pytest.raises(KeyboardInterrupt):
        split_files(str(books / "*"), tmp_path / "out")
    assert calls == ["book0.txt", "book1.txt", "book2.txt"]
    split_files(str(books / "*"), tmp_path / "out")
    assert calls[3:] == ["book2.txt", "packed.txt.gz"]


def test_a_file_that_was_finished_behind_an_error_is_known(books, tmp_path, monkeypatch):
    split = sentences._split_todo

    def failing(*arguments):
        split(*arguments)
        raise UserError("of another file")

    monkeypatch.setattr(sentences, "_split_todo", failing)
    with pytest.raises(UserError, match="of another file"):
        split_files(str(books / "*"), tmp_path / "out", "chapters")
    monkeypatch.undo()
    assert len(split_files(str(books / "*"), tmp_path / "out", "chapters")) == 4


def test_other_options_are_refused(books, tmp_path):
    out = tmp_path / "out"
    split_files(str(books / "*"), out, compress=False)
    with pytest.raises(UserError, match="documents: was chapters, now files.*--overwrite"):
        split_files(str(books / "*"), out, layout="files", compress=False)
    counts = split_files(str(books / "*"), out, layout="files", compress=False, overwrite=True)
    assert {entry["documents"] for entry in counts.values()} == {1}
    assert json.loads((out / "sentences.json").read_text())["options"]["documents"] == "files"


def test_errors(tmp_path, write):
    for name in ["a/x.txt", "b/x.txt"]:
        write(name, "One is here. Two is here.\n")
    counts = split_files(str(tmp_path / "*" / "x.txt"), tmp_path / "out", layout="lines")
    assert list(counts) == ["a-x.txt.gz", "b-x.txt.gz"]
    twice = [str(tmp_path / "a" / "x.txt"), str(tmp_path / "a" / "*"), f"{tmp_path}/./a/x.txt"]
    assert list(split_files(twice, tmp_path / "once", layout="lines")) == ["x.txt.gz"]
    with pytest.raises(UserError, match="no sentence found in 2 files with --documents=chapters"):
        split_files(str(tmp_path / "*" / "x.txt"), tmp_path / "out2", layout="chapters")
    with pytest.raises(UserError, match="--documents='.*'; .* chapters, articles, files, lines"):
        split_files(str(tmp_path / "a" / "x.txt"), tmp_path / "out3", layout="pages")
    write("a/x.txt", b"fine\n\xff\n")
    with pytest.raises(UserError, match="line 2: byte 0xff at column 1 is not UTF-8"):
        split_files(str(tmp_path / "a" / "x.txt"), tmp_path / "out4", layout="lines")
    assert not list((tmp_path / "out4").glob("*x*"))


def test_the_command(books, tmp_path, capsys):
    output = f"--output={tmp_path / 'out'}"
    assert call(sentences, f"--input={books}/*", output, "--num_workers=2") == 0
    assert "4 files, 12 documents, 480 sentences (40.0 a document)" in capsys.readouterr().out
    assert call(sentences, f"--input={books}/*.html", output) == 2
    assert "no file matches" in capsys.readouterr().err
