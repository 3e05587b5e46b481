"""The cost of unclosed markup: pages that would take a parser minutes are found before it runs.

For each unclosed mark a parser searches the page to its end. That cost is counted in characters,
not measured in seconds, so that the same pages are left out on every machine.
"""

import re

_MOST = 5_000_000  # characters that may be searched in vain: about a second
_LONGEST = 1 << 22  # characters of a page; MediaWiki takes 2 MB

# Marks -> their closing marks; a tag is closed by its own name or by "/>".
_CLOSED_BY = {"{{": "}}", "{|": "|}", "[[": "]]", "[": "]", "<!--": "-->"}
_OPENED_BY = {close: opening for opening, close in _CLOSED_BY.items()}
_MARKS = re.compile(
    r"\{\{|\}\}|\{\||\|\}(?!\})|\[\[|\]\]|\[(?=[a-z]*:?//)|\]|<!--|-->|/>|<([a-z][a-z0-9]*)"
    r"|</([a-z][a-z0-9]*)\s*>",
    re.IGNORECASE,
)
# Tags that the parser takes for complete where nothing closes them.
_SINGLE = frozenset(["br", "hr", "wbr", "meta", "link", "img", "li", "dt", "dd", "th", "td", "tr"])


class TooSlow(ValueError):
    """A page would take too long."""


def check(wikitext: str) -> None:
    """Check that a page can be parsed in time.

    Raises:
      TooSlow: the page is too long, or to parse it would take too long.
    """
    if len(wikitext) > _LONGEST or parse_cost(wikitext) > _MOST:
        raise TooSlow


def parse_cost(wikitext: str) -> int:
    """Return the number of characters behind each unclosed mark, added up."""
    opened: dict[str, list[int]] = {}
    last = None  # the tag that "/>" would close
    for mark in _MARKS.finditer(wikitext):
        text, (tag, closed) = mark.group(), mark.groups()
        closing = closed is not None
        if tag or closed:
            name = f"<{(tag or closed).lower()}"
        elif text == "/>":
            name, closing = last, True
        else:
            name, closing = _OPENED_BY.get(text, text), text in _OPENED_BY
        if not closing:
            if tag is None or tag.lower() not in _SINGLE:
                opened.setdefault(name, []).append(mark.start())
            last = name if tag is not None else last
        elif opened.get(name):
            opened[name].pop()
    return sum(len(wikitext) - place for places in opened.values() for place in places)
