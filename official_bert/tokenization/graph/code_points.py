"""Tables of the basic tokeniser's work on each Unicode character, in numpy.

`in_graph.py` bakes these into its graph. They are made by calling the reference's own functions, so
a graph cuts texts as the Python that exported it does, wherever it runs later and whatever version
of Unicode the libraries there know.
"""

import functools
import unicodedata
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from official_bert.tokenization import reference

CODE_POINTS = 0x110000

# Kinds of characters.
BLANK, LETTER, ALONE, REMOVED = range(4)
# Classes of characters in the rule for word-final sigma.
UNCASED, CASED, CASE_IGNORABLE = range(3)


class Replacements(NamedTuple):
    """The replacement of each code point: no, one or several code points.

    Attributes:
      numbers: int32 [code points], the number of its replacement; 0 for characters that stay.
      starts, lengths: int32 [replacements], the part of `points` that each replacement is. Number 0
        has length 1.
      points: int32, code points.
    """

    numbers: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    points: np.ndarray


def replacements(
    new: Callable[[str], str], characters: Iterable[str], size: int = CODE_POINTS
) -> Replacements:
    """Tabulate the replacements `new(character)` of some characters, for `size` code points."""
    numbers, texts = np.zeros(size, np.int32), ["\0"]
    for char in characters:
        if (text := new(char)) != char:
            numbers[ord(char)] = len(texts)
            texts.append(text)
    lengths = np.array([*map(len, texts)], np.int32)
    starts = (np.cumsum(lengths) - lengths).astype(np.int32)
    return Replacements(numbers, starts, lengths, np.array([*map(ord, "".join(texts))], np.int32))


class CodePointTables(NamedTuple):
    """One value for each code point, uint8 [0x110000], and the replacements.

    Attributes:
      kind: BLANK, LETTER, ALONE (punctuation and ideographs) or REMOVED.
      case: UNCASED, CASED or CASE_IGNORABLE.
      order: the canonical combining class of characters that keep it after accents are stripped.
      is_ideograph: 1 for ideographs that are words of their own.
      replacements: lower case, decomposed without accents, or both.
    """

    kind: np.ndarray
    case: np.ndarray
    order: np.ndarray
    is_ideograph: np.ndarray
    replacements: Replacements


@functools.lru_cache(maxsize=2)
def code_point_tables(rules: reference.Rules) -> CodePointTables:
    """Return the tables of the rules; nothing is replaced where case and accents stay."""
    kind, order, is_ideograph = (np.full(CODE_POINTS, n, np.uint8) for n in (LETTER, 0, 0))
    for char in defined():
        kind[ord(char)] = _kind(char)
        if rules.accents_go and unicodedata.category(char) != "Mn":
            order[ord(char)] = unicodedata.combining(char)

    def letters(char):
        # The table says σ for Σ; the word-final form needs its neighbours.
        lower = char.lower() if rules.do_lower_case else char
        return reference.without_accents(lower) if rules.accents_go else lower

    if rules.tokenize_chinese_chars:
        for first, last in reference.CJK_BLOCKS:
            is_ideograph[first : last + 1] = 1
        kind[is_ideograph == 1] = ALONE
    case = case_table() if rules.do_lower_case else np.zeros_like(kind)
    return CodePointTables(kind, case, order, is_ideograph, replacements(letters, defined()))


@functools.cache
def case_table() -> np.ndarray:
    """Return `CodePointTables.case` for lower-casing rules."""
    case = np.zeros(CODE_POINTS, np.uint8)
    for char in defined():
        case[ord(char)] = _case(char)
    return case


@functools.cache
def defined() -> str:
    """Return the characters that Unicode defines, about one code point in four.

    The others count as letters without case.
    """
    characters = map(chr, range(CODE_POINTS))
    return "".join(c for c in characters if unicodedata.category(c) not in ("Cn", "Co", "Cs"))


def _kind(char):
    if reference.is_removed(char):
        return REMOVED
    if reference.is_blank(char) or char.isspace():  # U+2028 is a blank to `str.split` alone
        return BLANK
    return ALONE if reference.is_punctuation(char) else LETTER


def _case(char):
    # Python has no function for these properties, but its lower() shows them: a sigma is final
    # after a cased letter, apart from ignorable characters between them.
    if f"A{char}Σ".lower()[-1] != "ς":
        return UNCASED
    return CASED if f"{char}Σ".lower()[-1] == "ς" else CASE_IGNORABLE
