"""Words of running text, as serving finds them inside its graph (`official_bert.export.tagging`).

A tagger learns one tag a word, from one piece of the word, on text that people cut by the rules of
CoNLL. Text that nobody has cut is cut nearly so: words stand between blanks, with the punctuation
at either side as words of its own ("Baghdad." is two words, "Jean-Claude" one); the full stop of an
abbreviation stays with it ("U.N.", "J."); every ideograph is a word. Serving sees pieces, not
characters, so a mark that the vocabulary lacks is no mark there.
"""

from collections.abc import Iterator

from official_bert.tokenization.reference import is_ideograph, is_punctuation, is_removed


def word_spans(text: str) -> list[tuple[int, int]]:
    """The (start, end) characters of each word.

    Characters that the tokeniser removes (control characters, soft hyphens) neither end a word nor
    make one.
    """
    return [span for places in _chunks(text) for span in _words(text, places)]


def _chunks(text: str) -> Iterator[list[int]]:
    """For each run without a blank, the places of its characters."""
    places = []
    for place, char in enumerate(text + " "):
        if is_removed(char):
            continue
        if not char.isspace():
            places.append(place)
        elif places:
            yield places
            places = []


def _words(text: str, places: list[int]) -> Iterator[tuple[int, int]]:
    chars = "".join(text[place] for place in places)
    inner = [index for index, char in enumerate(chars) if not is_punctuation(char)]
    # The core is what punctuation surrounds; without one, every mark is a word.
    first, last = (inner[0], inner[-1]) if inner else (len(chars), -1)
    is_short = first == last or "." in chars[first : last + 1]
    if is_short and chars[last + 1 : last + 2] == ".":
        last += 1
    begins = [
        index
        for index, char in enumerate(chars)
        if index <= first
        or index > last
        or is_ideograph(char)
        or (index and is_ideograph(chars[index - 1]))
    ]
    for begin, stop in zip(begins, [*begins[1:], len(chars)], strict=True):
        yield places[begin], places[stop - 1] + 1
