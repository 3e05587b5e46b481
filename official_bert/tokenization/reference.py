"""The tokeniser of the original BERT, step by step: the definition that everything here equals.

A text becomes WordPieces in two stages. The basic tokeniser cleans the text and cuts it into words
and punctuation marks; WordPiece (Wu et al. 2016, cited in section 3 of the paper) then cuts each
word into the longest pieces that the vocabulary knows:

    "Unaffable, naïve!"  ->  unaffable , naive !  ->  una ##ffa ##ble , naive !

The rules are those of the published `FullTokenizer`, its corner cases included (a word-final sigma,
private-use characters, the limit of 200 characters), because the released vocabularies and
checkpoints were trained on exactly these pieces. Python's Unicode tables say which characters are
punctuation, marks and so on, so Python versions may differ on characters that Unicode added
recently.

This module is written to be read. `fast.py` computes the same pieces far faster.
"""

import itertools
import unicodedata
from collections.abc import Collection
from typing import NamedTuple

# A longer word is noise (a URL, a line of dashes) and becomes one [UNK].
MAX_WORD_CHARACTERS = 200

CJK_BLOCKS = (
    (0x3400, 0x4DBF),  # Extension A
    (0x4E00, 0x9FFF),  # Unified Ideographs
    (0xF900, 0xFAFF),  # Compatibility Ideographs
    (0x20000, 0x2A6DF),  # Extension B
    (0x2A700, 0x2B73F),  # Extension C
    (0x2B740, 0x2B81F),  # Extension D
    (0x2B820, 0x2CEAF),  # Extension E
    (0x2F800, 0x2FA1F),  # Compatibility Ideographs Supplement
)


class Rules(NamedTuple):
    """Options that differ between the basic tokenisers of released models.

    Attributes:
      do_lower_case: true for uncased vocabularies.
      strip_accents: None does as the original, which strips them where it lower-cases; German and
        other models of Hugging Face lower-case and keep them.
      tokenize_chinese_chars: makes every ideograph a word of its own.
    """

    do_lower_case: bool = True
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool = True

    @property
    def accents_go(self) -> bool:
        return self.do_lower_case if self.strip_accents is None else self.strip_accents


def tokenize(
    text: str,
    vocab: Collection[str],
    do_lower_case: bool,
    strip_accents: bool | None = None,
    tokenize_chinese_chars: bool = True,
    unk: str = "[UNK]",
) -> list[str]:
    """Cut a text into WordPieces.

    Args:
      text: any string. "[MASK]" in it is five letters of text in brackets, never the special token.
      vocab: the known pieces, with fast membership (a set or dict).
      do_lower_case, strip_accents, tokenize_chinese_chars: as the vocabulary was made; see `Rules`.
      unk: the piece for a word that cannot be built from known pieces.

    Returns:
      list[str], the pieces; continuations start with "##".
    """
    words = basic_tokenize(text, do_lower_case, strip_accents, tokenize_chinese_chars)
    return [piece for word in words for piece in wordpiece_tokenize(word, vocab, unk)]


def basic_tokenize(
    text: str,
    do_lower_case: bool,
    strip_accents: bool | None = None,
    tokenize_chinese_chars: bool = True,
) -> list[str]:
    """Cut a text into words and punctuation marks, cleaned and (if asked) lower-cased."""
    rules = Rules(do_lower_case, strip_accents, tokenize_chinese_chars)
    text = clean(text)
    if rules.tokenize_chinese_chars:
        text = space_around_ideographs(text)
    words = []
    for word in text.split():
        if rules.do_lower_case:
            word = word.lower()
        if rules.accents_go:
            word = without_accents(word)
        words.extend(split_on_punctuation(word).split())
    return words


def wordpiece_tokenize(word: str, vocab: Collection[str], unk: str = "[UNK]") -> list[str]:
    """Cut one word into pieces, taking from the left the longest piece the vocabulary has."""
    if len(word) > MAX_WORD_CHARACTERS:
        return [unk]
    pieces = []
    start = 0
    while start < len(word):
        prefix = "##" if start > 0 else ""
        for end in range(len(word), start, -1):
            piece = prefix + word[start:end]
            if piece in vocab:
                break
        else:  # not even one character matches: the whole word is unknown
            return [unk]
        pieces.append(piece)
        start = end
    return pieces


def clean(text: str) -> str:
    """Remove control characters and invalid ones; make every kind of blank a space."""
    return "".join(" " if is_blank(char) else char for char in text if not is_removed(char))


def space_around_ideographs(text: str) -> str:
    """Make every Chinese ideograph a word of its own: Chinese writes no blanks between words.

    Japanese kana and Korean hangul are not ideographs and stay joined as they are written.
    """
    return "".join(f" {char} " if is_ideograph(char) else char for char in text)


def without_accents(text: str) -> str:
    """Decompose letters (é becomes e and an acute accent) and drop the non-spacing marks."""
    return "".join(char for char in decomposed(text) if unicodedata.category(char) != "Mn")


def decomposed(text: str) -> str:
    """Return Unicode's form NFD: each letter before its marks, marks sorted by combining class.

    `unicodedata` takes time quadratic in a run of marks, so long texts go letter by letter.
    """
    if len(text) <= MAX_WORD_CHARACTERS:
        return unicodedata.normalize("NFD", text)
    chars = (part for char in text for part in unicodedata.normalize("NFD", char))
    runs = itertools.groupby(chars, lambda char: unicodedata.combining(char) > 0)
    ordered = (sorted(run, key=unicodedata.combining) if marks else run for marks, run in runs)
    return "".join(itertools.chain.from_iterable(ordered))


def split_on_punctuation(text: str) -> str:
    """Put spaces around every punctuation mark."""
    return "".join(f" {char} " if is_punctuation(char) else char for char in text)


def is_removed(char: str) -> bool:
    """Return whether the tokeniser removes a character.

    It removes U+0000, U+FFFD, and control and format characters (Cc, Cf) except tab and line ends.
    """
    if char in "\t\n\r":
        return False
    return char in "\0\ufffd" or unicodedata.category(char) in ("Cc", "Cf")


def is_blank(char: str) -> bool:
    """Return whether a character is a space separator (Zs), a tab or a line end."""
    return char in " \t\n\r" or unicodedata.category(char) == "Zs"


def is_punctuation(char: str) -> bool:
    """Return whether a character is Unicode punctuation, or an ASCII mark or symbol."""
    if char < "\x80":
        return "!" <= char <= "~" and not char.isalnum()
    return unicodedata.category(char).startswith("P")


def is_ideograph(char: str) -> bool:
    """Return whether a character is in the blocks of CJK ideographs that the original lists."""
    return any(first <= ord(char) <= last for first, last in CJK_BLOCKS)
