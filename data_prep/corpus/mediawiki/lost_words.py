"""Templates that stood for words of a sentence, told from notes and boxes by their place.

A dump's page lacks the text that a template shows. "The village has {{formatnum:5000}} people"
loses a word with it; "The village is old.{{citation needed}}" loses nothing. Names of templates are
a wiki's own, so their places decide. A note is attached to the word or mark before it, and a blank
or a mark follows. A box has a line of its own, or begins one before a capital letter or bold type.
A separate item in brackets is removed with its comma. Elsewhere a template leaves a hole.
"""

import regex

FORMULA, TEMPLATE = "\x02", "\x03"  # stand for them in extracted text

HOLE = regex.compile(f"[{FORMULA}{TEMPLATE}]")

_BOX_BEFORE_TEXT = regex.compile(rf"^\s*+(?:{TEMPLATE}\s*+)++(?=''|\p{{Lu}})|^[\s{TEMPLATE}]+$")
_SEVERAL = regex.compile(rf"{TEMPLATE}(?: ?{TEMPLATE})++")
_OPEN, _COMMA, _CLOSE = r"(?<=[(（\[])", r"[,;:，；、]", r"(?=\s?[)）\]])"
_ITEM = regex.compile(
    rf"{_OPEN}(?:\s?{TEMPLATE}\s?{_COMMA})*+\s?{TEMPLATE}{_CLOSE}|"
    rf"{_OPEN}(?:\s?{TEMPLATE}\s?{_COMMA})++\s?|{_COMMA}\s?{TEMPLATE}{_CLOSE}"
)
_NOTE = regex.compile(
    rf"(?<=[\w\p{{M}}\p{{Sentence_Terminal}}\p{{Pe}}\p{{Pf}},;:%…]|\S[\"']){TEMPLATE}"
    rf"(?=[\s\p{{Sentence_Terminal}}\p{{Pe}}\p{{Pf}},;:…]|$)|"
    # Behind a full stop without a blank, and at the end of a paragraph.
    rf"(?<=[[\p{{Sentence_Terminal}}…]--[.]]){TEMPLATE}|(?<=[.])({TEMPLATE})(?=\p{{Lu}})|"
    rf"(?<=[\p{{Sentence_Terminal}}…\p{{Pe}}\p{{Pf}}\"'] ){TEMPLATE}$",
    regex.V1,
)


def without_boxes(line: str) -> str:
    """Return a line of extracted text without templates that stand for no words."""
    return _BOX_BEFORE_TEXT.sub("", line)


def holes(paragraph: str) -> str:
    """Return a paragraph without templates but holes; each hole is between blanks.

    Args:
      paragraph: with single blanks.
    """
    if TEMPLATE in paragraph:
        paragraph = _SEVERAL.sub(TEMPLATE, paragraph)
        paragraph = _NOTE.sub("", _ITEM.sub("", paragraph))
    return HOLE.sub(lambda hole: f" {hole.group()} ", paragraph)


def has_words(paragraph: str) -> bool:
    return any(map(str.isalnum, paragraph))
