"""Texts of 25 scripts, made of the words in `tests/data_prep/scripts.txt`."""

import random
import unicodedata

from tests.parity.corpus_checks import pages
from tests.parity.results import some

_OTHERS = (
    *(",", ".", "!", "(", ")", "-", "–", "“", "…", "％", "①", "ﬁ", "Ａ", "½", "㍿", "\u3000"),
    *("\u200b", "ﷺ", "Ⅷ", "™", "🙂", "\t", "\u00ad", "x"),
)


def sentences() -> list[list[str]]:
    """Return the sentences of each of 27 languages."""
    return [parts for *_, parts in pages()]


def texts(form: str = "NFC") -> list[str]:
    """Return 38 texts of each language, or 2 where BERT_SLOW is not set.

    They are of its words, new ones of its letters, words of all languages, numbers and marks.
    `form` is the form of Unicode.
    """
    each = some(2, 38)
    draw, found = random.Random(0), []
    everybody = " ".join(text for own in sentences() for text in own).split()
    for own in sentences():
        words = " ".join(own).split()
        for _ in range(each):
            parts = []
            for _ in range(draw.randint(1, 16)):
                new = "".join(draw.choices("".join(words), k=draw.randint(1, 6)))
                number, other = str(draw.randint(0, 99999)), f"{draw.choice(_OTHERS)} "
                parts.append(draw.choice((draw.choice(words), new, draw.choice(everybody), number,
                                          other)))  # fmt: skip
            text = draw.choice((" ", " ", "")).join(parts)
            found.append(unicodedata.normalize(form, text))
    return found
