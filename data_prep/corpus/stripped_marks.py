"""Words that an uncased vocabulary would change: vowel signs and tones that go with the accents.

The original strips every mark that does not take room where it lower-cases. Of Latin letters these
are accents; in Hindi, Thai or Khmer they are vowels and tones: कुल (total) and कल (tomorrow) become
the same. Letters of such scripts have no capitals.
"""

import unicodedata

import regex

_MANY = 0.01  # share of the words
_MARKED = regex.compile(r"[\p{Lo}--\p{Hangul}]\p{M}*\p{Mn}", regex.V1)


def loses(text: str) -> bool:
    """Whether letters without capitals lose marks in it."""
    return not text.isascii() and bool(_MARKED.search(unicodedata.normalize("NFD", text)))


def warning(words: int, total: int) -> str:
    """What to say where so many of all words lose marks; "" where they are few."""
    if words <= _MANY * total:
        return ""
    return (
        f"warning: {words / total:.0%} of the words lose marks of letters that have no capitals "
        "(vowel signs, tones), as in the original; --strip_accents=false keeps them"
    )
