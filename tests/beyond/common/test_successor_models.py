"""Models with the tokenisers of RoBERTa and ALBERT: saved, loaded, asked and served."""

import json

import numpy as np
import pytest
from damage import flip

import official_bert as ob
from experiments.beyond.sentence_piece.tokenizer import SentencePieceTokenizer
from official_bert.checkpoints.finding.resolve import EXPORTERS
from official_bert.checkpoints.hugging_face import huggingface_tokenizer
from official_bert.common.errors import UserError
from official_bert.tokenization.library import own_json
from official_bert.tokenization.word_groups import word_spans
from tests.beyond.successor_tokenizers import byte_pairs, sentence_piece_model

WORDS = ["Ġthe", "the", "Ġdog", "Ġcat", "Ġsat", "Ġon"]
TEXTS = ["the dog sat, (well) on.", "A cat isn't  a dog!", "the U.S. 彼得 café"]
PAIRS = ["the cat", "the dog sat on the cat", "x"]


@pytest.fixture(scope="module", params=["byte_pair", "sentence_piece"])
def tokenizer(request):
    if request.param == "byte_pair":
        return byte_pairs(WORDS)
    pytest.importorskip("sentencepiece")
    return SentencePieceTokenizer(sentence_piece_model())


@pytest.fixture(scope="module")
def encoder(tokenizer):
    config = ob.BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        type_vocab_size=1,
        initializer_range=0.2,
    )
    return ob.BertEncoder(config, seed=0)


def _loaded(tmp_path, model, tokenizer, **settings):
    ob.save(tmp_path / "model", model, tokenizer, settings, overwrite=True)
    return ob.load(tmp_path / "model")


def test_model_folders(tmp_path, encoder, tokenizer):
    loaded = _loaded(tmp_path, encoder, tokenizer)
    assert loaded.tokenizer.digest() == tokenizer.digest()
    assert loaded.settings["tokenizer"] == tokenizer.kind
    folder = tmp_path / "model"
    assert (folder / tokenizer.file_name).is_file() and not (folder / "vocab.txt").exists()

    settings = json.loads((folder / "model.json").read_text())
    assert tokenizer.file_name in settings["checksums"]
    flip(folder / tokenizer.file_name, -2)
    with pytest.raises(UserError, match=tokenizer.file_name):
        ob.load(folder)
    (folder / tokenizer.file_name).unlink()
    with pytest.raises(UserError, match=f"{tokenizer.file_name}: missing"):
        ob.load(folder)
    (folder / "model.json").write_text(json.dumps({**settings, "tokenizer": "letters"}))
    with pytest.raises(UserError, match="tokenizer=.letters.; it is one of word_piece, tok"):
        ob.load(folder)


def assert_same(found, tokenizer):
    if tokenizer.kind == "byte_pair":
        found = own_json.as_own(found, "byte_pair", "x")
    assert found.digest() == tokenizer.digest()


def test_files_of_transformers(tmp_path, tokenizer):
    tokenizer.write(tmp_path)
    found = huggingface_tokenizer.read(tmp_path, kind=tokenizer.kind)
    assert_same(found, tokenizer)
    assert huggingface_tokenizer.read(tmp_path / "none", kind=tokenizer.kind) is None
    other = {"byte_pair": "sentence_piece", "sentence_piece": "byte_pair"}[tokenizer.kind]
    with pytest.raises(UserError, match="Unigram|byte_pair"):
        path = tmp_path / tokenizer.file_name
        huggingface_tokenizer.read(tmp_path, vocab=path, kind=other)


def test_exports(tmp_path, encoder, tokenizer):
    with pytest.raises(UserError, match=f"this model's tokeniser is {tokenizer.kind}"):
        EXPORTERS["google"](tmp_path / "google", encoder, tokenizer)
    notes = EXPORTERS["huggingface"](tmp_path / "out", encoder, tokenizer)
    if tokenizer.kind == "byte_pair":  # the encoder is RoBERTa's
        assert notes == []
        assert_same(ob.load(tmp_path / "out").tokenizer, tokenizer)
    else:
        assert notes[0].startswith("no tokenizer files: byte_pair is what roberta has")
        huggingface_tokenizer.write(tmp_path, tokenizer, 64)
        found = huggingface_tokenizer.read(tmp_path, kind="sentence_piece")
        assert found.digest() == tokenizer.digest()


def _served(loaded, head, **settings):
    pytest.importorskip("tensorflow")
    from official_bert.export.saved_model import in_memory
    from official_bert.export.settings import ServingSettings

    return in_memory(loaded, head, ServingSettings.from_loaded(loaded, **settings))


@pytest.mark.parametrize("pairs", [None, PAIRS])
def test_texts_are_packed_and_answered_as_in_training(tmp_path, encoder, tokenizer, pairs):
    import tensorflow as tf

    model = ob.BertClassifier(encoder, num_labels=2, seed=1)
    labels = {"labels": ["a", "b"], "task": {"name": "x", "options": {}}}
    loaded = _loaded(tmp_path, model, tokenizer, max_seq_length=20, **labels)
    rows = tokenizer.pack(TEXTS, pairs, 20)
    served = _served(loaded, "classification")
    texts = [served.tokenize(tf.constant(x)) for x in (TEXTS, pairs) if x is not None]
    packed, _ = served.pack_texts(texts)
    assert packed.ids.numpy().tolist() == sum((row["input_ids"] for row in rows), [])
    assert packed.segments.numpy().tolist() == sum((row["segment_ids"] for row in rows), [])
    answers = loaded.predict(TEXTS, pairs)
    expected = model(tokenizer.pad(rows, 20), training=False)["logits"]
    shares = np.array([list(answer["probabilities"].values()) for answer in answers])
    wanted = np.exp(expected) / np.exp(expected).sum(-1, keepdims=True)
    np.testing.assert_allclose(shares, wanted, atol=1e-5)
    served = served.answer_padded_ids(**tokenizer.pad(rows, 20))["probabilities"]
    np.testing.assert_allclose(served, wanted, atol=1e-5)


def test_tagging_reads_every_word_behind_a_blank(tmp_path, encoder, tokenizer):
    model = ob.BertTagger(encoder, num_labels=3, seed=1)
    loaded = _loaded(tmp_path, model, tokenizer, max_seq_length=64, labels=["O", "B", "I"])
    for text, answer in zip(TEXTS, loaded.predict(TEXTS), strict=True):
        spans = word_spans(text)
        words = [text[start:end] for start, end in spans]
        assert [(word["start"], word["end"]) for word in answer["words"]] == spans
        assert [word["word"] for word in answer["words"]] == words
        pieces = [tokenizer.encode(f" {word}") for word in words]
        ids = [tokenizer.cls_id, *sum(pieces, []), tokenizer.sep_id]
        row = {"input_ids": ids, "segment_ids": [0] * len(ids)}
        logits = np.asarray(model(tokenizer.pad([row], len(ids)), training=False)["logits"])[0]
        first = 1 + np.cumsum([0, *map(len, pieces)])[:-1]
        best = [["O", "B", "I"][index] for index in logits[first].argmax(-1)]
        assert [word["label"] for word in answer["words"]] == best


def test_answers_are_parts_of_the_passage(tmp_path, encoder, tokenizer):
    model = ob.BertSpan(encoder, seed=1)
    loaded = _loaded(tmp_path, model, tokenizer, max_seq_length=40)
    served = _served(loaded, "span", max_query_length=8, doc_stride=8)
    import tensorflow as tf

    found = served.answer_texts(tf.constant(["the dog?"]), tf.constant([" ".join(TEXTS)]))
    start, end = int(found["start"][0]), int(found["end"][0])
    assert " ".join(TEXTS)[start:end] == found["answer"].numpy()[0].decode() != ""


def test_masks_are_filled_as_they_are_served(tmp_path, encoder, tokenizer):
    import tensorflow as tf

    model = ob.BertPretrainer(encoder, ["masked_lm"])
    loaded = _loaded(tmp_path, model, tokenizer)
    mask = tokenizer.special.mask
    text = f"the {mask} sat {mask}."
    answer = loaded.fill_mask(text, top_k=3)
    served = _served(loaded, "masked_words", top_k=3).answer_texts(tf.constant([text]))
    words = [[word.decode() for word in row] for row in served["words"].numpy()[0]]
    assert words == [[word["word"] for word in row] for row in answer["masks"]]
    starts, ends = served["start"].numpy()[0], served["end"].numpy()[0]
    assert [text[a:b] for a, b in zip(starts, ends, strict=True)] == [mask, mask]
    assert {word for row in words for word in row} <= {*tokenizer.readable}
    with pytest.raises(UserError, match=f"has no {mask}".replace("[", r"\[")):
        loaded.fill_mask("nothing")
