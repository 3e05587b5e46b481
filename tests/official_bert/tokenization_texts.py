"""Texts that tokenisers get wrong, and where to find real ones."""

import functools
import gzip
import unicodedata
from pathlib import Path

from hypothesis import strategies as st

from official_bert.tokenization import SPECIAL_TOKENS, reference

REAL = [
    ("bert-base-uncased-vocab.txt", True),
    ("bert-base-cased-vocab.txt", False),
    ("bert-base-multilingual-cased-vocab.txt", False),
    ("bert-base-chinese-vocab.txt", True),
]
NASTY = [
    "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f1e9\U0001f1ea ☺️",
    "e\u0301\u0327 a\u0327\u0301 \u0301x 彼\u0301 !\u0301 \u1e69 \U0001d15e",
    "a\u302e\u0323\U0001d165 a\U0001d165\u302e\u302a",
    "zero\u200bwidth\u200cjoin\u200dno\u2060break\ufeff soft\u00adhyphen",
    "שָׁלוֹם עולם مَرْحَبًا \u202eright-to-left\u202c \u2067x\u2069",
    "x" * 200 + " " + "x" * 201 + " " + "é" * 200 + " " + "é" * 201 + " " + "가" * 100,
    "[MASK] [CLS][SEP] [PAD]x [UNK] [unused1] ##ing # #",
    "a\x00b\x01c\x0bd\x0ce\x1cf\x1fg\x7fh\x80i\x85j\xa0k\u2028l\u2029m\u3000n\r\no\tp",
    "ΟΔΥΣΣΕΥΣ ΣΑΣ Σ ΑΣ. ΑΣ'Α Α\u0301Σ\u0301 Σ\u200bα ΑΣ彼 Σ1",
    "Σ",
    "İstanbul ıI ß ẞ ﬁ … ™ ½ K Å ſ ǅ \u1fef \u037e \u0387 \u00b4",
    "彼得住在哪裡？",
    "폼페이오 장관의 아시아 순방일정이 어떻게 되나요?",
    "\ue000private \U000f0000use \U0002b820 \U00020000 \uf900 \ufffd \ufffe \U0010ffff",
    "don't re-use $3.14 50% <unk> a_b^c`d~e|f",
    "\ud800 lone surrogate",
    "",
    " ",
]


def every_code_point(last: int = 0x30000) -> list[str]:
    """Return texts that hold each code point below `last` between letters."""
    return [
        "".join(f"a{chr(c)}b " for c in range(first, first + 64) if not 0xD800 <= c < 0xE000)
        for first in range(0, last, 64)
    ]


def code_points_but_ideographs() -> list[str]:
    """Return those of `every_code_point` below U+11000 that some step may treat in a way of their
    own."""
    return every_code_point(0x3400) + every_code_point()[0xF900 // 64 : 0x11000 // 64]


@functools.cache
def letters_vocab() -> list[str]:
    """Return a vocabulary in which every assigned character below U+30000 is a piece, so that
    nothing hides in [UNK]."""
    chars = [chr(c) for c in range(0x21, 0x30000) if unicodedata.category(chr(c)) not in _NO_PIECE]
    inside = [f"##{char}" for char in chars if not reference.is_ideograph(char)]
    return [*SPECIAL_TOKENS, *chars, *inside]


_NO_PIECE = ("Cc", "Cn", "Cs", "Zl", "Zp", "Zs")


def texts() -> st.SearchStrategy[str]:
    """Return random texts, rich in the characters that tokenisers get wrong."""
    tricky = sorted(set("".join(NASTY[:-3]) + " .,'-[]()\n"))
    char = st.one_of(st.sampled_from(tricky), st.characters(exclude_categories=()))
    return st.text(char, max_size=40)


def corpus_lines(data_dir: Path, count: int) -> list[str]:
    """Return lines of Wikipedia and of a novel, evenly spaced."""
    lines = []
    for name in ("wikipedia/wiki_03.txt.gz", "books/Anon_Clara_1864.txt.gz"):
        found = _lines(data_dir / "corpus" / name)
        lines += found[:: max(1, len(found) // (count // 2))]
    return lines


@functools.cache
def _lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().split("\n")
