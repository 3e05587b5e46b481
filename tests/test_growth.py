"""Time in proportion to the text: no text, however odd, keeps a function busy.

Four times a text may take six times as long, here eight times fifteen times. The processor time of
this thread alone is measured, several times where it looks too long. The small text is read as many
times as it is smaller: what a busy machine costs, caches that others have filled, is then the same
for both. Work that grows with the square of the text would take 64 times as long. A time that looks
too long by less is measured again with four times both texts: there a square shows more, and the
bound lies halfway between it and a straight line.
"""

import contextlib
import functools
import json
import tempfile
import time
import warnings
from pathlib import Path

import pytest

from data_prep.corpus import text_layout
from data_prep.corpus.mediawiki import unclosed_markup, variants, wikitext
from data_prep.corpus.sentence_splitter import split_sentences
from data_prep.corpus.text_files import text_lines
from data_prep.tasks import get_task
from data_prep.tasks.question_answering.squad_metrics import f1
from official_bert import BertTokenizer, UserError
from official_bert.common.json_files import parse_json
from official_bert.tokenization import reference
from tests.tiny import VOCAB, foreign
from tests.tiny_inputs import PACKS

SMALL, LARGE = 1 << 12, 1 << 15  # characters; a window of the splitters is smaller
MOST, MOST_AGAIN, PLAINLY = 15, 22, 32  # times as long; the last is not measured again
SHORT = 0.03  # seconds; what takes no longer for the large text cannot grow with its square

# Repeated; of (beginning, pattern) the beginning stands once.
PATTERNS = [
    " ", "\n", "\t", "\r\n", "\r", "\u2028", "\x00", "\x01", "a", "a ", "aa ", "A", "A. ", "Aa. ",
    "a.b.", "no ", "so. A ", "Mr. ", "U.S. ", "!", "!!!! ", "?", ".", ". ", "…", ",", ":", ";",
    "-", "a-", "–", "_", "_a", "__", "__A", "'", "''", "'''''a", '"', '"a', 'a"b,', "“", "”", "«",
    "「", "」", "。", "。」", "！", "(", ")", "()", "[", "]", "[1,", '{"a":', "\\", "\\u",
    "1", "1.",
    "1,", "1 ", "#", "*", "*#:;", "@", "%", "é", "é", "́", "\u200b", "😀", "中", "中a", "ส", "ส ",
    "ا.", "İ", "ſ", "ß", "कि.", "<", ">", "</", "<b>", "<b", "</b>", "<ref ", "<ref>",
    '<ref name="a', "<ref/>", "</ref>", "<ref>a</ref>", "<!--", "-->", "<nowiki>", "<math>",
    "<a href=", "<math>x</math", "</ref",
    "[[", "]]", "[[a|", "[[a]]", "[[File:a|", "{{", "}}", "{{a|", "{{{", "{{a|b=",
    "{{a}}", "{|", "|}", "{|\n|-\n|a\n", "|-\n", "||", "==", "= a =\n", "&", "&amp;", "&#", "-{",
    "}-", "[http://a ", "http://a", "CHAPTER I\n", "I.\n", "-\n", "a O\n", "a\tb\n", "##a",
    ("{{", " "), ("{{", "a "), ("<ref", " "), ("[[", " "), ("(", " "), ("=", " "), ("<", "a"),
    ("__", "A"), ("__", "a_"), ("[http://", "a"), ('"', "a "), ("“", "a. "), ("a", " !"),
    ("a", " ."), ("#", " "), ("<!--", "-"), ("&", "a"), ("{|", "\n"), ("-{", ";"), ("_", "a "),
    ("1", "."), ("[", " ,"), "\u0301\u0323", ("a", "\u0f71\u0f74\u0301"),
]  # fmt: skip


def text_of(pattern, size):
    start, repeated = pattern if isinstance(pattern, tuple) else ("", pattern)
    return start + (repeated * (size // len(repeated) + 1))[:size]


def lines(layout):
    return lambda text: list(layout(text.split("\n")))


def refusing(function):
    """Let the block refuse a text, as long as it does so soon."""

    def call(text):
        with contextlib.suppress(UserError, unclosed_markup.TooSlow):
            function(text)

    return call


@functools.cache
def tokenizer():
    return BertTokenizer([*VOCAB, "##a", "##aa", "aa", "!", "<", "ref", "中"])


@functools.cache
def others_tokenizer():
    return foreign(tokenizer().vocab)


def task_file(task, name, content):
    """Read a task's file of which a part is the text."""

    def read(text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_text(content(text), encoding="utf-8", errors="replace", newline="")
            for example in get_task(task, folder).examples("train"):
                assert example is not None

    return refusing(read)


def squad(text):
    answer = {"text": text[1:5], "answer_start": 1}
    question = {"id": "1", "question": text[:100], "answers": [answer]}
    return json.dumps({"data": [{"paragraphs": [{"context": text, "qas": [question]}]}]})


def frames(pack, text):
    """Files of frames that hold a letter each, or nothing."""
    for content in (b"", b"a"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "text")
            path.write_bytes(pack(content) * (len(text) // 8))
            assert len("".join(text_lines(str(path)))) == len(content) * (len(text) // 8)


def wide(text):
    """Return a table of as many columns, and what is said of them."""
    names = [f"c{number}" for number in range(len(text))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        path.write_text(",".join(names) + "\n" + ",".join(names) + "x\n")
        get_task(TEXTS, str(path)).examples("train")


TEXTS = "text_classification"
FUNCTIONS = {
    "wikitext": refusing(wikitext.passages),
    "kinds of pages": lambda text: wikitext.why_not_article("a", 0, False, text),
    "variants": lambda text: variants.shown(text, "zh-tw"),
    "sentences, English": lambda text: split_sentences(text, "en"),
    "sentences, German": lambda text: split_sentences(text, "de"),
    "sentences, Chinese": lambda text: split_sentences(text, "zh"),
    "sentences, Thai": lambda text: split_sentences(text, "th"),
    "chapters": lines(text_layout.chapters),
    "articles": lines(text_layout.articles),
    "whole files": lines(text_layout.whole_file),
    "lines": lines(text_layout.each_line),
    "WordPiece, reference": lambda text: reference.tokenize(text, set("a!中"), True),
    "WordPiece": lambda text: tokenizer().encode(text),
    "WordPiece, a batch": lambda text: tokenizer().encode_batch([text]),
    "WordPiece, offsets": lambda text: tokenizer().encode_with_offsets(text),
    "WordPiece of others": lambda text: others_tokenizer().encode_with_offsets(text),
    "JSON": refusing(lambda text: parse_json(text, "a text")),
    "JSON, a string": refusing(lambda text: parse_json(json.dumps(text), "a text")),
    "CoNLL": task_file("conll2003", "train.txt", lambda text: text),
    "TSV": task_file(TEXTS, "train.tsv", lambda text: f"text\tlabel\n{text}\tx\n"),
    "CSV": task_file(TEXTS, "train.csv", lambda text: f"text,label\n{text},x\n"),
    "JSON lines": task_file(
        TEXTS, "train.jsonl", lambda text: json.dumps({"text": text, "label": "x"})
    ),
    "SQuAD": task_file("squad_v1.1", "train-v1.1.json", squad),
    "answers": lambda text: f1(text, text[::-1]),
    "columns": refusing(wide),
    **{f"frames, {kind}": functools.partial(frames, pack) for kind, pack in PACKS.items()},
}
ONCE = {"columns", *(f"frames, {kind}" for kind in PACKS)}  # which no pattern changes


# Which take some microseconds a character.
LONG = {name for name in FUNCTIONS if "WordPiece" in name} - {"WordPiece, a batch"}
LONG |= {"SQuAD", "answers"}
LONGEST = ("WordPiece, offsets", "wikitext")


def seconds(function, text, times=1):
    start = time.thread_time()
    for _ in range(times):
        function(text)
    return (time.thread_time() - start) / times


def too_long(function, pattern, share=1):
    """Return how many times as long the large text takes, or None where it is not too long."""
    times = ratio(function, pattern, MOST, share)
    if times and times < PLAINLY:
        times = ratio(function, pattern, MOST_AGAIN, share / 4)
    return times


def ratio(function, pattern, most, share):
    """Return the least of 25 measurements, or None as soon as one is at most `most`."""
    small, large = text_of(pattern, int(SMALL / share)), text_of(pattern, int(LARGE / share))
    least_small = least_large = float("inf")
    for _ in range(25):
        least_large = min(least_large, seconds(function, large))
        if least_large <= SHORT:
            return None
        least_small = min(least_small, seconds(function, small, LARGE // SMALL))
        if least_large <= most * least_small:
            return None
    return least_large / least_small


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONGEST)) for n in FUNCTIONS]
)
def test_time_grows_with_the_text(name):
    """On every sixth pattern, another one first for each function."""
    first = sorted(FUNCTIONS).index(name) % 6
    patterns = ["a"] if name in ONCE else PATTERNS[first::6]
    check(FUNCTIONS[name], 4 if name in LONG else 1, patterns)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - ONCE))
def test_time_grows_with_every_pattern(name):
    check(FUNCTIONS[name], 4 if name in LONG else 1)


def check(function, share, patterns=PATTERNS):
    function("a b")  # what it loads once
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {repr(pattern): too_long(function, pattern, share) for pattern in patterns}
    slow = {pattern: round(times) for pattern, times in found.items() if times}
    assert not slow, f"times as long for 8 times the text: {slow}"


def test_what_grows_with_the_square_is_found():
    assert len(PATTERNS) >= 80
    square = too_long(lambda text: sum(text[i:].count("b") for i in range(0, len(text), 4)), "a")
    assert square > MOST
    assert too_long(lambda text: [ord(char) for char in text * 5], "a") is None


def test_what_a_busy_machine_makes_look_too_long_is_measured_again(monkeypatch):
    """A large text that costs twice its time is none; one that costs more and more is."""

    def takes(most):
        def spent(function, text, times=1):
            return len(text) * (2 if len(text) >= LARGE else 1) * (len(text) / LARGE) ** most

        return spent

    monkeypatch.setattr(f"{__name__}.seconds", takes(0))
    assert too_long(None, "a") is None
    monkeypatch.setattr(f"{__name__}.seconds", takes(0.2))
    assert too_long(None, "a") > MOST_AGAIN
