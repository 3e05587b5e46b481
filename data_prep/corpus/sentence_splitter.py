"""Paragraphs to sentences.

English is split by nupunkt, every other language by sentencex (both MIT, no downloads). In 35 short
real and hard English passages (tests/data_prep/hard_sentences.txt: quotations, dialogue,
abbreviations) nupunkt found all 49 inner sentence ends and 3 false ones at 7 MB/s; syntok missed 2
and made 6 false ones at 1.4 MB/s; sentencex, which never splits inside quotation marks, missed 12,
but knows some 300 languages. Two habits of nupunkt are repaired below; what both miss in other
scripts is found by `sentence_ends`, whatever the language is said to be.
"""

import functools
import importlib.metadata
import re

from data_prep.corpus.sentence_ends import corrected

_RULES = 4  # of this project, on top of the libraries; counts up where they change

# Single-word "sentences" that are really the title of the name that follows.
_TITLES = re.compile(
    r"^[\"'“‘(\[]*(Lt|Gov|Cf|Capt|Maj|Sgt|Col|Gen|Rev|Hon|Messrs|Mme|Mlle|No|St)\.$"
)

# nupunkt, trained on law, takes a few words for abbreviations ("so." as Southern Reporter) and
# misses 0.7 % of the ends in novels: behind a lower-case word that never is one, before a capital.
_ABBREVIATIONS = frozenset(
    ("al", "approx", "ca", "cf", "ch", "col", "dept", "ed", "eds", "esp", "est", "etc", "ff", "fig")
    + ("figs", "fl", "incl", "nr", "op", "pp", "resp", "sc", "sec", "ser", "st", "tr", "trans")
    + ("viz", "vol", "vols", "vs")
)
_INNER_END = re.compile(r"[.!?][\"'”’]* (?=[\"'“‘]*[A-Z])")
_INNER_MARK = re.compile('(?<=[\u05d0-\u05ea])"(?=[\u05d0-\u05ea])')
_WORD_BEFORE = re.compile(r"(?<![\w.])[a-z]{2,}\Z")
_LONGEST_WORD = 40  # letters
_WINDOW = 4_000  # characters that a splitter gets at once


def split_sentences(text: str, language: str = "en") -> list[str]:
    """The sentences of one paragraph, each stripped, inner white space made single blanks.

    Nothing but white space is lost: the sentences joined with blanks are the paragraph.

    Args:
      text: one paragraph.
      language: an ISO 639 code ("en", "zh", "ko", "pt-br", ...).
    """
    text = " ".join(text.split())
    if not text:
        return []
    # A mark between two letters is no quotation: d"r is a Hebrew abbreviation.
    marked = _INNER_MARK.sub("\u05f4", text)
    return corrected(text, list(_in_windows(marked, _splitter(language))))


def _in_windows(text, split):
    """What a splitter finds in a text, of which it is given a window at a time.

    Its time may grow with the square of the text (of a quotation mark that nothing closes, of a
    long row of exclamation marks). The last sentence of a window begins the next one.
    """
    start = 0
    while len(text) - start > _WINDOW:
        end = text.rfind(" ", start, start + _WINDOW)
        window = text[start : end if end > start else start + _WINDOW]
        *found, last = split(window)
        if not found or not window.endswith(last):  # no end in it, or not the splitter's words
            found.append(last)
            last = ""
        yield from found
        start += len(window) - len(last)
        while text[start : start + 1] == " ":
            start += 1
    yield from split(text[start:]) if start < len(text) else ()


@functools.cache
def _splitter(language: str):
    if language == "en":
        import nupunkt

        def split_english(text):
            found = _rejoin(nupunkt.sent_tokenize(text))
            return [part for sentence in found for part in _split_missed(sentence)]

        return split_english
    import sentencex

    def split(text):
        stripped = (sentence.strip() for sentence in sentencex.segment(language, text))
        return [sentence for sentence in stripped if sentence]

    return split


def _split_missed(sentence: str) -> list[str]:
    parts, start = [], 0
    for match in _INNER_END.finditer(sentence):
        end = match.start()
        word = _WORD_BEFORE.search(sentence, max(start, end - _LONGEST_WORD), end)
        if word and word.group() not in _ABBREVIATIONS:
            parts.append(sentence[start : match.end() - 1])
            start = match.end()
    parts.append(sentence[start:])
    return parts


def _rejoin(sentences: list[str]) -> list[str]:
    """Puts a lone title ("Lt.") in front of its name, and marks without words behind their text."""
    joined = []
    for sentence in sentences:
        wordless = not any(map(str.isalnum, sentence))
        if joined and (_TITLES.match(joined[-1]) or wordless):
            joined[-1] += " " + sentence
        else:
            joined.append(sentence)
    return joined


def splitter_version(language: str) -> str:
    """What splits a language, and its version."""
    names = ("nupunkt" if language == "en" else "sentencex", "regex")
    libraries = (f"{name} {importlib.metadata.version(name)}" for name in names)
    return f"{', '.join(libraries)}, rules {_RULES}"
