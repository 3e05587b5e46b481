"""Bytes as byte pairs write them: each as a printable character ("Ġ" is the blank)."""

import itertools


def _byte_characters() -> str:
    """The character that stands for each byte: itself where it is printable, else one from U+0100.

    >>> _byte_characters()[0:2], _byte_characters()[32], _byte_characters()[65]
    ('Āā', 'Ġ', 'A')
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = itertools.count(0x100)
    return "".join(chr(byte if byte in printable else next(others)) for byte in range(256))


BYTE_CHARACTERS = _byte_characters()
_BYTE_OF = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}


def bytes_of(piece: str) -> bytes:
    """What a piece stands for; a token that was added stands for itself, as it is written."""
    if set(piece) <= _BYTE_OF.keys():
        return bytes(_BYTE_OF[character] for character in piece)
    return piece.encode()


def text_of(piece: str) -> str:
    """What a piece spells; parts of a character are U+FFFD."""
    return bytes_of(piece).decode("utf-8", "replace")
