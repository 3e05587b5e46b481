"""The tokenisers of RoBERTa, GPT, ALBERT and XLM-RoBERTa against others'."""

import functools
import io
import tempfile
from pathlib import Path

from official_bert.checkpoints.hugging_face import huggingface_tokenizer
from tests.beyond.successor_tokenizers import unigram_model
from tests.parity import script_texts
from tests.parity.results import Result, check, some
from tests.parity.tokenizer_checks import BOOKS, SOME, megabytes, real_text


@check("tokenizers", "transformers", needs_data=True)
def byte_pairs(data_dir) -> list[Result]:
    """RoBERTa's: learnt, written here and by transformers, and read by the other."""
    import tokenizers
    import transformers

    from experiments.beyond.byte_pair.learner import learn_byte_pairs

    lines = real_text(data_dir)
    ours = learn_byte_pairs(sorted(map(str, data_dir.glob(BOOKS))), 5000)
    with tempfile.TemporaryDirectory() as folder:
        ours.write(folder)
        theirs = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
        fast = transformers.AutoTokenizer.from_pretrained(folder, tokenizer_type="roberta")
        fast.save_pretrained(f"{folder}/saved")
        again = huggingface_tokenizer.read(Path(folder, "saved"), kind="byte_pair")
    encoded = theirs.encode_batch_fast(lines, add_special_tokens=False)
    differ = sum(ours.encode(line) != them.ids for line, them in zip(lines, encoded, strict=True))
    some = lines[SOME]
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
            f"byte pairs: lines whose pieces differ, of {len(lines):,} ({megabytes(lines)})",
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


@check("tokenizers", "transformers", needs_data=True)
def word_ends(data_dir) -> list[Result]:
    """GPT's: learnt by `tokenizers`, written here, and read by transformers."""
    import tokenizers
    import transformers

    from experiments.beyond.gpt.word_ends import WordEndTokenizer

    lines = real_text(data_dir)
    theirs = tokenizers.Tokenizer(
        tokenizers.models.BPE(unk_token="<unk>", end_of_word_suffix="</w>")
    )
    theirs.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=2000, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    theirs.train_from_iterator(lines[::50], trainer)
    with tempfile.TemporaryDirectory() as learnt, tempfile.TemporaryDirectory() as folder:
        theirs.save(f"{learnt}/tokenizer.json")
        ours = WordEndTokenizer(f"{learnt}/tokenizer.json")
        huggingface_tokenizer.write(Path(folder), ours, 4096)
        read = transformers.AutoTokenizer.from_pretrained(folder)
    encoded = read.backend_tokenizer.encode_batch_fast(lines)
    differ = sum(
        row["input_ids"] != them.ids
        for row, them in zip(ours.pack(lines, None, 4096), encoded, strict=True)
    )
    first, second = lines[:1000], lines[1000:2000]
    pairs, expected = ours.pack(first, second, 4096), read(first, second)["input_ids"]
    return [
        Result(
            f"GPT's byte pairs: lines that differ, of {len(lines):,} ({megabytes(lines)})",
            "transformers",
            differ,
            0,
        ),
        Result(
            "GPT's byte pairs: pairs that differ, of 1,000",
            "transformers",
            sum(row["input_ids"] != ids for row, ids in zip(pairs, expected, strict=True)),
            0,
        ),
    ]


@check("sentencepiece", "transformers", needs_data=True)
def sentence_piece(data_dir) -> list[Result]:
    """ALBERT's: a model of its kind, read by both, and as transformers writes it.

    Left out are texts that its own code and transformers treat differently (docs/family.md). Where
    two cuts of a word have the same score, rounding decides, and so differently.
    """
    import sentencepiece
    import transformers

    from experiments.beyond.sentence_piece.tokenizer import SentencePieceTokenizer, normalized

    lines = [line for line in real_text(data_dir) if "``" not in line and "''" not in line]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(normalized(line, True) for line in lines[:: some(10, 100)]),
        model_writer=model, vocab_size=2000, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"], num_threads=1, minloglevel=2,
    )  # fmt: skip
    ours = SentencePieceTokenizer(model.getvalue())
    with tempfile.TemporaryDirectory() as folder:
        ours.write(folder)
        theirs = transformers.AlbertTokenizer.from_pretrained(folder)
        theirs.save_pretrained(f"{folder}/saved")
        again = huggingface_tokenizer.read(Path(folder, "saved"), kind="sentence_piece")
    encoded = theirs.backend_tokenizer.encode_batch_fast(lines, add_special_tokens=False)
    compared = [
        (line, them.ids)
        for line, them in zip(lines, encoded, strict=True)
        if ours.parts.keys().isdisjoint(them.ids)
    ]
    size = f"{len(compared):,} ({megabytes(line for line, _ in compared)})"
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())

    def score(ids):
        return sum(pieces.get_score(ids))

    differ = [(mine, them) for line, them in compared if (mine := ours.encode(line)) != them]
    differ = sum(abs(score(mine) - score(them)) > 1e-3 for mine, them in differ)
    part, of_part = lines[SOME], encoded[SOME]
    return [
        Result(
            f"SentencePiece: lines whose pieces differ, but for cuts of equal score, of {size}",
            "transformers",
            differ,
            0,
        ),
        Result(
            f"SentencePiece from its tokenizer.json: lines that differ, of {len(part):,}",
            "transformers",
            sum(again.encode(line) != them.ids for line, them in zip(part, of_part, strict=True)),
            0,
        ),
    ]


@check("sentencepiece", "transformers")
def unigrams() -> list[Result]:
    """XLM-RoBERTa's: a model of its kind in a folder, and what transformers and we write of it."""
    import sentencepiece
    import transformers

    read = functools.partial(huggingface_tokenizer.read, kind="unigram")
    model = _multilingual_model()
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = _of_model(folder, model)
        theirs.save_pretrained(f"{folder}/saved")
        again = read(Path(folder, "saved"))
        huggingface_tokenizer.write(Path(folder, "written"), ours, 512, has_segments=False)
        written = transformers.AutoTokenizer.from_pretrained(f"{folder}/written")
    composed, found = script_texts.texts(), script_texts.texts() + script_texts.texts("NFD")
    expected = theirs(found, add_special_tokens=False, return_offsets_mapping=True)
    columns = (found, expected["input_ids"], expected["offset_mapping"])
    differ = sum(
        ours.encode_with_offsets(text) != (ids, [*map(tuple, offsets)]) or again.encode(text) != ids
        for text, ids, offsets in zip(*columns, strict=True)
    )
    rows = ours.pack(found[:-1], found[1:], 4096)
    pairs = [each(found[:-1], found[1:])["input_ids"] for each in (theirs, written)]
    differ_as_pairs = sum(
        any(row["input_ids"] != ids for ids in others)
        for row, *others in zip(rows, *pairs, strict=True)
    )
    of_fairseq = [[3 if i == 0 else i + 1 for i in library.encode(text)] for text in composed]
    differ_from_model = sum(
        ours.encode(t) != ids for t, ids in zip(composed, of_fairseq, strict=True)
    )
    name = f"unigrams, {ours.vocab_size:,} pieces"
    return [
        Result(f"{name}: {what} in 25 scripts", against, count, 0)
        for what, against, count in (
            (f"composed texts that differ, of {len(composed):,}", "sentencepiece",
             differ_from_model),
            (f"texts whose ids or offsets differ, of {len(found):,}", "transformers", differ),
            (f"pairs that differ, of {len(rows):,}", "transformers", differ_as_pairs),
        )
    ]  # fmt: skip


@check("sentencepiece", "transformers", "tensorflow_text", slow=True)
def unigrams_in_a_graph() -> list[Result]:
    """Compute the same in a graph; ids, since the library shifts offsets beside controls."""
    import tensorflow as tf

    from official_bert.export.tokenizer_layer import in_graph_tokenizer

    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = _of_model(folder, _multilingual_model())
    found = script_texts.texts() + script_texts.texts("NFD")
    expected = theirs(found, add_special_tokens=False)["input_ids"]
    ids = in_graph_tokenizer(ours)(tf.constant(found)).to_list()
    differ = sum(one != other for one, other in zip(ids, expected, strict=True))
    what = f"unigrams in a graph: texts that differ, of {len(found):,} in 25 scripts"
    return [Result(what, "transformers", differ, 0)]


def _multilingual_model() -> bytes:
    return unigram_model(tuple(text for own in script_texts.sentences() for text in own), 2000)


def _of_model(folder: str, model: bytes):
    """Return the tokenisers that transformers and we make of a folder with a model."""
    import transformers

    Path(folder, "sentencepiece.bpe.model").write_bytes(model)
    theirs = transformers.XLMRobertaTokenizer.from_pretrained(folder)
    return theirs, huggingface_tokenizer.read(Path(folder), kind="unigram")
