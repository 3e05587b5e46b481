"""Readable text from WordPieces."""

from collections.abc import Iterable

from official_bert.tokenization import reference

LEFT_OUT = {"[PAD]", "[CLS]", "[SEP]"}  # [MASK] and [UNK] stay, since they say something
_CLOSING = set(".,;:!?%)]}…»”、。，．！？：；）】」』》")  # close to the word before
_OPENING = set("([{«“$£€#@（【「『《")  # close to the word after
_JOINING = set("-–/_")  # close to both, where both are words
_APOSTROPHES = set("'’")
_AFTER_APOSTROPHE = {"s", "t", "re", "ve", "ll", "d", "m", "clock"}


def pieces_to_text(pieces: Iterable[str]) -> str:
    """Join WordPieces into readable text.

    Continuations are glued to their word and punctuation to its neighbours, as English mostly
    writes them. Case, accents and exact blanks, which the tokeniser removed, cannot come back.
    """
    words = []
    for piece in pieces:
        if piece in LEFT_OUT:
            continue
        if piece.startswith("##") and words:
            words[-1] += piece[2:]
        else:
            words.append(piece)
    text = ""
    quotes = 0  # number of " so far: an odd number means that one is open
    for index, word in enumerate(words):
        text += word if _is_glued(words, index, quotes % 2 == 1) else f" {word}"
        quotes += word == '"'
    return text


def _is_glued(words: list[str], index: int, quote_is_open: bool) -> bool:
    """Return whether no blank stands before words[index]."""
    if index == 0:
        return True
    before, word = words[index - 1], words[index]
    earlier = words[index - 2] if index >= 2 else ""
    later = words[index + 1] if index + 1 < len(words) else ""
    if word in _CLOSING or before in _OPENING:
        return True
    if word == '"' or before == '"':  # close to the quoted text
        return quote_is_open
    if reference.is_ideograph(word[0]) or reference.is_ideograph(before[0]):
        return not (word[0].isascii() or before[0].isascii())
    if word in _JOINING or word in _APOSTROPHES:
        fits = later in _AFTER_APOSTROPHE if word in _APOSTROPHES else later[-1:].isalnum()
        return before[-1].isalnum() and fits
    if before in _JOINING:
        return earlier[-1:].isalnum() and word[0].isalnum()
    if before in _APOSTROPHES:  # don't
        return earlier[-1:].isalnum() and word in _AFTER_APOSTROPHE
    # 3.14, 1,000, 10:30
    return before in set(".,:") and earlier[-1:].isdigit() and word[0].isdigit()
