"""Tokenisers of many kinds, made by the library `tokenizers`, and texts of many scripts."""

import functools
import random
import unicodedata
from collections.abc import Callable

import tokenizers
from tokenization_texts import NASTY
from tokenizers import AddedToken, models, trainers
from tokenizers import normalizers as norm
from tokenizers import pre_tokenizers as pre
from tokenizers.processors import ByteLevel, RobertaProcessing, TemplateProcessing

BLOCKS = {
    "Latin": (0x20, 0x24F), "Latin with accents": (0x1E00, 0x1EFF), "Greek": (0x370, 0x3FF),
    "Cyrillic": (0x400, 0x52F), "Armenian": (0x530, 0x58F), "Hebrew": (0x590, 0x5FF),
    "Arabic": (0x600, 0x6FF), "Devanagari": (0x900, 0x97F), "Bengali": (0x980, 0x9FF),
    "Tamil": (0xB80, 0xBFF), "Thai": (0xE00, 0xE7F), "Tibetan": (0xF00, 0xFFF),
    "Georgian": (0x10A0, 0x10FF), "Hangul": (0xAC00, 0xD7A3), "Hangul letters": (0x1100, 0x11FF),
    "Ethiopic": (0x1200, 0x137F), "Khmer": (0x1780, 0x17FF), "Kana": (0x3040, 0x30FF),
    "Han": (0x4E00, 0x4FFF), "Adlam": (0x1E900, 0x1E95F), "marks and symbols": (0x2000, 0x218F),
    "compatibility": (0xF900, 0xFFEF), "letters for mathematics": (0x1D400, 0x1D4FF),
    "controls": (0x00, 0xA0),
}  # fmt: skip
_WORDS = (
    *("the", "Boat", "boats", "runs", " ", " ", "  ", "\n", "\u3000", ".", "--", "12", "x", "ß"),
    *("e\u0301", "\u0300", "\u0327\u0301", "\u0345", "\u200d", "ΟΔΟΣ", "İ", "ǅ", "ﬁ", "½"),
    *("[MASK]", " [SEP]", "<e1>", "<E1>", "</e1> ", "@user", "@users", "New York", "new  york"),
)
ROLES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@functools.cache
def texts(each: int) -> list[str]:
    """Return `each` texts of every block, of its characters (assigned or not), words and blanks;
    and some that tokenisers get wrong."""
    found = [text for text in NASTY if "\ud800" not in text]
    for name, (first, last) in BLOCKS.items():
        drawn = random.Random(name)
        for _ in range(each):
            parts = [
                chr(drawn.randint(first, last)) if drawn.random() < 0.6 else drawn.choice(_WORDS)
                for _ in range(drawn.randint(1, 24))
            ]
            found.append("".join(parts))
    return found


@functools.cache
def _characters() -> list[str]:
    forms = ("NFC", "NFD", "NFKC", "NFKD")
    found = {c for text in texts(20) for form in forms for c in unicodedata.normalize(form, text)}
    found |= {low for char in found for low in char.lower()}
    return [char for char in sorted(found) if ord(char) % 8]  # some are unknown


def word_piece(normalizer, pre_tokenizer, added=(), prefix="##", roles=ROLES, longest=100):
    """Return WordPiece of whole words and single characters."""
    words = ["the", "boat", "Boat", "un", f"{prefix}s", "new", "york", "runs", "strasse", "é"]
    pieces = [*roles, *words, *_characters(), *(f"{prefix}{char}" for char in _characters())]
    id_of = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    options = {"continuing_subword_prefix": prefix, "max_input_chars_per_word": longest}
    made = tokenizers.Tokenizer(models.WordPiece(id_of, unk_token=roles[1], **options))
    return _with(made, normalizer, pre_tokenizer, added)


def byte_pairs(added=(), **byte_level):
    """Return RoBERTa's kind, learnt of the texts."""
    roles = ["<s>", "<pad>", "</s>", "<unk>"]
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre.ByteLevel(**{"add_prefix_space": False, **byte_level})
    options = {"initial_alphabet": pre.ByteLevel.alphabet(), "show_progress": False}
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=roles, **options)
    made.train_from_iterator(texts(10), trainer)
    made.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    made.add_tokens([*added])
    made.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return made


def pairs_of_characters(normalizer, pre_tokenizer, added=(), **model):
    """Return byte pairs of characters, with marks where words end or go on."""
    made = tokenizers.Tokenizer(models.BPE(unk_token="[UNK]", **model))
    _with(made, normalizer, pre_tokenizer, ())
    names = model.keys() & {"end_of_word_suffix", "continuing_subword_prefix"}
    options = {"show_progress": False, **{name: model[name] for name in names}}
    trainer = trainers.BpeTrainer(vocab_size=1500, special_tokens=[*ROLES], **options)
    made.train_from_iterator(texts(10), trainer)
    made.add_tokens([*added])
    return made


def unigram(normalizer, pre_tokenizer, added=()):
    pieces = [*ROLES, "▁", "▁the", "▁boat", "boat", "▁Boat", "s", "▁new"]
    scores = {piece: -2.0 - 0.01 * i for i, piece in enumerate([*pieces, *_characters()])}
    made = tokenizers.Tokenizer(models.Unigram([*scores.items()], unk_id=1))
    return _with(made, normalizer, pre_tokenizer, added)


def _with(made, normalizer, pre_tokenizer, added):
    for name, part in (("normalizer", normalizer), ("pre_tokenizer", pre_tokenizer)):
        if part is not None:
            setattr(made, name, part)
    made.add_tokens([*added])
    return made


def _bert(**options):
    return norm.BertNormalizer(**options)


def _chain(*steps):
    return norm.Sequence([*steps])


def _special():
    made = word_piece(_bert(), BASIC)
    made.add_special_tokens([*ROLES])
    made.post_processor = TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
    )
    return made


ENTITIES = (AddedToken("<e1>"), AddedToken("</e1>"), AddedToken("@user"))
FLAGS = (
    AddedToken("<e1>", normalized=False, lstrip=True),
    AddedToken("</e1>", normalized=False, rstrip=True),
    AddedToken("@user", normalized=False, single_word=True),
    AddedToken("12", normalized=False, lstrip=True, rstrip=True),
    AddedToken("New York", normalized=True, single_word=True),
    AddedToken("the", normalized=True, lstrip=True, single_word=True),
)
OTHER_ROLES = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")


def _pieces(*steps, **options):
    return functools.partial(word_piece, *steps, **options)


def _at_blanks(*steps):
    return pre.Sequence([pre.WhitespaceSplit(), *steps])


BASIC, LOWER = pre.BertPreTokenizer(), norm.Lowercase()
DIGITS, NUMBERS = (pre.Digits(individual_digits=each) for each in (True, False))
# Tokenisers that a graph computes too.
IN_GRAPH: dict[str, Callable[[], tokenizers.Tokenizer]] = {
    "BERT, uncased": _pieces(_bert(), BASIC),
    "BERT, special tokens added": _special,
    "BERT, cased": _pieces(_bert(lowercase=False), BASIC),
    "accents kept": _pieces(_bert(strip_accents=False), BASIC, ENTITIES),
    "accents go, case stays": _pieces(_bert(strip_accents=True, lowercase=False), BASIC, FLAGS),
    "ideographs joined, nothing cleaned": _pieces(
        _bert(handle_chinese_chars=False, clean_text=False), BASIC, FLAGS
    ),
    "special tokens of other names": _pieces(_bert(), BASIC, roles=OTHER_ROLES),
    "prefix @@, cut at blanks": _pieces(None, pre.WhitespaceSplit(), ENTITIES, prefix="@@"),
    "words of at most 5 characters": _pieces(LOWER, pre.Whitespace(), FLAGS, longest=5),
    "NFC, lower case": _pieces(_chain(norm.NFC(), LOWER), BASIC, FLAGS),
    "NFKC, cased BERT": _pieces(_chain(norm.NFKC(), _bert(lowercase=False)), BASIC, ENTITIES),
    "NFKC, uncased BERT": _pieces(_chain(norm.NFKC(), _bert()), BASIC),
    "NFD": _pieces(norm.NFD(), BASIC),
    "NFD, accents stripped": _pieces(
        _chain(norm.NFD(), norm.StripAccents(), LOWER), _at_blanks(DIGITS), ENTITIES
    ),
    "NFKD, digits apart": _pieces(norm.NFKD(), pre.Sequence([BASIC, NUMBERS])),
    "ß becomes ss": _pieces(_chain(norm.Replace("ß", "ss"), _bert()), BASIC),
    "stripped": _pieces(_chain(norm.Strip(), LOWER), pre.Whitespace()),
    "NMT's cleaning": _pieces(norm.Nmt(), pre.WhitespaceSplit()),
    "marks in runs": _pieces(None, _at_blanks(pre.Punctuation("contiguous"))),
    "marks removed": _pieces(None, _at_blanks(pre.Punctuation("removed")), FLAGS),
    "cut at a letter": _pieces(None, pre.CharDelimiterSplit("t"), ENTITIES),
    "split at x and at blanks": _pieces(
        None, pre.Sequence([pre.Split(" ", "removed"), pre.Split("x", "isolated")])
    ),
    "no steps": _pieces(None, None, ENTITIES),
}
# Tokenisers that an extension's graph computes.
OF_BYTES: dict[str, Callable[[], tokenizers.Tokenizer]] = {
    "bytes": byte_pairs,
    "bytes, added tokens": lambda: byte_pairs(FLAGS),
}
TWO_BLANKS = norm.Replace(tokenizers.Regex(" {2,}"), " ")
IN_PYTHON_ONLY: dict[str, Callable[[], tokenizers.Tokenizer]] = {
    "ss for ß by a pattern": _pieces(
        _chain(norm.Replace(tokenizers.Regex("ß|ẞ"), "ss"), _bert()), BASIC
    ),
    "a text in front": _pieces(_chain(norm.Prepend("_"), LOWER), BASIC),
    "scripts apart": _pieces(_bert(), pre.UnicodeScripts(), FLAGS),
    "cut by a pattern": _pieces(None, pre.Split(tokenizers.Regex(r"\d+|\s"), "isolated"), ENTITIES),
    "marks with the word before": _pieces(
        _bert(), _at_blanks(pre.Punctuation("merged_with_previous"))
    ),
    "blanks are a letter": _pieces(_bert(), pre.Metaspace()),
    "bytes, prefix space": lambda: byte_pairs(FLAGS, add_prefix_space=True),
    "bytes, words not cut": lambda: byte_pairs(use_regex=False),
    "word ends": lambda: pairs_of_characters(_bert(), BASIC, ENTITIES, end_of_word_suffix="</w>"),
    "pairs that go on": lambda: pairs_of_characters(
        norm.NFKC(), BASIC, FLAGS, continuing_subword_prefix="##"
    ),
    "pairs, unknown ones fused": lambda: pairs_of_characters(
        LOWER, pre.Whitespace(), fuse_unk=True
    ),
    "unigrams": lambda: unigram(_chain(norm.NFKC(), LOWER), pre.Metaspace(), ENTITIES),
    "unigrams, blanks single": lambda: unigram(
        _chain(norm.Nmt(), norm.NFKC(), TWO_BLANKS),
        _at_blanks(pre.Metaspace(prepend_scheme="always")),
        FLAGS,
    ),
}
ZOO = {**IN_GRAPH, **OF_BYTES, **IN_PYTHON_ONLY}

__all__ = ["ByteLevel", "IN_GRAPH", "IN_PYTHON_ONLY", "OF_BYTES", "ROLES", "ZOO", "texts"]
