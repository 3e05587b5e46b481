"""Tables of what the basic tokeniser does to each Unicode character, in numpy.

`in_graph.py` bakes these into its graph. They are made by calling the reference's own functions, so
a graph cuts texts as the Python that exported it does, wherever it runs later and whatever version
of Unicode the libraries there know.
"""

import functools
import unicodedata
from typing import NamedTuple

import numpy as np

from official_bert.tokenization import reference

CODE_POINTS = 0x110000

# Kinds of characters.
LETTER, BLANK, ALONE, REMOVED = range(4)
# What a character is to the rule for word-final sigma.
UNCASED, CASED, CASE_IGNORABLE = range(3)


class CodePointTables(NamedTuple):
    """One value for each code point, uint8 or int32 [0x110000], and the replacements.

    Attributes:
      kind: LETTER, BLANK, ALONE (punctuation and ideographs) or REMOVED.
      case: UNCASED, CASED or CASE_IGNORABLE.
      order: the canonical combining class of characters that keep it after accents are stripped.
      is_ideograph: 1 for ideographs that are words of their own.
      replacement: 0 for characters that stay, else which replacement the character gets.
      replacement_start, replacement_length: int32 [replacements], the part of replacement_points
        that is the replacement (none for accents). Number 0 has length 1.
      replacement_points: int32, code points in lower case, decomposed without accents, or both.
    """

    kind: np.ndarray
    case: np.ndarray
    order: np.ndarray
    is_ideograph: np.ndarray
    replacement: np.ndarray
    replacement_start: np.ndarray
    replacement_length: np.ndarray
    replacement_points: np.ndarray


@functools.lru_cache(maxsize=2)
def code_point_tables(rules: reference.Rules) -> CodePointTables:
    """The tables of some rules; nothing is replaced where case and accents stay."""
    kind, case, order, is_ideograph = (np.zeros(CODE_POINTS, np.uint8) for _ in range(4))
    replacement = np.zeros(CODE_POINTS, np.int32)
    lengths, points = [1], [0]
    for char in defined():
        code_point = ord(char)
        kind[code_point] = _kind(char)
        letters = char
        if rules.do_lower_case:
            case[code_point] = _case(char)
            # The table says σ for Σ; the word-final form needs its neighbours.
            letters = letters.lower()
        if rules.accents_go:
            if unicodedata.category(char) != "Mn":
                order[code_point] = unicodedata.combining(char)
            letters = reference.without_accents(letters)
        if letters != char:
            replacement[code_point] = len(lengths)
            lengths.append(len(letters))
            points.extend(map(ord, letters))
    if rules.tokenize_chinese_chars:
        for first, last in reference.CJK_BLOCKS:
            is_ideograph[first : last + 1] = 1
        kind[is_ideograph == 1] = ALONE
    length = np.array(lengths, np.int32)
    start = (np.cumsum(length) - length).astype(np.int32)
    points = np.array(points, np.int32)
    return CodePointTables(kind, case, order, is_ideograph, replacement, start, length, points)


def case_table() -> np.ndarray:
    """`CodePointTables.case` alone."""
    case = np.zeros(CODE_POINTS, np.uint8)
    for char in defined():
        case[ord(char)] = _case(char)
    return case


@functools.cache
def defined() -> str:
    """The characters that Unicode defines, one in four; the others are letters without case."""
    characters = map(chr, range(CODE_POINTS))
    return "".join(c for c in characters if unicodedata.category(c) not in ("Cn", "Co", "Cs"))


def _kind(char):
    if reference.is_removed(char):
        return REMOVED
    if reference.is_blank(char) or char.isspace():  # U+2028 is a blank to `str.split` alone
        return BLANK
    return ALONE if reference.is_punctuation(char) else LETTER


def _case(char):
    # Python does not give these properties, but shows them: a sigma is final after a cased letter,
    # ignorable characters between them left aside.
    if f"A{char}Σ".lower()[-1] != "ς":
        return UNCASED
    return CASED if f"{char}Σ".lower()[-1] == "ς" else CASE_IGNORABLE
