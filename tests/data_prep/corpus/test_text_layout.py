"""Finds the beginnings of chapters and articles, in small texts and in the real corpus."""

import textwrap

from data_prep.corpus import text_layout
from data_prep.corpus.text_files import text_lines

LONG = "This sentence is repeated until the chapter is long enough to be one. " * 4


def chapters(text, join=" "):
    """Return the chapters of a text where WRAPPED stands for five lines and LONG for one long
    line."""
    text = textwrap.dedent(text).replace("WRAPPED", textwrap.fill(LONG, 70))
    return list(text_layout.chapters(text.replace("LONG", LONG.strip()).split("\n"), join))


def test_headings_titles_and_contents():
    found = chapters("""\
        THE BOOK

        by Somebody

        CONTENTS
        CHAPTER I. THE START
        CHAPTER II. THE END

        CHAPTER I.

        THE START

        It was late,
        and he knew it. WRAPPED

        Part of the world was his.

        CHAPTER II: The End
        I was
        there. WRAPPED
        FINIS
        """)
    assert found == [
        [f"It was late, and he knew it. {LONG.strip()}", "Part of the world was his."],
        [f"I was there. {LONG.strip()}"],
    ]


def test_kinds_of_headings():
    headings = "Chapter 4|BOOK THE SECOND|Part Two The Sea|XIV.|Epilogue|第三回"
    for heading in headings.split("|"):
        assert len(chapters(f"LONG\n\n{heading}\n\nLONG")) == 2, heading
    others = "I thought so.|Part of it.|book one reads|Volume, he said|1912 was dry."
    for text in others.split("|"):
        assert len(chapters(f"LONG\n\n{text}\n\nLONG")) == 1, text


def test_bare_numbers_are_chapters_or_pages():
    (book,) = chapters("\n\n".join(f"LONG\n\n {number} " for number in range(8, 30)))
    assert len(book) == 22 and not any("8" in paragraph for paragraph in book)
    parts = "\n\n".join(f"{number}\n\n" + "LONG\n\n" * 12 for number in range(1, 6))
    assert len(chapters(parts)) == 5


def test_paragraphs():
    # Wrapped lines are joined, a word broken at a hyphen keeps it, plain text's italics go.
    (book,) = chapters("He was well-\nknown -\n_very_ well  known. WRAPPED\n\n\nNext\tone.")
    assert book == [f"He was well-known - very well known. {LONG.strip()}", "Next one."]
    # A file that is not wrapped has a paragraph a line.
    (book,) = chapters("LONG\nLONG\nShort one.\nLONG")
    assert len(book) == 4
    book = "第一章\n" + "他来了，\n走了。" * 100
    assert all(chapters(book, join)[0][0].startswith("他来了，走了。") for join in (" ", ""))


def test_project_gutenberg_frame_goes():
    frame = "*** {} OF THE PROJECT GUTENBERG EBOOK X ***"
    text = f"Legal words.\n{frame.format('START')}\nLONG\n{frame.format('END')}\nMore legal words."
    assert chapters(text) == [[LONG.strip()]]


def test_articles():
    text = "Leeds\nLeeds is a city.\nHistory.\nIt is old.\nSee also\n\n\nYork\nYork was founded.\n"
    lines = text.split("\n")
    found = list(text_layout.articles(lines))
    assert found == [["Leeds is a city.", "History.", "It is old."], ["York was founded."]]
    stops = list(text_layout.articles(lines, titles=text_layout.Titles(stops=True)))
    assert not stops  # short sentences go with them
    kept = list(text_layout.articles(lines, 0, text_layout.Titles(keep=True)))
    assert kept[0] == ["Leeds", "Leeds is a city.", "History.", "It is old.", "See also"]


def test_section_titles():
    titles = "Early life and education|2010-11|Frühes Leben|历史|इतिहास|История"
    for title in titles.split("|"):
        assert text_layout.is_section_title(title)
        assert text_layout.is_section_title(f"{title}.", stops=True)
        assert not text_layout.is_section_title(f"{title}.")
    others = "She was born.|生れた。|वह आया।|Είναι;|Early life? No|Alumni include:"
    for text in others.split("|"):
        assert not text_layout.is_section_title(text), text
    for text in ['"The Bachelor".', "Notable alumni include:", "a phrase.", "ประวัติศาสตร์"]:
        assert not text_layout.is_section_title(text, stops=True)


def test_real_books_fall_into_their_chapters(data_dir):
    # Counted in the books; "Treasure Island" here has headings for its six parts only.
    for name, count in {
        "Burnett_Garden_1911": 27,
        "Doyle_Hound_1902": 15,
        "Doyle_Lost_1912": 16,
        "Dickens_Expectations_1861": 59 + 1,
        "Hardy_Tess_1891": 59,
        "Burnett_Princess_1905": 19,
        "Stevenson_Treasure_1883": 6 + 1,
        "Eliot_Felix_1866": 51 + 3,
    }.items():
        path = data_dir / "corpus" / "books" / f"{name}.txt.gz"
        book = list(text_layout.chapters(text_lines(str(path))))
        assert len(book) == count, name
        raw = sum(len(line.strip()) for line in text_lines(str(path)))
        kept = sum(len(paragraph) for chapter in book for paragraph in chapter)
        assert 0.98 * raw < kept < 1.03 * raw, name
