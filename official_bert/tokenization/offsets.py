"""Offsets of each WordPiece in the text it came from.

SQuAD answers and tags are spans of the original text, but pieces come from a text that was cleaned,
lower-cased and decomposed. So this module repeats the basic tokeniser's steps on characters that
remember their place.
"""

import unicodedata
from collections.abc import Callable, Collection
from typing import NamedTuple

from official_bert.tokenization import reference


class Placed(NamedTuple):
    """A character (or a piece) and the part [start, end) of the original text it stands for."""

    text: str
    start: int
    end: int


def tokenize_with_offsets(
    text: str, vocab: Collection[str], rules: reference.Rules, unk: str = "[UNK]"
) -> list[Placed]:
    """Return the pieces of `reference.tokenize`, each with the span that it was made from.

    Accents that were stripped belong to the letter before them, so spans end at whole letters.
    Where one character of the text became several pieces (a hangul syllable in its jamo), these
    have the same span. An unknown word is one piece over the whole word.
    """

    def cut(letters):
        for number, piece in enumerate(reference.wordpiece_tokenize(letters, vocab, unk)):
            spelt = len(piece) - 2 if number else len(piece)
            # An unknown word does not spell the letters it covers.
            yield piece, len(letters) if piece == unk else spelt

    return pieces_of_words(text, rules, cut)


def pieces_of_words(text: str, rules: reference.Rules, cut: Callable) -> list[Placed]:
    """Return the pieces of a text, cut word by word.

    `cut` maps a word's letters to (piece, number of characters that it takes).
    """
    pieces = []
    for word in words_with_offsets(text, rules):
        at = 0
        for piece, length in cut("".join(char.text for char in word)):
            covered, at = word[at : at + length], at + length
            start, end = min(c.start for c in covered), max(c.end for c in covered)
            pieces.append(Placed(piece, start, end))
    return pieces


def words_with_offsets(text: str, rules: reference.Rules) -> list[list[Placed]]:
    """Return the words of `reference.basic_tokenize`, each a list of its placed characters."""
    words = []
    for word in _split_at_blanks(text, rules):
        if rules.do_lower_case:
            word = lower(word)
        if rules.accents_go:
            word = _without_accents(word)
        words.extend(_split_on_punctuation(word))
    return words


def _split_at_blanks(text, rules):
    """Apply `clean`, `space_around_ideographs` and `split`."""
    words, word = [], []
    for index, char in enumerate(text):
        if reference.is_removed(char):
            continue
        alone = rules.tokenize_chinese_chars and reference.is_ideograph(char)
        # isspace: U+2028 and U+2029 are not blanks to `clean`, but `split` cuts there too.
        blank = reference.is_blank(char) or char.isspace()
        if (alone or blank) and word:
            words.append(word)
            word = []
        if alone:
            words.append([Placed(char, index, index + 1)])
        elif not blank:
            word.append(Placed(char, index, index + 1))
    return [*words, word] if word else words


def lower(word: list[Placed]) -> list[Placed]:
    """Lower-case a word or a text."""
    # The whole is lower-cased at once, since a sigma depends on its neighbours; each letter alone
    # shows how many letters its lower case has (two for U+0130).
    lowered = iter("".join(char.text for char in word).lower())
    return [Placed(next(lowered), c.start, c.end) for c in word for _ in c.text.lower()]


def _without_accents(word):
    letters = []
    for char in word:
        if reference.without_accents(char.text):
            letters.append(char)
        elif letters:  # an accent typed by itself widens the letter before it
            letters[-1] = letters[-1]._replace(end=char.end)
    return [char for char in _decompose(letters) if unicodedata.category(char.text) != "Mn"]


def _decompose(word):
    """Apply NFD: decompose every character, then sort each run of marks by combining class."""
    parts = [
        Placed(part, char.start, char.end)
        for char in word
        for part in unicodedata.normalize("NFD", char.text)
    ]
    run_starts = 0
    for index in range(1, len(parts) + 1):
        if index == len(parts) or not unicodedata.combining(parts[index].text):
            # The letter at run_starts has class 0 and stays first.
            parts[run_starts:index] = sorted(
                parts[run_starts:index], key=lambda part: unicodedata.combining(part.text)
            )
            run_starts = index
    return parts


def _split_on_punctuation(word):
    words, current = [], []
    for char in word:
        # Decomposition makes no blank, so only punctuation is looked for.
        if reference.is_punctuation(char.text):
            words.extend([current, [char]])
            current = []
        else:
            current.append(char)
    return [found for found in [*words, current] if found]
