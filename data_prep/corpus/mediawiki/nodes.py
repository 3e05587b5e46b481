"""The text of a parsed page, node by node: what of links, templates and tags is shown.

Lists of names are English Wikipedia's and MediaWiki's own; a wiki's names are in its `Site`.
"""

import re
from collections import Counter
from typing import NamedTuple

from data_prep.corpus.mediawiki.lost_words import FORMULA, TEMPLATE

# Templates that stand for words inside a sentence; all others are boxes, notes and references.
_FIRST_ARGUMENT = {
    "nowrap", "nobr", "small", "smaller", "em", "strong", "vanchor", "sic", "angbr", "val", "nts",
}  # fmt: skip
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
_LANGUAGE_LINK = re.compile(r"[a-z]{2,3}(-[a-z]+)*|simple|zh-min-nan")
LIST_LINE = "\x01"  # marks a list item's line in extracted text


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


def text_of(nodes, dropped: Counter, site: Site) -> str:
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
                parts.append(text_of(node.title.nodes, dropped, site))
            else:
                dropped["bare links"] += 1
                parts.append("" if node.brackets else TEMPLATE)  # [1], or the address
        elif isinstance(node, kinds.Heading):
            dropped["headings"] += 1
            title = text_of(node.title.nodes, Counter(), site).strip().replace("''", "")
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
        return text_of(node.text.nodes, dropped, site)
    return target.lstrip(":")


def _namespace(name: str) -> str:
    return name.replace("_", " ").strip(" \t\n\u200e\u200f").lower()


def _template(node, dropped: Counter, site: Site) -> str:
    name = str(node.name).strip().lower().replace("_", " ")
    if name in _FIXED:
        return _FIXED[name]
    arguments = [parameter.value for parameter in node.params if not parameter.showkey]
    if arguments and name in _FIRST_ARGUMENT:
        units = [node.get(key).value for key in ("u", "ul") if name == "val" and node.has(key)]
        parts = (text_of(part.nodes, dropped, site) for part in (arguments[0], *units))
        return " ".join(parts)
    if name == "nihongo" and arguments:
        return text_of(arguments[0].nodes, dropped, site)
    if arguments and (name in _LAST_ARGUMENT or name.startswith("lang-")):
        return text_of(arguments[min(len(arguments) - 1, 1)].nodes, dropped, site)
    if name in ("convert", "cvt") and len(arguments) > 1:
        # {{convert|7|km|mi}} shows both units, of {{convert|7|to|9|km|mi}} too; the written one is
        # enough for a sentence.
        words = [text_of(argument.nodes, dropped, site).strip() for argument in arguments]
        return " ".join(words[: 4 if words[1] in _RANGES else 2])
    if name in _FORMULAS:
        dropped["formulas"] += 1
        return FORMULA
    if name == "as of" and arguments:
        return f"{'as' if node.has('lc') else 'As'} of {text_of(arguments[0].nodes, dropped, site)}"
    if shown := _SHOWS_ARGUMENT.fullmatch(str(node.name).strip()):
        return _plain(shown[2], dropped, site)
    dropped["templates"] += 1
    # A template on several lines of source is a box, which stands for no words of a sentence.
    first = str(node.params[0]) if node.params else ""
    return "" if "\n" in str(node.name) or "\n" in first else TEMPLATE


def _plain(source: str, dropped: Counter, site: Site) -> str:
    """Return the text of an argument; a template within it is lost."""
    import mwparserfromhell

    return text_of(
        mwparserfromhell.parse(source, skip_style_tags=True).nodes, dropped, site
    ).strip()


def _tag(node, dropped: Counter, site: Site) -> str:
    name = str(node.tag).strip().lower()
    if name in _LIST_MARKS and node.wiki_markup:
        return LIST_LINE
    if name in ("br", "hr"):
        return "\n" if name == "hr" else " "
    if name in _DROPPED_TAGS or name in _LIST_MARKS:
        kind = _DROPPED_TAGS.get(name, "list items")
        dropped[kind] += 1
        inline = "code" if name in _INLINE_TAGS else kind
        return {"formulas": FORMULA, "code": TEMPLATE}.get(inline, "")
    if node.contents is None:
        return ""
    text = text_of(node.contents.nodes, dropped, site)
    return f"\n{text}\n" if name in ("blockquote", "div", "p", "poem", "center") else text


def _entity(node) -> str:
    try:
        return node.normalize()
    except (ValueError, OverflowError):
        return ""
