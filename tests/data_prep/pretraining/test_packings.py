"""Rows of single segments and of sentence pairs, with BERT's and others' WordPieces."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from corpora import write_corpus
from hypothesis import given, settings
from hypothesis import strategies as st
from made_records import check_masks, check_rows, examples

from data_prep import show_records
from data_prep.create_pretraining_data import RecordOptions, create
from data_prep.pretraining.next_sentence import PACKINGS
from data_prep.pretraining.random_streams import RandomStream
from data_prep.pretraining.reading.dynamic_masking import MaskingRules
from data_prep.records import open_records
from official_bert.common.errors import UserError
from official_bert.tokenization import load_tokenizer, load_vocab
from tests.tiny import foreign

corpora = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=12), min_size=2, max_size=8)


def offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def draw(packing, corpus, max_tokens, short=0.0, duplications=1):
    streams = [RandomStream(3, duplication=k) for k in range(duplications)]
    sentences, documents = offsets(sum(corpus, [])), offsets([len(d) for d in corpus])
    return PACKINGS[packing](sentences, documents, max_tokens, short, streams)


def test_single_segments_by_hand():
    # Sentences of 3, 4, 5 tokens and of 9, 1; room for 7 tokens.
    rows = draw("single", [[3, 4, 5], [9, 1]], 7)
    found = {(a, n, c) for a, n, c in zip(rows.a_start, rows.a_length, rows.cut, strict=True)}
    assert found == {(0, 7, 0), (7, 5, 0), (12, 7, 2), (21, 1, 0)}
    assert not rows.is_random.any() and not rows.b_length.any()


@settings(max_examples=100)
@given(corpora, st.integers(2, 40), st.floats(0, 1))
def test_single_segments_are_whole_sentences_of_one_document(corpus, max_tokens, short):
    rows = draw("single", corpus, max_tokens, short, duplications=2)
    sentences = offsets(sum(corpus, []))
    ends = sentences[offsets([len(document) for document in corpus])]
    assert (rows.a_length <= max_tokens).all() and (np.diff(rows.duplication) >= 0).all()
    last = rows.a_start + rows.a_length + rows.cut
    assert np.isin(rows.a_start, sentences).all() and np.isin(last, sentences).all()
    assert (rows.a_start >= ends[rows.document]).all()
    assert (last <= ends[rows.document + 1]).all()
    for duplication in range(2):  # every token once
        assert (rows.a_length + rows.cut)[rows.duplication == duplication].sum() == sentences[-1]


@settings(max_examples=100)
@given(corpora)
def test_pairs_are_single_sentences(corpus):
    pairs = draw("pairs", corpus, 100)
    sentences = offsets(sum(corpus, [])).tolist()
    columns = pairs.a_start, pairs.a_length, pairs.b_start, pairs.b_length, pairs.is_random
    for a, n, b, m, is_random in zip(*columns, strict=True):
        assert sentences.index(a + n) == sentences.index(a) + 1
        assert sentences.index(b + m) == sentences.index(b) + 1
        assert is_random or b == a + n
    used = pairs.a_length.sum() + pairs.b_length[~pairs.is_random].sum()
    assert used == sentences[-1]  # as A, or as the true B of an A


def chunks(documents, target):
    """Yield (document, sentences, tokens) of every chunk, collected one sentence after another."""
    for number, document in enumerate(documents):
        sentences = tokens = 0
        for place, length in enumerate(document):
            sentences, tokens = sentences + 1, tokens + length
            if tokens >= target or place == len(document) - 1:
                yield number, sentences, tokens
                sentences = tokens = 0


@settings(max_examples=40)
@given(corpora, st.integers(2, 80))
def test_consecutive_segments_have_a_random_partner_in_chunks_of_one_sentence_only(corpus, limit):
    pairs = draw("consecutive", corpus, limit)
    expected = list(chunks(corpus, limit))
    assert sorted(pairs.document[pairs.is_random]) == [d for d, n, _ in expected if n == 1]
    found = pairs.take(~pairs.is_random)
    whole = found.a_length + found.b_length + found.cut
    assert sorted(zip(found.document, whole, strict=True)) == sorted(
        (document, tokens) for document, sentences, tokens in expected if sentences > 1
    )
    assert (found.document == found.random_document).all()
    assert (found.b_start >= found.a_start + found.a_length).all()


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "a.txt", documents=30)


@pytest.fixture
def vocabularies(tmp_path, vocab):
    foreign(load_vocab(vocab)).write(tmp_path)
    return {"word_piece": vocab, "tokenizer_json": str(tmp_path / "tokenizer.json")}


@pytest.mark.parametrize("kind", ["word_piece", "tokenizer_json"])
@pytest.mark.parametrize("packing", ["segments", "pairs", "single"])
@pytest.mark.parametrize("whole_words", [False, True])
def test_rows(tmp_path, corpus, vocabularies, kind, packing, whole_words):
    options = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 2}
    options |= {"packing": packing, "do_whole_word_mask": whole_words}
    vocab, folder = vocabularies[kind], tmp_path / "records"
    manifest = create(corpus, vocab, str(folder), num_workers=1, progress=False, **options)
    tokenizer, read = load_tokenizer(vocab), examples(folder)
    assert (folder / tokenizer.file_name).read_bytes() == Path(vocab).read_bytes()
    chosen = dataclasses.asdict(RecordOptions(**options))
    lengths, ids = check_rows(read, chosen, tokenizer)
    check_masks(read, ids, lengths, chosen, tokenizer)
    assert manifest["counts"]["tokens"] == lengths.sum() and len(ids) > 100


def test_what_reads_such_records(tmp_path, corpus, vocabularies):
    options = {"packing": "single", "dynamic_masking": True, "do_whole_word_mask": True}
    folder, vocab = str(tmp_path / "records"), vocabularies["tokenizer_json"]
    create(corpus, vocab, folder, progress=False, num_workers=1, **options)
    rules, tokenizer = MaskingRules.of(open_records(folder)), load_tokenizer(vocab)
    assert (rules.cls, rules.sep) == (tokenizer.cls_id, tokenizer.sep_id)
    assert rules.mask == tokenizer.mask_id and (rules.continues == tokenizer.continues).all()
    shown = show_records.show(folder, examples=1)
    assert "one segment" in shown and "B:" not in shown and " word" in shown


def test_one_document_is_enough_for_single_segments(tmp_path, write, vocab):
    path = write("a.txt", "worda wordb .\nwordc .\n" * 40)
    options = {"packing": "single", "progress": False, "num_workers": 1}
    made = create(path, vocab, str(tmp_path / "one"), **options)
    assert made["counts"]["random_next"] == 0
    assert made["options"]["packing"] == "single" and made["options"]["separators"] == 0


def test_records_of_consecutive_segments(tmp_path, write, vocab):
    # Every document is one chunk: ten of three sentences and four of one.
    path = write("a.txt", "worda .\nwordb .\nwordc .\n\n" * 10 + "wordd worde .\n\n" * 4)
    options = {"short_seq_prob": 0.0, "dupe_factor": 3, "progress": False, "num_workers": 1}

    def made(**more):
        return create(path, vocab, str(tmp_path / "records"), **options, **more)

    manifest = made(packing="consecutive")
    assert manifest["counts"]["examples"] == 3 * 14
    assert manifest["counts"]["random_next"] == 3 * 4
    labels = examples(tmp_path / "records")["next_sentence_labels"]
    assert labels.sum() == 3 * 4 and manifest["options"]["packing"] == "consecutive"
    with pytest.raises(UserError, match="packing: .*consecutive"):
        made()


def test_wrong_options(tmp_path, corpus, vocabularies):
    with pytest.raises(UserError, match="packing='full'; it is one of"):
        create(corpus, vocabularies["word_piece"], str(tmp_path / "r"), packing="full")
    with pytest.raises(UserError, match="segmented: only WordPiece"):
        create(corpus, vocabularies["tokenizer_json"], str(tmp_path / "r"), segmented=True)
