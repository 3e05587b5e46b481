"""Small tokenisers of RoBERTa's, GPT's, ALBERT's and XLM-RoBERTa's kinds."""

import functools
import io

from experiments.beyond.byte_pair.tokenizer import SPECIAL, BytePairTokenizer
from experiments.beyond.gpt.word_ends import WordEndTokenizer
from experiments.beyond.sentence_piece.tokenizer import SPECIAL as SPECIAL_OF_ALBERT
from official_bert.tokenization.library.tokenizer_json import BYTE_CHARACTERS

TEXTS = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't care.",
    "In 1990, the cat sat on the mat; it's said that they'll sit there in 2020, too.",
    "Café naïve über straße — 1,234 people (about 5%) weren't there!",
    "the the the dog dog cat cat sat sat on on in in it it and and that that",
]


def byte_pairs(words=(), **options) -> BytePairTokenizer:
    """Return byte pairs that know some words ("Ġ" is a blank) and all their beginnings."""
    merges: dict[tuple[str, str], None] = {}
    for word in words:
        for end in range(1, len(word)):
            merges[word[:end], word[end]] = None
    cls, pad, sep, unk = SPECIAL.cls, SPECIAL.pad, SPECIAL.sep, SPECIAL.unk
    pieces = [cls, pad, sep, unk, *BYTE_CHARACTERS, *map("".join, merges), SPECIAL.mask]
    return BytePairTokenizer(pieces, list(merges), **options)


def word_ends(words, letters) -> WordEndTokenizer:
    """Return GPT's pieces of some words and all their beginnings, of two "a", and of letters."""
    merges = {(w[:i], w[i] + "</w>" * (i + 1 == len(w))) for w in words for i in range(1, len(w))}
    merges = [*sorted(merges), ("a", "a</w>"), ("a", "a")]
    spelt = {x + end for x in {*letters, *"".join(words), "a"} for end in ("", "</w>")}
    return WordEndTokenizer(["<unk>", *sorted({*spelt, *map("".join, merges)})], merges)


@functools.cache
def learnt_byte_pairs(path: str, vocab_size: int = 600) -> BytePairTokenizer:
    from experiments.beyond.byte_pair.learner import learn_byte_pairs

    return learn_byte_pairs([path], vocab_size)


@functools.cache
def unigram_model(texts: tuple[str, ...] = (*TEXTS,), vocab_size: int = 90) -> bytes:
    """Return a model as fairseq has it: `<unk>`, `<s>`, `</s>`, then pieces."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts * 20),
        model_writer=model,
        vocab_size=vocab_size,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


@functools.cache
def sentence_piece_model(user_defined: tuple[str, ...] = ("1990,", "▁9,")) -> bytes:
    """Return a unigram model with ALBERT's special tokens, and pieces of a number and a comma."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text.lower() for text in TEXTS] * 20),
        model_writer=model,
        vocab_size=90,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        pad_piece=SPECIAL_OF_ALBERT.pad,
        control_symbols=list(SPECIAL_OF_ALBERT[2:]),
        user_defined_symbols=list(user_defined),
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()
