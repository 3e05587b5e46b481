"""Sentences of a paragraph.

English is split by nupunkt, every other language by sentencex (both MIT, no downloads). In 35 short
real and hard English passages (tests/data_prep/hard_sentences.txt: quotations, dialogue,
abbreviations) nupunkt found all 49 inner sentence ends and 3 false ones at 7 MB/s; syntok missed 2
and made 6 false ones at 1.4 MB/s; sentencex, which never splits inside quotation marks, missed 12,
but knows some 300 languages. Two habits of nupunkt are repaired below; what both miss in other
scripts is found by Unicode's property Sentence_Terminal (of the library `regex`), or by use,
whatever the language is said to be. A script that writes no mark at the end of a sentence (Thai,
Lao) puts a blank there. It puts blanks around names and numbers too: so a blank ends a sentence
only between two of its letters, and not where a few characters would be a sentence.
"""

import functools
import importlib.metadata
import itertools
import re

import regex

_RULES = 4  # version of this project's own rules; raised where they change

# Single-word "sentences" that are titles of the name behind them.
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
    """Return the sentences of one paragraph, each stripped, inner white space made single blanks.

    Nothing but white space is lost: the sentences joined with blanks are the paragraph.

    Args:
      text: one paragraph.
      language: an ISO 639 code ("en", "zh", "ko", "pt-br", ...).
    """
    text = " ".join(text.split())
    if not text:
        return []
    # A mark between two letters does not quote: d"r is a Hebrew abbreviation.
    marked = _INNER_MARK.sub("\u05f4", text)
    return corrected(text, list(_in_windows(marked, _splitter(language))))


def _in_windows(text, split):
    """Yield a splitter's sentences of a text, which it gets a window at a time.

    A splitter's time may be quadratic (in text behind an unclosed quotation mark, in a long row of
    exclamation marks). The last sentence of a window begins the next one.
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
    """Join a lone title ("Lt.") to the name behind it, and marks without words to the text
    before."""
    joined = []
    for sentence in sentences:
        wordless = not any(map(str.isalnum, sentence))
        if joined and (_TITLES.match(joined[-1]) or wordless):
            joined[-1] += " " + sentence
        else:
            joined.append(sentence)
    return joined


def splitter_version(language: str) -> str:
    """Return names and versions of the splitter of a language."""
    names = ("nupunkt" if language == "en" else "sentencex", "regex")
    libraries = (f"{name} {importlib.metadata.version(name)}" for name in names)
    return f"{', '.join(libraries)}, rules {_RULES}"


# Marks that the property lacks: the ellipsis, Tibetan's shads, two Ethiopic word spaces typed for a
# full stop, the Armenian colon, the Greek question mark. Marks that it has and writers use as
# commas: the little section of Burmese, and the Javanese and Balinese ones of that rank.
_COMMAS = "၊꧈᭞"
_FOREIGN = rf"(?:[\p{{Sentence_Terminal}}\u0F0D-\u0F11--[\x00-\x7F{_COMMAS}]]|፡፡)"
_LATIN = r"(?:[.!?…]|(?<=\p{Armenian}):|(?<=\p{Greek});)"
_CLOSING = r"[\"'\p{Pe}\p{Pf}\p{Pi}]*"
_UNMARKED = r"\p{Thai}\p{Lao}\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Viet}"
_SHORTEST_UNMARKED = 10  # characters


def _compile(pattern: str):
    return regex.compile(pattern, regex.V1)


_END = _compile(rf"{_LATIN}{_CLOSING}(?:\s|$)|{_FOREIGN}")
_LAST = _compile(rf"(?:{_LATIN}|{_FOREIGN}|[,;:{_COMMAS}]){_CLOSING}$")
_LETTER, _UNMARKED_LETTER = _compile(r"\p{L}"), _compile(rf"[{_UNMARKED}&&\p{{L}}]")
_NOT_ENGLISH = _compile(rf"{_FOREIGN}|\p{{Lo}}")

# Behind a closing quotation mark a sentence goes on unless a blank follows (「はい。」と言った。).
_BRACKET_OR_END = _compile(
    rf"[\p{{Ps}}\p{{Pi}}]|[\p{{Pe}}\p{{Pf}}]|"
    rf"{_FOREIGN}++(?<end>{_CLOSING} (?=[\p{{L}}\p{{N}}\p{{Ps}}\p{{Pi}}\"'])|"
    rf"(?<!\p{{N}}．)(?=[\p{{Lu}}\p{{Lo}}]|(?<!．)\p{{N}}))?"
)
_OPENING, _CLOSED = _compile(r"[\p{Ps}\p{Pi}]"), _compile(r"[\p{Pe}\p{Pf}]")

# In scripts without capitals letters that each have a full stop are an abbreviation (कि.मी.), a
# single one without vowels too (د. محمد), and where the script's own full stop is in use any is.
_CASELESS = r"[\p{Lo}--[\p{Hangul}\p{Han}\p{Hiragana}\p{Katakana}]]"
_OWN_STOP = _compile(r"(?:[\p{Sentence_Terminal}--[\x00-\x7F؝؞؟‼‽⁇⁈⁉⸮！？﹖﹗]]|፡፡)")
_CASELESS_STOP = _compile(rf"{_CASELESS}\p{{M}}*\.$")
_LETTER_AND_STOP = rf"(?<![\p{{L}}\p{{M}}]){_CASELESS}\p{{M}}*\."
_ABBREVIATION = _compile(
    rf"(?<=\.){_LETTER_AND_STOP}$|(?<![\p{{L}}\p{{M}}])[\p{{Arabic}}\p{{Hebrew}}&&\p{{Lo}}]\.$"
)
_BEFORE_LETTER = _compile(rf"{_LETTER_AND_STOP}$")
_LONGEST_ABBREVIATION = 12  # characters

_UNSPACED = _compile(r"[\p{Han}\p{Hiragana}\p{Katakana}、。〈-】〔-〟！（），：；？]")

_UNMARKED_END = _compile(
    rf"(?<=[{_UNMARKED}--[\p{{N}}ๆฯໆຯ]]) (?=[{_UNMARKED}--[\p{{N}}ๆฯໆຯ]&&\p{{L}}])"
)


def ends(text: str) -> bool:
    """Return whether a text has the end of a sentence, or its script marks none."""
    return bool(_END.search(text)) or writes_no_ends(text)


def closes(text: str) -> bool:
    """Return whether a line ends with a mark, a comma included."""
    return bool(_LAST.search(text))


def writes_no_ends(text: str) -> bool:
    """Return whether most letters of a text are of scripts that do not mark ends of sentences."""
    unmarked = len(_UNMARKED_LETTER.findall(text))
    return unmarked > 0 and 2 * unmarked > len(_LETTER.findall(text))


def is_unspaced(character: str) -> bool:
    """Return whether a character is Chinese or Japanese, where lines are joined without a blank."""
    return bool(_UNSPACED.match(character))


def corrected(text: str, sentences: list[str]) -> list[str]:
    """Return a splitter's sentences, cut at ends that it missed and joined at abbreviations.

    Text in Latin, Greek or Cyrillic letters without marks of other scripts stays as it was.

    Args:
      text: with single blanks.
      sentences: of the text; blanks may differ.
    """
    if text.isascii() or not _NOT_ENGLISH.search(text):
        return sentences
    starts = _starts(text, sentences)
    own_stop = bool(_OWN_STOP.search(text))
    starts = [0, *(start for start in starts[1:] if not _goes_on(text, start, own_stop))]
    starts = sorted({*starts, *_missed(text)})
    if _UNMARKED_LETTER.search(text):
        starts = list(_at_blanks(text, starts))
    return [text[a:b].strip() for a, b in itertools.pairwise([*starts, len(text)])]


def _starts(text, sentences):
    places = [place for place, char in enumerate(text) if char != " "]
    lengths = [len(sentence) - sentence.count(" ") for sentence in sentences[:-1]]
    return [places[seen] for seen in itertools.accumulate(lengths, initial=0)]


def _goes_on(text, start, own_stop):
    """Return whether a sentence that a splitter ended before `start` continues there."""
    before = text[max(0, start - _LONGEST_ABBREVIATION) : start].rstrip()
    if before[-1:] in _COMMAS:
        return True
    if before[-1:] != "." or not _CASELESS_STOP.search(before):
        return False
    attached = text[start - 1] == "." and _BEFORE_LETTER.search(before)
    return bool(attached or _ABBREVIATION.search(before) or own_stop)


def _missed(text):
    """Yield the places behind ends outside of brackets and quotation marks."""
    depth = 0
    for found in _BRACKET_OR_END.finditer(text):
        closed = len(_CLOSED.findall(found.group()))
        depth = max(0, depth - closed) + bool(_OPENING.match(found.group()))
        if found["end"] is not None and not depth:
            yield found.end()


def _at_blanks(text, starts):
    for start, stop in itertools.pairwise([*starts, len(text)]):
        yield start
        for blank in _UNMARKED_END.finditer(text, start, stop):
            if min(blank.start() - start, stop - blank.end()) >= _SHORTEST_UNMARKED:
                start = blank.end()
                yield start
