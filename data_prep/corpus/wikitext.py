"""The text passages of one MediaWiki page.

"For Wikipedia we extract only the text passages and ignore lists, tables, and headers" (section
3.1). mwparserfromhell (MIT) parses the wikitext; what is kept of the tree is decided here. Comments
and references, half of an article's characters, are cut out before parsing: they never hold text
and take most of the parser's time.
"""

import re
from collections import Counter

# Sections without passages; what they hold beside lists is credits and links.
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

# Elements whose contents are no passage. Others (b, i, sub, span, blockquote, ...) are transparent.
_DROPPED_TAGS = {
    "ref": "references", "references": "references", "table": "tables", "math": "formulas",
    "chem": "formulas", "gallery": "images", "imagemap": "images", "timeline": "images",
    "source": "code", "syntaxhighlight": "code", "pre": "code", "score": "images",
    "hiero": "images", "graph": "images", "mapframe": "images", "templatestyles": "templates",
    "ul": "list items", "ol": "list items", "dl": "list items",
}  # fmt: skip
_LIST_MARKS = {"li", "dd", "dt"}
_IMAGES = {
    "file",
    "image",
    "media",
    "datei",
    "bild",
    "fichier",
    "archivo",
    "ファイル",
    "文件",
    "파일",
}
_CATEGORIES = {"category", "kategorie", "catégorie", "categoría", "分类", "分類", "분류"}

_COMMENT = re.compile(r"<!--.*?(-->|\Z)", re.DOTALL)
_REFERENCE = re.compile(r"<ref\b[^<>]*/>|<ref\b[^<>]*>.*?</ref\s*>", re.DOTALL | re.IGNORECASE)
_DISAMBIGUATION = re.compile(
    r"\{\{\s*([\w ]*\bdisambig(uation)?\b[\w ]*|disamb|dab|hndis|geodis|surname|given name|"
    r"set index article|sia|begriffsklärung|homonymie)\s*[|}]",
    re.IGNORECASE,
)
_REDIRECT = re.compile(
    r"\s*#\s*(redirect|weiterleitung|redirection|redirección|重定向|넘겨주기)\b", re.I
)
_LANGUAGE_LINK = re.compile(r"[a-z]{2,3}(-[a-z]+)*|simple|zh-min-nan")
_LIST_LINE, _HOLE = "\x01", "\x02"  # marks in extracted text: a list item's line, a lost formula
_EMPTY_BRACKETS = re.compile(r"\s*[(\[]\s*[,;:.\s–-]*\s*[)\]]")
_LEFTOVER = re.compile(r"\{\||\|\}|\{\{|\}\}|\[\[|\]\]|</?[a-zA-Z][^<>]*>|^\s*[|!]|\|\||=\s*$")
_SWITCH = re.compile(r"__[A-Z]+__")  # __NOTOC__
_ENDS_SENTENCE = re.compile(r"[.!?。！？…][\"'”’»)\]]*(\s|$)|[。！？]")


def page_kind(title: str, namespace: int, redirect: bool, text: str) -> str | None:
    """Why a page is no article ("redirect", "other namespace", ...); None for an article."""
    if namespace != 0:
        return "other namespace"
    if redirect or _REDIRECT.match(text):
        return "redirect"
    if _DISAMBIGUATION.search(text) or title.endswith("(disambiguation)"):
        return "disambiguation"
    return None


def passages(wikitext: str, dropped: Counter | None = None) -> list[str]:
    """The page's paragraphs of running text, in order, each one line of plain text.

    Args:
      wikitext: the page's source.
      dropped: counts what was left out, by kind ("templates", "tables", "list items", ...).
    """
    import mwparserfromhell

    dropped = Counter() if dropped is None else dropped
    wikitext = _SWITCH.sub("", _COMMENT.sub("", wikitext))
    wikitext, references = _REFERENCE.subn("", wikitext)
    dropped["references"] += references
    # Quotation marks for bold and italics are taken out by hand: unbalanced ones mislead a parser.
    code = mwparserfromhell.parse(wikitext, skip_style_tags=True)
    paragraphs = []
    for heading, text in _sections(_text(code.nodes, dropped)):
        if heading.lower() in _REFERENCE_SECTIONS:
            dropped["reference sections"] += 1
            continue
        for block in _blocks(text, dropped):
            paragraph = _paragraph(block, dropped)
            if paragraph:
                paragraphs.append(paragraph)
    return paragraphs


def _text(nodes, dropped: Counter) -> str:
    """The nodes as text in which headings stand between form feeds and marks show what is lost."""
    from mwparserfromhell import nodes as kinds

    parts = []
    for node in nodes:
        if isinstance(node, kinds.Text):
            parts.append(str(node.value))
        elif isinstance(node, kinds.Wikilink):
            parts.append(_link(node, dropped))
        elif isinstance(node, kinds.Template):
            parts.append(_template(node, dropped))
        elif isinstance(node, kinds.Tag):
            parts.append(_tag(node, dropped))
        elif isinstance(node, kinds.HTMLEntity):
            parts.append(_entity(node))
        elif isinstance(node, kinds.ExternalLink):
            if node.title is not None:
                parts.append(_text(node.title.nodes, dropped))
            else:
                dropped["bare links"] += 1
        elif isinstance(node, kinds.Heading):
            dropped["headings"] += 1
            title = _text(node.title.nodes, Counter()).strip().replace("''", "")
            parts.append(f"\n\f{title}\f\n")
        elif isinstance(node, kinds.Argument):
            dropped["templates"] += 1
    return "".join(parts)


def _link(node, dropped: Counter) -> str:
    target = str(node.title).strip()
    namespace, colon, rest = target.partition(":")
    namespace = namespace.strip().lower()
    if colon and rest:
        if namespace in _IMAGES:
            dropped["images"] += 1
            return ""
        if namespace in _CATEGORIES:
            dropped["categories"] += 1
            return ""
        if _LANGUAGE_LINK.fullmatch(namespace) and node.text is None:
            dropped["language links"] += 1
            return ""
    if node.text is not None:
        return _text(node.text.nodes, dropped)
    return target.lstrip(":")


def _template(node, dropped: Counter) -> str:
    name = str(node.name).strip().lower().replace("_", " ")
    if name in _FIXED:
        return _FIXED[name]
    arguments = [parameter.value for parameter in node.params if not parameter.showkey]
    if arguments and name in _FIRST_ARGUMENT:
        return _text(arguments[0].nodes, dropped)
    if name == "nihongo" and arguments:
        return _text(arguments[0].nodes, dropped)
    if arguments and (name in _LAST_ARGUMENT or name.startswith("lang-")):
        return _text(arguments[min(len(arguments) - 1, 1)].nodes, dropped)
    if name in ("convert", "cvt") and len(arguments) > 1:
        # {{convert|7|km|mi}} shows both units, of {{convert|7|to|9|km|mi}} too; the written one is
        # enough for a sentence.
        words = [_text(argument.nodes, dropped).strip() for argument in arguments]
        return " ".join(words[: 4 if words[1] in _RANGES else 2])
    if name in _FORMULAS:
        dropped["formulas"] += 1
        return _HOLE
    if name == "as of" and arguments:
        return f"{'as' if node.has('lc') else 'As'} of {_text(arguments[0].nodes, dropped)}"
    dropped["templates"] += 1
    return ""


def _tag(node, dropped: Counter) -> str:
    name = str(node.tag).strip().lower()
    if name in _LIST_MARKS and node.wiki_markup:
        return _LIST_LINE
    if name in ("br", "hr"):
        return "\n" if name == "hr" else " "
    if name in _DROPPED_TAGS or name in _LIST_MARKS:
        kind = _DROPPED_TAGS.get(name, "list items")
        dropped[kind] += 1
        return _HOLE if kind == "formulas" else ""
    if node.contents is None:
        return ""
    text = _text(node.contents.nodes, dropped)
    return f"\n{text}\n" if name in ("blockquote", "div", "p", "poem", "center") else text


def _entity(node) -> str:
    try:
        return node.normalize()
    except (ValueError, OverflowError):
        return ""


def _sections(text: str):
    """(heading, text) of each section; the first has no heading."""
    parts = text.split("\f")
    yield "", parts[0]
    yield from zip(parts[1::2], parts[2::2], strict=False)


def _blocks(text: str, dropped: Counter):
    """Paragraphs: a single line end inside one is a blank, a blank line or a list item ends it."""
    block = []
    for line in [*text.split("\n"), ""]:
        is_list = line.lstrip().startswith(_LIST_LINE) or line[:1] in ("*", "#", ":", ";")
        dropped["list items"] += is_list
        if line.strip() and not is_list:
            block.append(line)
        elif block:
            yield " ".join(block)
            block = []


def _paragraph(line: str, dropped: Counter) -> str:
    """A paragraph of extracted text cleaned, or "" where it is no passage."""
    line = re.sub(r"'{2,}", "", line.replace(_LIST_LINE, ""))
    if _HOLE in line:
        # A sentence that lost its formula is no sentence; it goes after splitting.
        line = re.sub(rf"\s*{_HOLE}\s*", f" {_HOLE} ", line)
    line = _EMPTY_BRACKETS.sub("", line)
    line = re.sub(r"\(\s*[,;]\s*", "(", line)  # "(; born 1957)", whose first part was a template
    line = re.sub(r"\s+([,.;:!?)])", r"\1", " ".join(line.split())).lstrip(",.;: ")
    if not line:
        return ""
    if _LEFTOVER.search(line):
        dropped["paragraphs with leftover markup"] += 1
        return ""
    if not _ENDS_SENTENCE.search(line):
        dropped["paragraphs without a sentence"] += 1
        return ""
    return line


def without_holes(sentences: list[str], dropped: Counter) -> list[str]:
    """The sentences that did not lose a formula."""
    whole = [sentence for sentence in sentences if _HOLE not in sentence]
    dropped["sentences with a formula"] += len(sentences) - len(whole)
    return whole
