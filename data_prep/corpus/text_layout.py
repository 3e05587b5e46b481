"""Documents of paragraphs from raw text: the chapters of a book, the articles of a file.

`data_prep.sentences` splits the results into sentences. A document is a list of paragraphs, each
one string with single blanks. The paper needs documents that are long contiguous passages (section
3.1); a chapter of a novel or an encyclopaedia article is one.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from data_prep.corpus.sentence_splitter import closes, ends, is_unspaced

# Shorter "chapters" are title pages, lists of contents and the like.
_SHORTEST_CHAPTER = 200
# A line longer than this was not wrapped by hand at 60 to 80 columns: it is a whole paragraph.
_LONGEST_WRAPPED_LINE = 120

_ROMAN = r"[IVXLCivxlc]+"
_ORDINAL = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|last"
_CARDINAL = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|"
    "sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty"
)
_NUMBERED = re.compile(
    rf"(chapter|chap\.|book|part|volume|vol\.|letter|stave|canto|phase)\s+(the\s+)?"
    rf"(?P<number>\d+|{_ROMAN}|({_CARDINAL})([ -]({_CARDINAL}))?|{_ORDINAL})\b",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(preface|prologue|epilogue|introduction|conclusion|foreword|afterword|contents|"
    r"author's note|dedication|the end|finis)\.?",
    re.IGNORECASE,
)
_ROMAN_HEADING = re.compile(r"[IVXLC]+\.?(\s+[^a-z]+)?")  # "IV", "IV.", "I. PENELOPE"
_BARE_NUMBER = re.compile(r"\d{1,3}\.?")
_CHINESE_HEADING = re.compile(r"第[0-9零〇一二三四五六七八九十百千两]+[章回节節卷部]")
_GUTENBERG = re.compile(r"\*\*\* ?(START|END) OF (THE|THIS) PROJECT GUTENBERG")


def chapters(
    lines: Iterable[str], join: str = " ", lost: Counter | None = None
) -> Iterator[list[str]]:
    """Yield a book's chapters: a blank line separates paragraphs, wrapped lines are joined.

    A heading ("CHAPTER IV", "Book One", "XII.", "3", "Preface", a Chinese "第三回") ends a chapter.
    Headings, the title below a heading, page numbers, lines of the table of contents and whatever
    stands outside Project Gutenberg's START and END marks are left out, and so are chapters under
    200 characters (title pages). Text before the first heading is a document like the others. The
    book is held in memory.

    Args:
      lines: the book's lines.
      join: text between two lines of a paragraph; empty for Chinese or Japanese.
      lost: gets the number of characters that are left out, by reason.
    """
    lost = Counter() if lost is None else lost
    lines = _without_gutenberg_frame([line.rstrip() for line in lines], lost)
    unwrapped = _is_unwrapped(lines)
    numbers_are_headings = _numbers_are_headings(lines)
    chapter, paragraph, after_heading = [], [], False

    def close_paragraph():
        nonlocal after_heading
        if paragraph:
            text = join_lines(paragraph, join)
            # A title stands alone and does not end like a sentence.
            if _is_title(text, after_heading):
                lost["titles"] += len(text)
            else:
                chapter.append(text)
                after_heading = False
            paragraph.clear()

    def is_long_enough():
        length = sum(map(len, chapter))
        lost["chapters under 200 characters"] += length if length < _SHORTEST_CHAPTER else 0
        return length >= _SHORTEST_CHAPTER

    for line in lines:
        stripped = line.strip()
        is_number = bool(_BARE_NUMBER.fullmatch(stripped))
        if _is_heading(stripped) or (is_number and numbers_are_headings):
            close_paragraph()
            if is_long_enough():
                yield chapter
            chapter, after_heading = [], True
            lost["headings"] += len(stripped)
        elif is_number:  # of a page, even in the middle of a paragraph
            lost["page numbers"] += len(stripped)
        elif not stripped:
            close_paragraph()
        elif after_heading and not paragraph and len(stripped) <= 80 and stripped.isupper():
            lost["titles"] += len(stripped)  # the chapter's
        else:
            indented = line[0].isspace() and not (paragraph and paragraph[-1][0].isspace())
            if unwrapped or indented or len(line) > _LONGEST_WRAPPED_LINE:
                close_paragraph()
            paragraph.append(line)
    close_paragraph()
    if is_long_enough():
        yield chapter


def articles(
    lines: Iterable[str],
    title_lines: int = 1,
    titles: "Titles | None" = None,
    lost: Counter | None = None,
) -> Iterator[list[str]]:
    """Yield articles of extracted Wikipedia text, one paragraph a line, blank lines between them.

    Args:
      lines: the file's lines; read as they are needed.
      title_lines: number of lines at the start of each article that are its title; left out.
      titles: rule for section titles, which are left out as the paper leaves out headers.
      lost: see `chapters`.
    """
    titles, lost = titles or Titles(), Counter() if lost is None else lost
    parts = itertools.groupby((" ".join(line.split()) for line in lines), bool)
    for part in (part for is_text, part in parts if is_text):
        article = []
        for number, text in enumerate(part):
            if number < title_lines:
                lost["titles"] += len(text)
            elif titles.keeps(text, lost):
                article.append(text)
        if article:
            yield article


@dataclass
class Titles:
    """The rule that tells section titles from other lines.

    Attributes:
      keep: keep section titles.
      stops: see `is_section_title`.
      stopped, lines: number of lines that would be titles with `stops`, and of all lines.
    """

    keep: bool = False
    stops: bool = False
    stopped: int = 0
    lines: int = 0

    def keeps(self, text: str, lost: Counter) -> bool:
        """Return whether a line is text; count the characters of titles."""
        self.lines += 1
        title = is_section_title(text, stops=True)
        unmarked = title and is_section_title(text)
        self.stopped += title and not unmarked
        if self.keep or not (title if self.stops else unmarked):
            return True
        lost["titles"] += len(text)
        return False


def whole_file(lines: Iterable[str], join: str = " ") -> Iterator[list[str]]:
    """Yield the file as one document: blank lines separate paragraphs, wrapped lines are joined."""
    parts = itertools.groupby(lines, key=lambda line: bool(line.strip()))
    document = [join_lines(list(part), join) for is_text, part in parts if is_text]
    if document:
        yield document


def each_line(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield every line that is not blank as a document of its own, such as reviews or comments."""
    for line in lines:
        text = " ".join(line.split())
        if text:
            yield [text]


def join_lines(lines: list[str], join: str = " ") -> str:
    """Join the lines of one paragraph.

    A word broken at a hyphen keeps the hyphen and gets no blank; no blank comes between Chinese or
    Japanese characters, whatever `join` is.
    """
    text = lines[0].strip()
    for line in lines[1:]:
        line = line.strip()
        hyphen = len(text) > 1 and text[-1] == "-" and text[-2].isalpha()
        unspaced = is_unspaced(text[-1:]) and is_unspaced(line[:1])
        text += ("" if hyphen or unspaced else join) + line
    # Underscores around words are plain text's italics.
    return re.sub(r"(?<!\w)_+(\S(?:[^_]*\S)?)_+(?!\w)", r"\1", " ".join(text.split()))


def is_section_title(text: str, stops: bool = False) -> bool:
    """Return whether a whole line is a section title: a few words without a mark at the end.

    In a script that marks no ends of sentences, no line is one.

    Args:
      stops: a title may end with one full stop, as in WikiExtractor's output ("Early life."). Then
        short sentences count as titles too.
    """
    if len(text) > 60 or len(text.split()) > 7 or not text[0].isalnum() or text[0].islower():
        return False
    text = text.removesuffix(".") if stops else text
    return not (closes(text) or ends(text))


def numbered_headings(lines: Iterable[str]) -> int:
    """Return the number of lines that head a chapter by number ("CHAPTER IV", "XII.", "第三回")."""
    kinds = (_NUMBERED, _ROMAN_HEADING, _CHINESE_HEADING)
    headings = filter(_is_heading, (line.strip() for line in lines))
    return sum(any(kind.match(line) for kind in kinds) for line in headings)


def _is_heading(line: str) -> bool:
    if not line or len(line) > 90:
        return False
    if _NAMED.fullmatch(line) or _CHINESE_HEADING.match(line):
        return True
    if _ROMAN_HEADING.fullmatch(line):
        return True
    # "Part of the world", "book one reads" and "Part 2 of my plan is this," are text, "Chapter I:
    # The Bertolini" is not.
    match = _NUMBERED.match(line)
    if not match or line.endswith((",", ";", "-")):
        return False
    number = match.group("number")
    return line[0].isupper() and (number[0].isupper() or number.isdigit())


def _is_title(text: str, after_heading: bool) -> bool:
    if len(text) > 80 or closes(text) and not text.isupper():
        return False
    return after_heading or text.isupper()


def _is_unwrapped(lines: list[str]) -> bool:
    filled = [len(line) for line in lines if line.strip()]
    return sum(n > _LONGEST_WRAPPED_LINE for n in filled) > 0.15 * max(len(filled), 1)


def _numbers_are_headings(lines: list[str]) -> bool:
    """Return whether lines like "3" head chapters; else they are page numbers.

    They are headings where there is no other heading, and 3,000 characters, more than a page, lie
    between them.
    """
    numbers = sum(bool(_BARE_NUMBER.fullmatch(line.strip())) for line in lines)
    if not numbers or sum(_is_heading(line.strip()) for line in lines) > 2:
        return False
    return sum(map(len, lines)) / numbers > 3000


def _without_gutenberg_frame(lines: list[str], lost: Counter) -> list[str]:
    start, end = 0, len(lines)
    for number, line in enumerate(lines):
        match = _GUTENBERG.match(line.strip())
        if match and match.group(1) == "START":
            start = number + 1
        elif match and start <= number:
            end = min(end, number)
    outside = sum(len(line.strip()) for line in (*lines[:start], *lines[end:]))
    lost["outside Project Gutenberg's marks"] += outside
    return lines[start:end]
