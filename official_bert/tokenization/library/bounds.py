"""Limits for a stranger's `tokenizer.json`: else a few kB could take all time and memory."""

import base64
import binascii
import math
import re
from collections.abc import Iterator
from typing import Any

from official_bert.common.errors import UserError
from official_bert.common.json_files import shorten
from official_bert.tokenization.vocabulary import MOST_PIECES

MOST_GROWTH = 1000  # times; SentencePiece's nmt_nfkc makes 18 characters of one
MOST_STEPS = 100
MOST_WORD_CHARACTERS = 1000  # WordPiece's time grows faster than the square of a word's length
MOST_REPEATS = 2  # unbounded repeats in an alternative of a pattern

# A token of a pattern opens a group, is a repeat (`a++` gives nothing back), or anything else.
_OPEN = r"\((?:\?(?:[a-z-]*[:)]|<?[=!]|>|<\w+>))?"
_TOKEN = re.compile(
    rf"\\[pP]\{{[^}}]*\}}|\\.|\[(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|{_OPEN}|[*+?][?+]?|\{{\d*,?\d*\}}|.",
    re.DOTALL,
)
_ENDLESS, _FIXED = re.compile(r"[*+]\??|\{\d+,\}"), re.compile(r"\{\d+\}")
_REPEAT = re.compile(r"[*+?][?+]?|\{\d*,?\d*\}")
_GROUP_AGAIN = re.compile(r"\\[1-9kg]")  # what a group matched, or its pattern once more


def check(contents: dict[str, Any], where: str) -> None:
    """Check what the file asks for before the library reads it.

    Raises:
      UserError: an id is out of all bounds, its steps are too many or make too much of a text, one
        of its patterns may backtrack without end, or words may be longer than WordPiece can cut.
    """
    parts = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
    found = [step for name in parts for step in steps(contents.get(name))]
    if len(found) > MOST_STEPS:
        raise UserError(f"{where}: it has {len(found):,} steps; at most {MOST_STEPS} are read")
    growth = math.prod(map(_growth, found))
    if growth > MOST_GROWTH:
        raise UserError(
            f"{where}: its steps may make a text {growth:,.0f} times as long; at most "
            f"{MOST_GROWTH:,} times is read"
        )
    for pattern in (step["pattern"] for step in found if isinstance(step.get("pattern"), dict)):
        if isinstance(pattern.get("Regex"), str) and backtracks(pattern["Regex"]):
            raise UserError(
                f"{where}: the pattern {shorten(pattern['Regex'])} repeats what repeats, which may "
                "take time without end; write it without"
            )
    vocab = contents["model"]["vocab"]
    ids = [*(vocab.values() if isinstance(vocab, dict) else range(len(vocab)))]
    ids += [token["id"] for token in contents.get("added_tokens") or ()]
    if max(ids, default=0) >= MOST_PIECES:
        raise UserError(f"{where}: an id is {max(ids):,}; at most {MOST_PIECES:,} are read")
    longest = contents["model"].get("max_input_chars_per_word", 0)
    if isinstance(longest, int) and longest > MOST_WORD_CHARACTERS:
        raise UserError(
            f"{where}: max_input_chars_per_word is {longest:,}; at most {MOST_WORD_CHARACTERS:,} "
            "is read (the library's own is 100)"
        )


def backtracks(pattern: str) -> bool:
    """Return whether a pattern may backtrack without end.

    It may where something that varies (a group that repeats or has alternatives) is itself
    repeated, where many unbounded repeats follow each other, or where the pattern takes up a group
    again: the ways to match grow without number.
    """
    groups, varies, ended, count = [], False, False, 0
    before, atom = "", ""  # the last repeated atom, if nothing followed; the current atom
    for token in _TOKEN.findall(pattern):
        if _GROUP_AGAIN.fullmatch(token):
            return True
        if _REPEAT.fullmatch(token):
            if ended and token[0] != "?":
                return True
            if _ENDLESS.fullmatch(token):
                count += 1
                if count > MOST_REPEATS or atom == before:
                    return True
                before = atom
            varies = varies or not _FIXED.fullmatch(token)
            ended, atom = False, ""
            continue
        before, ended = "" if atom else before, False
        atom = token
        if token[0] == "(":
            if token[-1] != ")":  # which sets an option
                groups.append(varies)
                varies = False
            atom = ""
        elif token == ")" and groups:
            ended, varies = varies, groups.pop() or varies
            atom = pattern  # a group, which equals no other atom
        elif token == "|":
            varies = varies or bool(groups)
            before = atom = ""
            count = count if groups else 0
    return False


def steps(part) -> Iterator[dict[str, Any]]:
    """Yield the steps of a normalizer, pre_tokenizer, post_processor or decoder.

    A "Sequence" keeps its steps in a list, which each part names otherwise.
    """
    if isinstance(part, dict) and part.get("type") == "Sequence":
        for inner in part.values():
            for each in inner if isinstance(inner, list) else ():
                yield from steps(each)
    elif isinstance(part, dict):
        yield part


def _growth(step: dict[str, Any]) -> float:
    """Return the most characters that a step may make of one."""
    match step:
        case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)}:
            return max(1.0, len(new) / max(1, len(old)))
        case {"type": "Replace", "content": str(new)}:
            return max(1.0, len(new))
        case {"type": "Prepend", "prepend": str(new)}:
            return 1.0 + len(new)
        case {"type": "ByteLevel" | "Metaspace"}:
            return 2.0
        case {"type": "Precompiled", "precompiled_charsmap": str(packed)}:
            return _longest_of_map(packed)
    return 1.0


def _longest_of_map(packed: str) -> float:
    """Return the length of the longest text in SentencePiece's table.

    The table is the size of a trie, the trie, and texts separated by zeros.
    """
    try:
        table = base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError):
        return 1.0  # the library will report the damage
    texts = table[4 + int.from_bytes(table[:4], "little") :].split(b"\0")
    return max(1.0, max(len(text.decode("utf-8", "replace")) for text in texts))
