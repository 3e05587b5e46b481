"""Raw text to documents of paragraphs: where a book's chapters, or a file's articles, begin.

`data_prep.sentences` splits what these functions give. A document is a list of paragraphs, each one
string with single blanks. The paper needs documents that are long contiguous passages (section
3.1); a chapter of a novel or an encyclopaedia article is one.
"""

import re
from collections.abc import Iterable, Iterator

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
_SENTENCE_END = re.compile(r"[.!?:;,…。！？]['\"’”»)\]]*$")


def chapters(lines: Iterable[str], join: str = " ") -> Iterator[list[str]]:
    """A book's chapters: a blank line separates paragraphs, wrapped lines are joined.

    A heading ("CHAPTER IV", "Book One", "XII.", "3", "Preface", a Chinese "第三回") ends a chapter.
    Headings, the title below a heading, page numbers, lines of the table of contents and whatever
    stands outside Project Gutenberg's START and END marks are left out, and so are chapters under
    200 characters (title pages). Text before the first heading is a document like the others. The
    book is held in memory.

    Args:
      lines: the book's lines.
      join: what stands between two lines of a paragraph; empty for Chinese or Japanese.
    """
    lines = _without_gutenberg_frame([line.rstrip() for line in lines])
    unwrapped = _is_unwrapped(lines)
    numbers_are_headings = _numbers_are_headings(lines)
    chapter, paragraph, after_heading = [], [], False

    def close_paragraph():
        nonlocal after_heading
        if paragraph:
            text = join_lines(paragraph, join)
            # Titles stand alone and end like no sentence does.
            if not _is_title(text, after_heading):
                chapter.append(text)
                after_heading = False
            paragraph.clear()

    for line in lines:
        stripped = line.strip()
        is_number = bool(_BARE_NUMBER.fullmatch(stripped))
        if _is_heading(stripped) or (is_number and numbers_are_headings):
            close_paragraph()
            if sum(map(len, chapter)) >= _SHORTEST_CHAPTER:
                yield chapter
            chapter, after_heading = [], True
        elif is_number:
            continue  # a page number, even in the middle of a paragraph
        elif not stripped:
            close_paragraph()
        elif after_heading and not paragraph and len(stripped) <= 80 and stripped.isupper():
            continue  # the chapter's title
        else:
            indented = line[0].isspace() and not (paragraph and paragraph[-1][0].isspace())
            if unwrapped or indented or len(line) > _LONGEST_WRAPPED_LINE:
                close_paragraph()
            paragraph.append(line)
    close_paragraph()
    if sum(map(len, chapter)) >= _SHORTEST_CHAPTER:
        yield chapter


def articles(
    lines: Iterable[str], title_lines: int = 1, section_titles: bool = False
) -> Iterator[list[str]]:
    """Articles of extracted Wikipedia text: a blank line between articles, a line a paragraph.

    Args:
      lines: the file's lines; read as they are needed.
      title_lines: so many lines at the start of each article are its title, and left out.
      section_titles: keep lines that look like a section title ("Early life."), which is no
        sentence; by default they are left out, as the paper leaves out headers.
    """
    article, number = [], 0
    for line in lines:
        text = " ".join(line.split())
        if not text:
            if article:
                yield article
            article, number = [], 0
            continue
        number += 1
        if number > title_lines and (section_titles or not is_section_title(text)):
            article.append(text)
    if article:
        yield article


def whole_file(lines: Iterable[str], join: str = " ") -> Iterator[list[str]]:
    """The file as one document: a blank line separates paragraphs, wrapped lines are joined."""
    document, paragraph = [], []
    for line in lines:
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            document.append(join_lines(paragraph, join))
            paragraph = []
    if paragraph:
        document.append(join_lines(paragraph, join))
    if document:
        yield document


def each_line(lines: Iterable[str]) -> Iterator[list[str]]:
    """Every line that is not blank as a document of its own, such as reviews or comments."""
    for line in lines:
        text = " ".join(line.split())
        if text:
            yield [text]


def join_lines(lines: list[str], join: str = " ") -> str:
    """One paragraph from its lines. A word broken at a hyphen keeps the hyphen and no blank."""
    text = lines[0].strip()
    for line in lines[1:]:
        hyphen = len(text) > 1 and text[-1] == "-" and text[-2].isalpha()
        text += ("" if hyphen else join) + line.strip()
    # Underscores around words are plain text's italics.
    return re.sub(r"(?<!\w)_+(\S(?:[^_]*\S)?)_+(?!\w)", r"\1", " ".join(text.split()))


def is_section_title(text: str) -> bool:
    """Whether a whole line is a section title: a few words, one full stop, at the end, or none.

    Measured on extracted Wikipedia: see tests/data_prep/test_text_layout.py.
    """
    if len(text) > 60 or len(text.split()) > 7 or not (text[0].isupper() or text[0].isdigit()):
        return False
    body = text[:-1] if text.endswith(".") else text
    return not re.search(r"[.!?;。！？\"”]\s|[.!?;:,\"”。！？]$", body) and not _VERB.search(body)


# A short line with a finite verb is a sentence ("She was born in Leeds.").
_VERB = re.compile(
    r"\b(is|are|was|were|has|had|have|does|did|died|lives|lived|became|won|plays|played|can|will)\b"
)


def numbered_headings(lines: Iterable[str]) -> int:
    """How many lines head a chapter by its number ("CHAPTER IV", "XII.", "第三回")."""
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
    if len(text) > 80 or _SENTENCE_END.search(text) and not text.isupper():
        return False
    return after_heading or text.isupper()


def _is_unwrapped(lines: list[str]) -> bool:
    filled = [len(line) for line in lines if line.strip()]
    return sum(n > _LONGEST_WRAPPED_LINE for n in filled) > 0.15 * max(len(filled), 1)


def _numbers_are_headings(lines: list[str]) -> bool:
    """Whether lines like "3" head chapters; else they are page numbers.

    They are headings where no other heading is and 3,000 characters, more than a page, lie between.
    """
    numbers = sum(bool(_BARE_NUMBER.fullmatch(line.strip())) for line in lines)
    if not numbers or sum(_is_heading(line.strip()) for line in lines) > 2:
        return False
    return sum(map(len, lines)) / numbers > 3000


def _without_gutenberg_frame(lines: list[str]) -> list[str]:
    start, end = 0, len(lines)
    for number, line in enumerate(lines):
        match = _GUTENBERG.match(line.strip())
        if match and match.group(1) == "START":
            start = number + 1
        elif match and start <= number:
            end = min(end, number)
    return lines[start:end]
