"""RoBERTa's tokeniser, GPT's and ALBERT's against `tokenizers` and `transformers`, on real text."""

import gzip
import io
import tempfile
from pathlib import Path

from data_prep.corpus.text_files import text_lines
from official_bert.checkpoints import huggingface_tokenizer
from tests.parity.results import Result, check

_SAMPLE = Path(__file__).parents[2] / "data_prep" / "sample" / "corpus"
# Of the folder of real data: 10 MB in which no special token is written (docs/family.md).
_BOOKS = "corpus/books/B[au]*.gz"
_TEXTS = (_BOOKS, "corpus/wikipedia/wiki_0[01]*.gz")
_SOME = slice(None, None, 5)  # for offsets, decoding and files: what the pieces do not depend on


@check("tokenizers", "transformers", needs_data=True)
def byte_pairs(data_dir) -> list[Result]:
    """RoBERTa's: learnt, written here and by transformers, and read by the other."""
    import tokenizers
    import transformers

    from data_prep.corpus.byte_pair_learner import learn_byte_pairs

    lines = _real_text(data_dir)
    ours = learn_byte_pairs(sorted(map(str, data_dir.glob(_BOOKS))), 5000)
    with tempfile.TemporaryDirectory() as folder:
        ours.write(folder)
        theirs = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
        fast = transformers.AutoTokenizer.from_pretrained(folder, tokenizer_type="roberta")
        fast.save_pretrained(f"{folder}/saved")
        again = huggingface_tokenizer.read(Path(folder, "saved"), kind="byte_pair")
    encoded = theirs.encode_batch_fast(lines, add_special_tokens=False)
    differ = sum(ours.encode(line) != them.ids for line, them in zip(lines, encoded, strict=True))
    some = lines[_SOME]
    encoded = theirs.encode_batch(some, add_special_tokens=False)
    some_differ = sum(
        ours.encode_with_offsets(line) != (them.ids, them.offsets)
        or again.encode(line) != them.ids
        or ours.decode(them.ids) != line
        for line, them in zip(some, encoded, strict=True)
    )
    pairs = theirs.encode_batch([*zip(lines[:1000], lines[1000:2000], strict=True)])
    rows = ours.pack(lines[:1000], lines[1000:2000], 4096)
    differ_as_pairs = sum(
        row["input_ids"] != pair.ids for row, pair in zip(rows, pairs, strict=True)
    )
    return [
        Result(
            f"byte pairs: lines whose pieces differ, of {len(lines):,} ({_megabytes(lines)})",
            "tokenizers",
            differ,
            0,
        ),
        Result(
            f"byte pairs: lines whose offsets or decoding differ, of {len(some):,}",
            "tokenizers, transformers",
            some_differ,
            0,
        ),
        Result("byte pairs: pairs that differ, of 1,000", "tokenizers", differ_as_pairs, 0),
    ]


@check("tokenizers", "transformers")
def word_ends() -> list[Result]:
    """GPT's: learnt by `tokenizers`, written here, and read by transformers."""
    import tokenizers
    import transformers

    from official_bert.tokenization import WordEndTokenizer

    lines = _lines()[::10]
    theirs = tokenizers.Tokenizer(
        tokenizers.models.BPE(unk_token="<unk>", end_of_word_suffix="</w>")
    )
    theirs.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=2000, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    theirs.train_from_iterator(lines[::2], trainer)
    with tempfile.TemporaryDirectory() as folder:
        theirs.save(f"{folder}/tokenizer.json")
        ours = WordEndTokenizer(f"{folder}/tokenizer.json")
        huggingface_tokenizer.write_of_successor(Path(folder), ours, 4096)
        read = transformers.AutoTokenizer.from_pretrained(folder)
    first, second = lines[::2], lines[1::2]
    first = first[: len(second)]
    rows, pairs = ours.pack(first, None, 4096), ours.pack(first, second, 4096)
    return [
        Result(
            f"GPT's byte pairs: {what} that differ, of {len(first):,}",
            "transformers",
            sum(row["input_ids"] != ids for row, ids in zip(found, expected, strict=True)),
            0,
        )
        for what, found, expected in (
            ("texts", rows, read(first)["input_ids"]),
            ("pairs", pairs, read(first, second)["input_ids"]),
        )
    ]


@check("sentencepiece", "transformers")
def sentence_piece() -> list[Result]:
    """ALBERT's: a model of its kind, read by both, and as transformers writes it.

    Left out are texts that its own code and transformers treat differently (docs/family.md).
    """
    import sentencepiece
    import transformers

    from official_bert.tokenization import SentencePieceTokenizer
    from official_bert.tokenization.sentence_piece import normalized

    lines = [line for line in _lines() if "``" not in line and "''" not in line]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(normalized(line, True) for line in lines[::20]),
        model_writer=model, vocab_size=2000, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"], num_threads=1, minloglevel=2,
    )  # fmt: skip
    ours = SentencePieceTokenizer(model.getvalue())
    with tempfile.TemporaryDirectory() as folder:
        ours.write(folder)
        theirs = transformers.AlbertTokenizer.from_pretrained(folder)
        theirs.save_pretrained(f"{folder}/saved")
        again = huggingface_tokenizer.read(Path(folder, "saved"), kind="sentence_piece")
    ids = theirs(lines, add_special_tokens=False)["input_ids"]
    compared = [
        (ours.encode(line), them)
        for line, them in zip(lines, ids, strict=True)
        if ours.parts.keys().isdisjoint(them)
    ]
    return [
        Result(
            f"SentencePiece: lines whose pieces differ, of {len(compared):,}",
            "transformers",
            sum(mine != them for mine, them in compared),
            0,
        ),
        Result(
            f"SentencePiece from its tokenizer.json: lines that differ, of {len(lines):,}",
            "sentencepiece",
            sum(again.encode(line) != ours.encode(line) for line in lines),
            0,
        ),
    ]


def _lines() -> list[str]:
    lines = []
    for path in sorted(_SAMPLE.glob("*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines += [line.strip() for line in file if line.strip()]
    return lines[::4]


def _real_text(data_dir) -> list[str]:
    lines = []
    for path in sorted(path for pattern in _TEXTS for path in data_dir.glob(pattern)):
        lines += [line.strip() for line in text_lines(str(path)) if line.strip()]
    return lines


def _megabytes(lines) -> str:
    return f"{sum(len(line.encode()) for line in lines) / 1e6:.1f} MB of text"
