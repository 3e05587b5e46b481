"""Numpy tables of a foreign tokeniser's work on each character, for `in_graph_foreign`.

The library `tokenizers` is asked, step by step and character by character. So a graph cuts texts as
the library did at the export, whatever version of Unicode other libraries know. That works for
steps whose work on a character does not depend on its neighbours. Two exceptions have tables of
their own: the order of accents (`order`) and their composition (`compositions`). Others are refused
by name.
"""

import functools
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from official_bert.common.errors import UserError
from official_bert.common.json_files import shorten
from official_bert.tokenization.graph.code_points import (
    ALONE,
    BLANK,
    CODE_POINTS,
    LETTER,
    Replacements,
    replacements,
)
from official_bert.tokenization.library import tokenizer_json

ADDED = CODE_POINTS  # added token i is the character ADDED + i
SIZE = CODE_POINTS + 0x10000
_FORMS = ("NFD", "NFKD", "NFC", "NFKC")
_BEHAVIOURS = {"removed": BLANK, "isolated": ALONE, "contiguous": 3}


class Step(NamedTuple):
    """One step of a normalizer.

    Attributes:
      replacements: of `SIZE` characters.
      order: uint8 [SIZE], canonical combining classes of the characters that come out; None where
        their order does not change.
      compositions: int64 [n, 2], sorted: (first << 21 | second, the character that both become).
    """

    replacements: Replacements
    order: np.ndarray | None
    compositions: np.ndarray | None


def normalizer_steps(contents: dict[str, Any]) -> list[Step]:
    """Return the tables of a normalizer, none where there is none.

    Raises:
      UserError: a graph cannot compute a step; the message names it.
    """
    steps: list[Step] = []
    waiting: list[dict] = []  # steps that one table can hold
    for step in _opened(tokenizer_json.steps(contents, "normalizer")):
        kind = step["type"]
        if kind == "Replace" and len(step["pattern"].get("String", "")) != 1:
            raise _refused("normalizer", step)
        if kind == "Strip":
            if not _blanks_go(contents):
                raise _refused("normalizer", step)
            continue  # a later step removes the same
        if kind not in ("BertNormalizer", "Lowercase", "StripAccents", "Replace", "Nmt", *_FORMS):
            raise _refused("normalizer", step)
        waiting.append(step)
        if kind in _FORMS:
            steps.append(_step(json.dumps(waiting)))
            waiting = []
    return [*steps, _step(json.dumps(waiting))] if waiting else steps


def word_kinds(contents: dict[str, Any]) -> np.ndarray:
    """Return the kind of each character: BLANK, LETTER, ALONE or a further one, uint8 [SIZE].

    Only neighbours of one kind join.

    Raises:
      UserError: a graph cannot compute a step of the pre-tokenizer; the message names it.
    """
    kinds = [_kinds(json.dumps(step)) for step in tokenizer_json.steps(contents, "pre_tokenizer")]
    found = np.stack([*kinds, np.full(SIZE, LETTER, np.uint8)])
    alone, blank = (found == ALONE).any(0), (found == BLANK).any(0)
    letters = (found == LETTER).all(0)
    # Every combination of kinds is a kind of its own.
    number = np.zeros(SIZE, np.int64)
    for row in found:
        _, number = np.unique(number * 8 + row, return_inverse=True)
    others = np.unique(number[~alone & ~blank & ~letters])
    combined = np.where(letters, LETTER, 3 + np.searchsorted(others, number))
    combined = np.where(blank, BLANK, np.where(alone, ALONE, combined))
    combined[ADDED:] = ALONE
    return combined.astype(np.uint8)


@functools.cache
def blanks_and_words() -> tuple[np.ndarray, np.ndarray]:
    """Mark blanks, and characters of words, as added tokens see them: uint8 [SIZE] each.

    Tokens that strip take in blanks; tokens that are a single word look for characters of words.
    """
    import tokenizers

    cut = tokenizers.pre_tokenizers.Whitespace().pre_tokenize_str
    return (
        table(lambda char: not cut(char), np.uint8),
        table(lambda char: len(cut(f"a{char}a")) == 1, np.uint8),
    )


def _opened(steps: Iterable[dict]) -> Iterator[dict]:
    """Yield the steps; a BertNormalizer that strips accents is divided, with NFD in between."""
    for step in steps:
        strips = step.get("strip_accents")
        strips = step.get("lowercase") if strips is None else strips
        if step["type"] != "BertNormalizer" or not strips:
            yield step
            continue
        yield {**step, "strip_accents": False, "lowercase": False}
        yield {"type": "NFD"}
        yield {**step, "clean_text": False, "handle_chinese_chars": False, "strip_accents": True}


def _blanks_go(contents) -> bool:
    cuts = {step["type"] for step in tokenizer_json.steps(contents, "pre_tokenizer")}
    stripping = [t for t in contents.get("added_tokens") or () if t["lstrip"] or t["rstrip"]]
    return bool(cuts & {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}) and not stripping


@functools.lru_cache(maxsize=8)
def _step(written: str) -> Step:
    """Return the tables of normalizers that one step holds, as JSON, which a cache can look up."""
    described = json.loads(written)
    sequence = {"type": "Sequence", "normalizers": described}
    form = described[-1]["type"]
    composes = form in ("NFC", "NFKC")
    if composes:  # the step decomposes; the composition follows
        decomposed = {"type": form.replace("C", "D")}
        sequence["normalizers"] = [*described[:-1], decomposed]
    normalize = tokenizer_json.part("normalizer", sequence).normalize_str
    found = replacements(normalize, map(chr, _probed()), SIZE)
    _fill(found.numbers)
    order = _order() if form in _FORMS else None
    return Step(found, order, _compositions() if composes else None)


@functools.cache
def _order() -> np.ndarray:
    import tokenizers

    decompose = tokenizers.normalizers.NFD().normalize_str
    order = np.zeros(SIZE, np.uint8)
    for code in _probed():
        # Classes never change, but an older Unicode lacks characters. U+0345 has the highest class,
        # so it is sorted behind every other mark.
        if found := unicodedata.combining(chr(code)):
            decomposed = decompose(chr(code))
            if code == 0x345 or decompose(f"\u0345{decomposed}") == f"{decomposed}\u0345":
                order[code] = found
    return order


@functools.cache
def _compositions() -> np.ndarray:
    import tokenizers

    compose = tokenizers.normalizers.NFC().normalize_str
    found = []
    for code in _probed():
        char = chr(code)
        if 0xAC00 <= code <= 0xD7A3:
            syllable = code - 0xAC00
            if syllable % 28:
                pair = (code - syllable % 28, 0x11A7 + syllable % 28)
            else:
                pair = (0x1100 + syllable // 588, 0x1161 + syllable % 588 // 28)
        else:
            parts = unicodedata.decomposition(char).split()
            if len(parts) != 2 or "<" in parts[0]:
                continue
            pair = (int(parts[0], 16), int(parts[1], 16))
        if compose("".join(map(chr, pair))) == char:
            found.append((pair[0] << 21 | pair[1], code))
    return np.array(sorted(found), np.int64)


@functools.lru_cache(maxsize=8)
def _kinds(step: str) -> np.ndarray:
    return table(_kind_of(json.loads(step)), np.uint8)


def _kind_of(step) -> Callable[[str], int]:
    kind = step["type"]
    behaviour = str(step.get("behavior", "")).lower()
    pattern = (step.get("pattern") or {}).get("String", "")
    if kind == "Split" and (len(pattern) != 1 or step.get("invert")):
        raise _refused("pre_tokenizer", step)
    if kind in ("Punctuation", "Split") and behaviour not in _BEHAVIOURS:
        raise _refused("pre_tokenizer", step)
    if kind not in (
        "BertPreTokenizer",
        "WhitespaceSplit",
        "Whitespace",
        "Punctuation",
        "Split",
        "Digits",
        "CharDelimiterSplit",
    ):
        raise _refused("pre_tokenizer", step)
    cut = tokenizer_json.part("pre_tokenizer", step).pre_tokenize_str

    def found(char):
        # Between two letters a character joins them, is a word of its own, or is gone. Two of it
        # side by side tell whether they join.
        parts = [text for text, _ in cut(f"a{char}a")]
        if len(parts) == 1:
            return LETTER
        if len(parts) == 2 or not cut(char):
            return BLANK
        return ALONE if len(cut(2 * char)) == 2 else 3

    if pattern:  # "a" itself may be the pattern
        return lambda char: _BEHAVIOURS[behaviour] if char == pattern else LETTER
    if kind == "CharDelimiterSplit":
        return lambda char: BLANK if char == step["delimiter"] else LETTER
    return found


def table(of: Callable[[str], Any], dtype) -> np.ndarray:
    """Return the values [SIZE] of a function of each character."""
    values = np.zeros(SIZE, dtype)
    for code in _probed():
        values[code] = of(chr(code))
    _fill(values)
    return values


def _probed() -> Iterator[int]:
    """Yield the code points that the library is asked about.

    It is asked about all of the planes that have characters. In each other plane (unassigned, or
    for private use) it is asked about the first two, and the last two, which are never characters.
    """
    for plane in range(17):
        first = plane << 16
        codes: Iterable[int] = (*range(first, first + 2), first + 0xFFFE, first + 0xFFFF)
        if plane < 4 or plane == 14:
            codes = range(first, first + 0x10000)
        yield from (code for code in codes if not 0xD800 <= code < 0xE000)


def _fill(values: np.ndarray) -> None:
    for plane in range(17):
        if not (plane < 4 or plane == 14):
            first = plane << 16
            values[first + 2 : first + 0xFFFE] = values[first + 1]


def _refused(part: str, step: dict) -> UserError:
    return UserError(
        f"a TensorFlow graph cannot compute this tokeniser's {part} {shorten(step)}: export token "
        "ids instead (experiments.export --format=onnx)"
    )
