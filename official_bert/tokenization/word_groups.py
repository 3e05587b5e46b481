"""Words of running text, for tagging; the twin inside the graph is `export.tagging`.

A tagger learns one tag a word, from one piece of the word, on text that people cut by the rules of
CoNLL. Here other text is cut nearly so. Blanks separate words, and punctuation at either side is a
word of its own ("Baghdad." is two words, "Jean-Claude" one). The full stop of an abbreviation stays
with it ("U.N.", "J."). Every ideograph is a word. Serving sees pieces, not characters, so a mark
that the vocabulary lacks is not a mark there.
"""

from collections.abc import Sequence

from official_bert.tokenization import reference
from official_bert.tokenization.offsets import words_with_offsets

RULES = reference.Rules(do_lower_case=False)
LAST_CODE = 0x30000  # beyond it are no marks, and no ideographs that are words


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the characters [start, end) of each word.

    Characters that the tokeniser removes (control characters, soft hyphens) neither end nor make a
    word.
    """
    kept = [(place, char) for place, char in enumerate(text) if not reference.is_removed(char)]
    filled = [(i, place, char) for i, (place, char) in enumerate(kept) if not char.isspace()]
    places = [place for _, place, _ in filled]
    begins = first_pieces([char for *_, char in filled], [(i, i + 1) for i, *_ in filled])
    ends = [*begins[1:], len(filled)]
    return [(places[first], places[end - 1] + 1) for first, end in zip(begins, ends, strict=False)]


def first_pieces(pieces: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[int]:
    """Return the indices of the pieces that begin a word.

    Args:
      pieces: those of a text, or its characters.
      spans: the characters [start, end) of each.
    """
    found: list[int] = []
    begin = 0
    for end in range(1, len(pieces) + 1):
        # Blanks separate chunks.
        if end == len(pieces) or spans[end][0] > spans[end - 1][1]:
            found += _of_chunk(pieces, spans, begin, end)
            begin = end
    return found


def basic_words(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Return the basic tokeniser's words and their spans, with "a" for each word of several
    letters.

    Only lone characters may be marks.
    """
    found = words_with_offsets(text, RULES)
    lone = [len(word) == 1 and ord(word[0].text) < LAST_CODE for word in found]
    words = [word[0].text if one else "a" for word, one in zip(found, lone, strict=True)]
    return words, [(min(c.start for c in w), max(c.end for c in w)) for w in found]


def _of_chunk(pieces, spans, begin: int, end: int) -> list[int]:
    core = [i for i in range(begin, end) if not _is_mark(pieces[i])]
    if not core:
        return list(range(begin, end))
    first, last = core[0], core[-1]
    if last + 1 < end and pieces[last + 1] == ".":  # an abbreviation keeps its full stop
        inner = any(pieces[i] == "." for i in range(first + 1, last))
        letter = first == last and spans[first][1] - spans[first][0] == 1
        last += inner or letter
    return [
        i
        for i in range(begin, end)
        if i <= first or i > last or _is_ideograph(pieces[i]) or _is_ideograph(pieces[i - 1])
    ]


def _is_mark(piece: str) -> bool:
    return len(piece) == 1 and reference.is_punctuation(piece)


def _is_ideograph(piece: str) -> bool:
    return len(piece) == 1 and reference.is_ideograph(piece)
