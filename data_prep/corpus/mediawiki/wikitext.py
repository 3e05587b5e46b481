"""The text passages of one MediaWiki page.

"For Wikipedia we extract only the text passages and ignore lists, tables, and headers" (section
3.1). mwparserfromhell (MIT) parses the wikitext; this module decides which nodes are kept. Comments
and references, half of an article's characters, are cut out before parsing: they hold no passages
and take most of the parser's time.

A template that stood for words inside a sentence leaves a hole in it (`lost_words`), as a formula
does; `without_holes` drops or marks such sentences.
"""

import re
from collections import Counter
from typing import NamedTuple

from data_prep.corpus import sentence_splitter
from data_prep.corpus.mediawiki import lost_words, unclosed_markup, variants
from data_prep.corpus.mediawiki.lost_words import FORMULA, TEMPLATE

# Sections without passages: they hold lists, credits and links.
_REFERENCE_SECTIONS = {
    "bibliography", "citations", "external links", "footnotes", "further reading", "gallery",
    "notes", "notes and references", "publications", "references", "see also", "sources",
    "works cited",
}  # fmt: skip

# Templates that stand for words inside a sentence; all others are boxes, notes and references.
_FIRST_ARGUMENT = {
    "nowrap",
    "nobr",
    "small",
    "smaller",
    "em",
    "strong",
    "vanchor",
    "sic",
    "angbr",
    "val",
    "nts",
}
_LAST_ARGUMENT = {"lang", "transl", "transliteration", "tooltip", "abbr", "nihongo"}
_RANGES = {"-", "–", "to", "and", "or", "by", "x", "×"}
_FORMULAS = {"math", "mvar", "chem", "chem2", "tmath", "nuclide", "simplenuclide2", "frac", "sfrac"}
_FIXED = {
    "ndash": "–", "spaced ndash": " – ", "snd": " – ", "mdash": "—", "spaced mdash": " — ",
    "nbsp": " ", "spaces": " ", "'s": "'s", "'": "'", "·": " · ", "!": "|", "pipe": "|", "=": "=",
}  # fmt: skip

# Elements whose contents are not a passage. Others (b, i, sub, span, ...) are transparent.
_DROPPED_TAGS = {
    "ref": "references", "references": "references", "table": "tables", "math": "formulas",
    "chem": "formulas", "gallery": "images", "imagemap": "images", "timeline": "images",
    "source": "code", "syntaxhighlight": "code", "pre": "code", "score": "images",
    "hiero": "images", "graph": "images", "mapframe": "images", "templatestyles": "templates",
    "ul": "list items", "ol": "list items", "dl": "list items", "ce": "formulas",
    "rt": "readings", "rp": "readings", "includeonly": "templates",
}  # fmt: skip
_INLINE_TAGS = {"score", "hiero"}  # beside formulas and code
_LIST_MARKS = {"li", "dd", "dt"}
# They show the argument behind a colon, changed in case or commas only.
_SHOWS_ARGUMENT = re.compile(
    r"(formatnum|lc|uc|lcfirst|ucfirst)\s*:(.*)", re.DOTALL | re.IGNORECASE
)

# Names that every wiki understands; a wiki's own ones are in its dump.
_IMAGES, _CATEGORIES = ("file", "image", "media"), ("category",)
# A wiki's old names for files ("Bild:") are not in its dump; these endings tell them.
_MEDIA = re.compile(
    r"\.(jpe?g|png|gif|svg|tiff?|webp|xcf|bmp|og[gav]|opus|mp[34g]|mid|wav|flac|web[mp]|djvu|pdf)\s*$",
    re.IGNORECASE,
)

_COMMENT = re.compile(r"<!--.*?(-->|\Z)", re.DOTALL)
_REFERENCE = re.compile(r"<ref\b[^<>]*/>|<ref\b[^<>]*>.*?</ref\s*>", re.DOTALL | re.IGNORECASE)
_DISAMBIGUATION = re.compile(
    r"\{\{\s*+([\w ]*\bdisambig(uation)?\b[\w ]*|disamb|dab|hndis|geodis|surname|given name|"
    r"set index article|sia|begriffsklärung|homonymie)\s*[|}]",
    re.IGNORECASE,
)
_REDIRECT = re.compile(r"\s*#\s*\w+\s*:?\s*\[\[")  # by any name
_LANGUAGE_LINK = re.compile(r"[a-z]{2,3}(-[a-z]+)*|simple|zh-min-nan")
_LIST_LINE = "\x01"  # marks a list item's line in extracted text
_EMPTY_BRACKETS = re.compile(r"\s?[(\[（][,;:.\s–-]*[)\]）]")
_LEFTOVER = re.compile(r"\{\||\|\}|\{\{|\}\}|\[\[|\]\]|</?[a-zA-Z][^<>]*>|^\s*[|!]|\|\||=\s*$")
_SWITCH = re.compile(r"__((?:[^\W\d_]|_(?!_))+)__")  # __NOTOC__, __БЕЗ_ОГЛАВЛЕНИЯ__


class Site(NamedTuple):
    """A wiki's own words and names, from its dump.

    Attributes:
      language: its code ("ru"), or a variant that is wanted ("zh-tw").
      images, categories: the lower-case names of the namespaces of files and of categories.
      named: whether the dump gives the names; else only the English names are known.
    """

    language: str = ""
    images: frozenset[str] = frozenset(_IMAGES)
    categories: frozenset[str] = frozenset(_CATEGORIES)
    named: bool = False

    @classmethod
    def of(cls, language: str, names: dict[str, str]) -> "Site":
        """Make a site of a dump's language and {number: name} of its namespaces."""
        images = (_namespace(names.get(key, "")) for key in ("6", "-2"))
        categories = _namespace(names.get("14", ""))
        known = cls()
        categories = known.categories | {categories}
        return cls(language, known.images.union(images), categories, bool(names))


UNKNOWN = Site()


def page_kind(title: str, namespace: int, redirect: bool, text: str) -> str | None:
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
    for heading, text in _sections(_text(code.nodes, dropped, site)):
        if heading.lower() in _REFERENCE_SECTIONS:
            dropped["reference sections"] += 1
            continue
        for block in _blocks(text, dropped):
            paragraph = _paragraph(block, dropped)
            if paragraph:
                paragraphs.append(paragraph)
    return paragraphs


def _text(nodes, dropped: Counter, site: Site) -> str:
    """Return the nodes as text, with headings between form feeds and marks for what is lost."""
    from mwparserfromhell import nodes as kinds

    parts = []
    for node in nodes:
        if isinstance(node, kinds.Text):
            parts.append(str(node.value))
        elif isinstance(node, kinds.Wikilink):
            parts.append(_link(node, dropped, site))
        elif isinstance(node, kinds.Template):
            parts.append(_template(node, dropped, site))
        elif isinstance(node, kinds.Tag):
            parts.append(_tag(node, dropped, site))
        elif isinstance(node, kinds.HTMLEntity):
            parts.append(_entity(node))
        elif isinstance(node, kinds.ExternalLink):
            if node.title is not None:
                parts.append(_text(node.title.nodes, dropped, site))
            else:
                dropped["bare links"] += 1
                parts.append("" if node.brackets else TEMPLATE)  # [1], or the address
        elif isinstance(node, kinds.Heading):
            dropped["headings"] += 1
            title = _text(node.title.nodes, Counter(), site).strip().replace("''", "")
            parts.append(f"\n\f{title}\f\n")
        elif isinstance(node, kinds.Argument):
            dropped["templates"] += 1
    return "".join(parts)


def _link(node, dropped: Counter, site: Site) -> str:
    target = str(node.title).strip()
    namespace, colon, rest = target.partition(":")
    namespace = _namespace(namespace)
    if colon and rest and namespace:
        if namespace in site.images or _MEDIA.search(rest):
            dropped["images"] += 1
            return ""
        if namespace in site.categories:
            dropped["categories"] += 1
            return ""
        if _LANGUAGE_LINK.fullmatch(namespace) and node.text is None:
            dropped["language links"] += 1
            return ""
    if node.text is not None:
        return _text(node.text.nodes, dropped, site)
    return target.lstrip(":")


def _namespace(name: str) -> str:
    return name.replace("_", " ").strip(" \t\n\u200e\u200f").lower()


def _without_capitals(switch) -> str:
    """Return a word between double underscores if it has a lower-case letter, else ""."""
    return switch.group() if any(map(str.islower, switch.group())) else ""


def _template(node, dropped: Counter, site: Site) -> str:
    name = str(node.name).strip().lower().replace("_", " ")
    if name in _FIXED:
        return _FIXED[name]
    arguments = [parameter.value for parameter in node.params if not parameter.showkey]
    if arguments and name in _FIRST_ARGUMENT:
        units = [node.get(key).value for key in ("u", "ul") if name == "val" and node.has(key)]
        parts = (_text(part.nodes, dropped, site) for part in (arguments[0], *units))
        return " ".join(parts)
    if name == "nihongo" and arguments:
        return _text(arguments[0].nodes, dropped, site)
    if arguments and (name in _LAST_ARGUMENT or name.startswith("lang-")):
        return _text(arguments[min(len(arguments) - 1, 1)].nodes, dropped, site)
    if name in ("convert", "cvt") and len(arguments) > 1:
        # {{convert|7|km|mi}} shows both units, of {{convert|7|to|9|km|mi}} too; the written one is
        # enough for a sentence.
        words = [_text(argument.nodes, dropped, site).strip() for argument in arguments]
        return " ".join(words[: 4 if words[1] in _RANGES else 2])
    if name in _FORMULAS:
        dropped["formulas"] += 1
        return FORMULA
    if name == "as of" and arguments:
        return f"{'as' if node.has('lc') else 'As'} of {_text(arguments[0].nodes, dropped, site)}"
    if shown := _SHOWS_ARGUMENT.fullmatch(str(node.name).strip()):
        return _plain(shown[2], dropped, site)
    dropped["templates"] += 1
    # A template on several lines of source is a box, which stands for no words of a sentence.
    first = str(node.params[0]) if node.params else ""
    return "" if "\n" in str(node.name) or "\n" in first else TEMPLATE


def _plain(source: str, dropped: Counter, site: Site) -> str:
    """Return the text of an argument; a template within it is lost."""
    import mwparserfromhell

    return _text(mwparserfromhell.parse(source, skip_style_tags=True).nodes, dropped, site).strip()


def _tag(node, dropped: Counter, site: Site) -> str:
    name = str(node.tag).strip().lower()
    if name in _LIST_MARKS and node.wiki_markup:
        return _LIST_LINE
    if name in ("br", "hr"):
        return "\n" if name == "hr" else " "
    if name in _DROPPED_TAGS or name in _LIST_MARKS:
        kind = _DROPPED_TAGS.get(name, "list items")
        dropped[kind] += 1
        inline = "code" if name in _INLINE_TAGS else kind
        return {"formulas": FORMULA, "code": TEMPLATE}.get(inline, "")
    if node.contents is None:
        return ""
    text = _text(node.contents.nodes, dropped, site)
    return f"\n{text}\n" if name in ("blockquote", "div", "p", "poem", "center") else text


def _entity(node) -> str:
    try:
        return node.normalize()
    except (ValueError, OverflowError):
        return ""


def _sections(text: str):
    """Yield (heading, text) of each section; the first has no heading."""
    parts = text.split("\f")
    yield "", parts[0]
    yield from zip(parts[1::2], parts[2::2], strict=False)


def _blocks(text: str, dropped: Counter):
    """Yield paragraphs; a blank line or a list item ends one, a single line end is a blank."""
    block = []
    for line in [*map(lost_words.without_boxes, text.split("\n")), ""]:
        is_list = line.lstrip().startswith(_LIST_LINE) or line[:1] in ("*", "#", ":", ";")
        dropped["list items"] += is_list
        if line.strip() and not is_list:
            block.append(line)
        elif block:
            yield " ".join(block)
            block = []


def _paragraph(line: str, dropped: Counter) -> str:
    """Return a paragraph of extracted text, cleaned; "" where it is not a passage."""
    line = re.sub(r"'{2,}", "", line.replace(_LIST_LINE, ""))
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
