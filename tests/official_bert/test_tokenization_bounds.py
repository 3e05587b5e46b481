"""A stranger's tokenizer.json asks for little more than it takes on the disk."""

import base64
import random
import struct
import time
import unicodedata

import pytest

from official_bert.common.errors import UserError
from official_bert.tokenization import ForeignTokenizer
from official_bert.tokenization.library import bounds, tokenizer_json
from official_bert.tokenization.reference import decomposed

VOCAB = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5, "b": 6}
MODEL = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
         "max_input_chars_per_word": 100, "vocab": VOCAB}  # fmt: skip


def of(*steps, part="normalizer", inner="normalizers", **model):
    sequence = {"type": "Sequence", inner: list(steps)}
    return tokenizer_json.whole({**MODEL, **model}, **{part: sequence})


def replace(old, new, kind="String"):
    return {"type": "Replace", "pattern": {kind: old}, "content": new}


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def charsmap(*texts):
    trie = struct.pack("<I", 4) + bytes(4)
    table = base64.b64encode(trie + b"\0".join(texts)).decode()
    return {"type": "Precompiled", "precompiled_charsmap": table}


LOWER, BYTES = {"type": "Lowercase"}, {"type": "ByteLevel"}
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GPT4 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
GPT4 += r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT4_AGAIN = r"[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
GPT4_O = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{M}]*[\p{Ll}\p{Lo}\p{M}]+(?i:'s|'t)?|\s*[\r\n]+"
DIGITS = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
ENDLESS = [r"(a?){30}b", r"a*a*[bc]", r"\s+\s+$", r"(a{1,3})*b", r"(?:x+?)+y", r"(a+)*?b",
           r"\p{N}{1,3}+x", r"(?<n>a+)+b", "a+a?a+", "a*b*c*d", r"(a+)\1+b",
           r"(?<n>a*)(?:\k<n>)*b", r"(a|b\g<1>)"]  # fmt: skip
USUAL = [
    GPT2,
    GPT4,
    GPT4_AGAIN,
    GPT4_O,
    DIGITS,
    r"\w+@\w+",
    "a+b|a+c",
    r"\p{L}+\p{N}+",
    " {2,}",
    r"\s+|\w+",
    r"\d{1,3}(?=(\d{3})\b)",
    r"[()*+|]+",
    r"\(a\)+",
    "(ab)+",
]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (of(*[replace("a", "aa")] * 40), "1,099,511,627,776 times as long"),
        (of(replace("a", "b" * 10_000)), "10,000 times as long"),
        (of(replace("a+", "b" * 2000, "Regex")), "2,000 times as long"),
        (of(*[{"type": "Prepend", "prepend": "_"}] * 60), "times as long"),
        (of(*[BYTES] * 30), "times as long"),
        (of(charsmap(b"a", b"x" * 5000)), "5,000 times as long"),
        (of(replace("a", "b" * 90), replace("b", "c" * 90)), "8,100 times"),
        (of(*[LOWER] * 200), "200 steps; at most 100"),
        (of(max_input_chars_per_word=10**9), "max_input_chars_per_word is 1,000,000,000"),
        (of(split("(a+)+$"), part="pre_tokenizer", inner="pretokenizers"), "repeats what repeats"),
        (of(split("(?:a|aa)*b"), part="pre_tokenizer", inner="pretokenizers"), "repeats what"),
        (of(replace(r"(\s*\w+){5}x", "", "Regex")), "repeats what repeats"),
        (of(replace(r"a*a*a*a*b", "", "Regex")), "repeats what repeats"),
        (of(vocab={**VOCAB, "c": 1 << 31}), "at most .* are read"),
    ],
)
def test_what_asks_for_too_much_is_refused_at_once(contents, message):
    start = time.process_time()
    with pytest.raises(UserError, match=f"here: .*{message}"):
        ForeignTokenizer(contents, where="here")
    assert time.process_time() - start < 10


@pytest.mark.parametrize("pattern", USUAL)
def test_usual_patterns_are_read(pattern):
    assert not bounds.backtracks(pattern)


@pytest.mark.parametrize("pattern", ENDLESS)
def test_patterns_that_are_tried_without_end_are_found(pattern):
    assert bounds.backtracks(pattern)


def test_usual_steps_are_read():
    nmt = charsmap(b"a", "صلى الله عليه وسلم".encode())
    contents = of(nmt, LOWER, replace(" {2,}", " ", "Regex"), {"type": "Prepend", "prepend": "_"})
    bounds.check({**contents, "pre_tokenizer": {"type": "Metaspace"}}, "here")


def test_a_panic_of_the_library_is_a_users_error():
    class Panic(BaseException):
        pass

    with pytest.raises(UserError, match=r"told \(why\)"), tokenizer_json.no_panic("told"):
        raise Panic("why")
    with pytest.raises(KeyboardInterrupt), tokenizer_json.no_panic("told"):
        raise KeyboardInterrupt


def test_marks_in_the_order_of_their_classes():
    """Letter by letter the same as Unicode's own, and not with the square of a run."""
    draw = random.Random(1)
    chars = "aéÅ한ﬁ\u0301\u0323\u0307\u0345\u0f71\u0f74\u302e\u1100\u1161\u0958\u20dd"
    for _ in range(300):
        text = "".join(draw.choices(chars, k=draw.choice([3, 201, 400])))
        assert decomposed(text) == unicodedata.normalize("NFD", text)
