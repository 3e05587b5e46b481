"""The text passages of one MediaWiki page.

"For Wikipedia we extract only the text passages and ignore lists, tables, and headers" (section
3.1). mwparserfromhell (MIT) parses the wikitext, `nodes` gives the text of what it found, and this
module cuts that into paragraphs and keeps those that are passages. Comments and references, half of
an article's characters, are cut out before parsing: they hold no passages and take most of the
parser's time.

A template that stood for words inside a sentence leaves a hole in it (`lost_words`), as a formula
does; `without_holes` drops or marks such sentences.
"""

import re
from collections import Counter

from data_prep.corpus import sentence_splitter
from data_prep.corpus.mediawiki import lost_words, unclosed_markup, variants
from data_prep.corpus.mediawiki.lost_words import FORMULA
from data_prep.corpus.mediawiki.nodes import LIST_LINE, UNKNOWN, Site, text_of

# Sections without passages: they hold lists, credits and links.
_REFERENCE_SECTIONS = {
    "bibliography", "citations", "external links", "footnotes", "further reading", "gallery",
    "notes", "notes and references", "publications", "references", "see also", "sources",
    "works cited",
}  # fmt: skip
_COMMENT = re.compile(r"<!--.*?(-->|\Z)", re.DOTALL)
_REFERENCE = re.compile(r"<ref\b[^<>]*/>|<ref\b[^<>]*>.*?</ref\s*>", re.DOTALL | re.IGNORECASE)
_DISAMBIGUATION = re.compile(
    r"\{\{\s*+([\w ]*\bdisambig(uation)?\b[\w ]*|disamb|dab|hndis|geodis|surname|given name|"
    r"set index article|sia|begriffsklärung|homonymie)\s*[|}]",
    re.IGNORECASE,
)
_REDIRECT = re.compile(r"\s*#\s*\w+\s*:?\s*\[\[")  # by any name
_EMPTY_BRACKETS = re.compile(r"\s?[(\[（][,;:.\s–-]*[)\]）]")
_LEFTOVER = re.compile(r"\{\||\|\}|\{\{|\}\}|\[\[|\]\]|</?[a-zA-Z][^<>]*>|^\s*[|!]|\|\||=\s*$")
_SWITCH = re.compile(r"__((?:[^\W\d_]|_(?!_))+)__")  # __NOTOC__, __БЕЗ_ОГЛАВЛЕНИЯ__


def why_not_article(title: str, namespace: int, redirect: bool, text: str) -> str | None:
    """Return why a page is not an article ("redirect", "other namespace", ...); None for an
    article."""
    if namespace != 0:
        return "other namespace"
    if redirect or _REDIRECT.match(text):
        return "redirect"
    if _DISAMBIGUATION.search(text) or title.endswith("(disambiguation)"):
        return "disambiguation"
    return None


def passages(wikitext: str, dropped: Counter | None = None, site: Site = UNKNOWN) -> list[str]:
    """Return the page's paragraphs of running text, in order, each one line of plain text.

    Args:
      wikitext: the page's source.
      dropped: gets counts of what was left out, by kind ("templates", "tables", "list items", ...),
        and under "characters found" the characters of all paragraphs.

    Raises:
      TooSlow: of `unclosed_markup`.
    """
    import mwparserfromhell

    dropped = Counter() if dropped is None else dropped
    wikitext = _SWITCH.sub(_without_capitals, _COMMENT.sub("", wikitext))
    closed = wikitext.lower().rfind("</ref") + 1  # behind it every <ref> would search up to the end
    before, references = _REFERENCE.subn("", wikitext[: closed + 200])
    wikitext = before + wikitext[closed + 200 :]
    dropped["references"] += references
    wikitext = variants.shown(wikitext, site.language)
    unclosed_markup.check(wikitext)
    # Quotation marks for bold and italics are removed here: unbalanced ones mislead the parser.
    code = mwparserfromhell.parse(wikitext, skip_style_tags=True)
    paragraphs = []
    for heading, text in _sections(text_of(code.nodes, dropped, site)):
        if heading.lower() in _REFERENCE_SECTIONS:
            dropped["reference sections"] += 1
            continue
        for block in _blocks(text, dropped):
            paragraph = _paragraph(block, dropped)
            if paragraph:
                paragraphs.append(paragraph)
    return paragraphs


def _without_capitals(switch) -> str:
    """Return a word between double underscores if it has a lower-case letter, else ""."""
    return switch.group() if any(map(str.islower, switch.group())) else ""


def _sections(text: str):
    """Yield (heading, text) of each section; the first has no heading."""
    parts = text.split("\f")
    yield "", parts[0]
    yield from zip(parts[1::2], parts[2::2], strict=False)


def _blocks(text: str, dropped: Counter):
    """Yield paragraphs; a blank line or a list item ends one, a single line end is a blank."""
    block = []
    for line in [*map(lost_words.without_boxes, text.split("\n")), ""]:
        is_list = line.lstrip().startswith(LIST_LINE) or line[:1] in ("*", "#", ":", ";")
        dropped["list items"] += is_list
        if line.strip() and not is_list:
            block.append(line)
        elif block:
            yield " ".join(block)
            block = []


def _paragraph(line: str, dropped: Counter) -> str:
    """Return a paragraph of extracted text, cleaned; "" where it is not a passage."""
    line = re.sub(r"'{2,}", "", line.replace(LIST_LINE, ""))
    line = lost_words.holes(" ".join(line.split()))
    line = _EMPTY_BRACKETS.sub("", line)
    line = re.sub(r"\(\s*[,;]\s*", "(", line)  # "(; born 1957)", whose first part was a template
    line = re.sub(r"\s+([,.;:!?)])", r"\1", " ".join(line.split())).lstrip(",.;: ")
    if not lost_words.has_words(line):
        return ""
    dropped["characters found"] += len(line)
    if _LEFTOVER.search(line):
        dropped["paragraphs with leftover markup"] += 1
        return ""
    if not sentence_splitter.ends(line):
        dropped["paragraphs without a sentence"] += 1
        return ""
    return line


def without_holes(sentences: list[str], dropped: Counter, mark: str = "") -> list[str]:
    """Return the sentences without those that lost a formula or a template's words.

    Args:
      mark: put in place of what was lost, so that the sentences stay; "": leave them out.
    """
    whole = []
    for sentence in sentences:
        if not lost_words.HOLE.search(sentence):
            whole.append(sentence)
            continue
        reason = "with a formula" if FORMULA in sentence else "that lost words of a template"
        dropped[f"sentences {reason}{', marked' if mark else ''}"] += 1
        if mark:
            whole.append(lost_words.HOLE.sub(lambda _: mark, sentence))
    return whole
