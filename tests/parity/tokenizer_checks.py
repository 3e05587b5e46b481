"""BERT's tokeniser against `tokenizers` and `transformers`."""

import tempfile
from pathlib import Path

from data_prep.corpus.text_files import text_lines
from official_bert.checkpoints.hugging_face import huggingface_tokenizer
from tests.parity import script_texts
from tests.parity.results import Result, Results, check, some

# From the folder of real data: 10 MB in which no special token is written (docs/family.md).
BOOKS = "corpus/books/B[au]*.gz"
_TEXTS = (BOOKS, "corpus/wikipedia/wiki_0[01]*.gz")
# do_lower_case, strip_accents, tokenize_chinese_chars
_RULES = [(True, False, True), (True, None, False), (False, True, True), (True, False, False)]
SOME = slice(None, None, 5)  # for offsets, decoding and files: what the pieces do not depend on


@check("tokenizers", "transformers", needs_data=True)
def word_pieces(data_dir) -> Results:
    """Google's vocabulary on real text; a small one under every rule, as transformers reads it."""
    import tokenizers
    import transformers

    from official_bert.tokenization import SPECIAL_TOKENS, BertTokenizer

    path, lines = data_dir / "vocab" / "bert-base-uncased-vocab.txt", real_text(data_dir)[SOME]
    ours = BertTokenizer(path)
    theirs = tokenizers.BertWordPieceTokenizer(str(path), lowercase=True)
    encoded = theirs.encode_batch(lines, add_special_tokens=False)
    differ = sum(ours.encode(line) != them.ids for line, them in zip(lines, encoded, strict=True))
    german, differ_by_rules = [*SPECIAL_TOKENS, "müller", "muller", "彼得", "彼", "得"], 0
    for rules in _RULES:
        with tempfile.TemporaryDirectory() as folder:
            huggingface_tokenizer.write(Path(folder), BertTokenizer(german, *rules), 512)
            them = transformers.AutoTokenizer.from_pretrained(folder)
            again = huggingface_tokenizer.read(Path(folder))
        texts = ("Müller muller 彼得", "müller")
        differ_by_rules += sum(them.tokenize(text) != again.tokenize(text) for text in texts)
    what = f"WordPiece: lines whose pieces differ, of {len(lines):,} ({megabytes(lines)})"
    rules = f"WordPiece: texts that differ under {len(_RULES)} sets of rules, of 2"
    yield Result(what, "tokenizers", differ, 0)
    yield Result(rules, "transformers", differ_by_rules, 0)


@check("tokenizers", "transformers", needs_data=True)
def multilingual_word_pieces(data_dir) -> Results:
    """bert-base-multilingual-cased's: cased, accents kept, its ideographs words of their own."""
    import transformers

    from official_bert.tokenization import BertTokenizer

    vocab = (data_dir / "vocab" / "bert-base-multilingual-cased-vocab.txt").read_bytes()
    # transformers 4 has the one in Python under the plain name.
    slow = getattr(transformers, "BertTokenizerLegacy", transformers.BertTokenizer)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "vocab.txt").write_bytes(vocab)
        Path(folder, "tokenizer_config.json").write_text('{"do_lower_case": false}')
        fast = transformers.AutoTokenizer.from_pretrained(folder, tokenizer_type="bert")
        slow = slow.from_pretrained(folder)
        read = huggingface_tokenizer.read(Path(folder))
        own = BertTokenizer(f"{folder}/vocab.txt", do_lower_case=False)
        huggingface_tokenizer.write(Path(folder, "written"), own, 512)
        written = transformers.AutoTokenizer.from_pretrained(f"{folder}/written")
    composed = script_texts.texts()
    found = composed + script_texts.texts("NFD")
    expected = fast(found, add_special_tokens=False, return_offsets_mapping=True)
    of_written = written(found, add_special_tokens=False)["input_ids"]
    columns = (found, expected["input_ids"], expected["offset_mapping"], of_written)
    differ = sum(
        own.encode(text) != ids
        or read.encode_with_offsets(text) != (ids, [*map(tuple, offsets)])
        or again != ids
        for text, ids, offsets, again in zip(*columns, strict=True)
    )
    # The one in Python composes text, which neither Google's code nor the fast one does.
    of_slow = slow(composed, add_special_tokens=False)["input_ids"]
    differ_from_slow = sum(own.encode(t) != ids for t, ids in zip(composed, of_slow, strict=True))
    name = f"WordPiece, cased, {own.vocab_size:,} pieces of 104 languages"
    what = f"texts whose ids or offsets differ, of {len(found):,}"
    yield Result(f"{name}: {what} in 25 scripts", "transformers", differ, 0)
    what = f"composed texts that differ from its own code in Python, of {len(composed):,}"
    yield Result(f"{name}: {what} in 25 scripts", "transformers", differ_from_slow, 0)


def real_text(data_dir) -> list[str]:
    """Return the lines of `_TEXTS`, one of ten without BERT_SLOW=1."""
    lines = []
    for path in sorted(path for pattern in _TEXTS for path in data_dir.glob(pattern)):
        lines += [line.strip() for line in text_lines(str(path)) if line.strip()]
    return lines[:: some(10, 1)]


def megabytes(lines) -> str:
    return f"{sum(len(line.encode()) for line in lines) / 1e6:.1f} MB of text"
