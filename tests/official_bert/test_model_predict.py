"""Answers of a loaded model to texts: the same as its parts called by hand, in any batches."""

import dataclasses
from unittest import mock

import numpy as np
import pytest
import served_models
from scipy.special import softmax

import official_bert as ob
from official_bert.checkpoints.sentence_vectors import SentenceVectors
from official_bert.export import text_answers
from official_bert.predict import Model

TEXTS = ["the cat sat", "london", "a big red dog sat on the mat in paris .", "the dog ?"]


@pytest.fixture
def loaded(tokenizer):
    """Return loaded(model) as `official_bert.load` would give it."""
    return lambda model, **settings: Model.from_loaded(
        served_models.loaded(model, tokenizer, **settings)
    )


@pytest.fixture(scope="module")
def encoder(config):
    return ob.BertEncoder(config, seed=0)


def test_classes_and_their_shares_follow_the_weights(loaded, encoder, tokenizer):
    model = loaded(ob.BertClassifier(encoder, 3, seed=1), labels=["x", "y", "z"], max_seq_length=16)
    answers = model.predict(TEXTS)
    for text, answer in zip(TEXTS, answers, strict=True):
        expected = softmax(np.asarray(model.model(tokenizer(text))["logits"])[0])
        np.testing.assert_allclose(list(answer["probabilities"].values()), expected, atol=1e-5)
        assert answer["label"] == "xyz"[expected.argmax()]
    assert model.predict(TEXTS[1])["label"] == answers[1]["label"]
    for one, other in zip(answers, model.predict(TEXTS, batch_size=1), strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
    model.model.head.bias.assign([0.0, 99.0, 0.0])
    assert {answer["label"] for answer in model.predict(TEXTS)} == {"y"}


def test_pairs_several_labels_and_values(loaded, encoder, tokenizer):
    model = loaded(ob.BertClassifier(encoder, 2, "multi_label", seed=1), labels=["x", "y"])
    model.model.head.bias.assign([99.0, -99.0])
    assert model.predict("the cat", "a dog")["labels"] == ["x"]
    value = loaded(ob.BertClassifier(encoder, 1, "regression", seed=1))
    batch = tokenizer(TEXTS[:2], TEXTS[2:])
    expected = np.asarray(value.model(batch)["logits"])[:, 0]
    found = [answer["value"] for answer in value.predict(TEXTS[:2], TEXTS[2:])]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_text_cut_gives_a_warning(loaded, encoder):
    model = loaded(ob.BertClassifier(encoder, 2, seed=1), max_seq_length=8)
    with pytest.warns(UserWarning, match="1 of 4 texts are longer than 8 tokens"):
        model.predict(TEXTS)


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_vectors(pooling, loaded, encoder, tokenizer):
    model = loaded(encoder)
    found = model.embed(TEXTS, pooling, batch_size=3)
    outputs = [encoder(tokenizer(text)) for text in TEXTS]
    sequences = [np.asarray(output["sequence_output"])[0] for output in outputs]
    expected = {
        "mean": [sequence.mean(0) for sequence in sequences],
        "cls": [sequence[0] for sequence in sequences],
        "pooler": [np.asarray(output["pooled_output"])[0] for output in outputs],
    }[pooling]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.dtype == np.float32 and model.embed(TEXTS[0], pooling).shape == (16,)
    model.vectors = SentenceVectors(("max",))
    highest = [sequence.max(0) for sequence in sequences]
    np.testing.assert_allclose(model.embed(TEXTS), highest, atol=1e-5)
    model.vectors = SentenceVectors(("mean",))
    np.testing.assert_allclose(model.embed(TEXTS), [x.mean(0) for x in sequences], atol=1e-5)
    unit = model.embed(TEXTS, pooling, layer=1, normalize=True)
    np.testing.assert_allclose((unit**2).sum(1), np.ones(4), rtol=1e-5)


def test_masks_are_filled(loaded, encoder, tokenizer):
    model = loaded(ob.BertPretrainer(encoder, seed=0))
    answer = model.fill_mask("the [MASK] sat on [MASK].", top_k=3)
    ids = tokenizer("the x sat on x.")["input_ids"]
    places = [2, 5]
    ids[0, places] = tokenizer.mask_id
    sequence = encoder({"input_ids": ids})["sequence_output"]
    head, table = model.model.masked_lm, encoder.embeddings.word_embeddings
    logits = np.asarray(head(sequence, table))[0, places, : len(tokenizer.vocab)]
    for mask, expected in zip(answer["masks"], softmax(logits, axis=-1), strict=True):
        best = np.argsort(-expected)[:3]
        assert [word["word"] for word in mask] == [tokenizer.vocab[i] for i in best]
        np.testing.assert_allclose([w["probability"] for w in mask], expected[best], atol=1e-6)
    model.model.masked_lm.bias.assign(99.0 * np.eye(50)[tokenizer.vocab.index("dog")])
    both = model.fill_mask(["[MASK] sat", "the big [MASK] [MASK]!"])
    assert [one["text"] for one in both] == ["dog sat", "the big dog dog!"]
    model.model.masked_lm.bias.assign(99.0 * np.eye(50)[tokenizer.vocab.index("##ed")])
    assert model.fill_mask("a mat [MASK].")["text"] == "a mated."
    with pytest.raises(ob.UserError, match=r"text 1 has no \[MASK\]"):
        model.fill_mask(["a [MASK]", "the cat"])
    with pytest.raises(ob.UserError, match="text 0 has 43 tokens, the model 32 positions"):
        model.fill_mask("a " * 40 + "[MASK]")


def test_a_place_that_the_mask_itself_fills_best_is_left_to_it(tokenizer):
    ids = np.array([[tokenizer.mask_id], [tokenizer.vocab.index("dog")]])
    ask = mock.Mock(return_value=[{"token_ids": ids, "probabilities": np.ones((2, 1))}])
    (answer,) = text_answers.masked_words(tokenizer, ask, ["the [MASK] sat [MASK] ."], 32)
    assert answer["text"] == "the [MASK] sat dog ."


def test_words_answers_and_choices(loaded, encoder):
    """By the code that exported models run, which has its own tests."""
    tagger = loaded(ob.BertTagger(encoder, 2, seed=1), labels=["O", "B-X"], max_seq_length=8)
    long, short = tagger.predict([TEXTS[2], "london"])
    assert [w["word"] for w in long["words"]] == TEXTS[2].split()
    assert [(w["word"], w["start"], w["end"]) for w in short["words"]] == [("london", 0, 6)]
    assert set(short["words"][0]) == {"word", "label", "start", "end", "probability"}
    span = loaded(ob.BertSpan(encoder, seed=1), max_seq_length=24, max_query_length=8)
    answer = span.predict("the cat ?", TEXTS[2])
    assert answer["answer"] == TEXTS[2][answer["start"] : answer["end"]] != ""
    choice = loaded(ob.BertMultipleChoice(encoder, seed=1))
    assert len(choice.predict("the cat", ["sat", "on", "mat"])["probabilities"]) == 3


def test_questions_that_a_model_cannot_answer(loaded, encoder, config):
    reader = ob.BertEncoder(dataclasses.replace(config, attention_direction="left_to_right"))
    one_way = loaded(ob.BertPretrainer(reader, objectives=("next_token",)))
    alone, span = loaded(encoder), loaded(ob.BertSpan(encoder))
    both_sides = loaded(ob.BertPretrainer(encoder))
    without = Model(config, encoder, encoder, "none", None, {"head": "none"})
    for ask, message in (
        (lambda: alone.predict("the cat"), "no fine-tuned head .*: use embed, or train a head"),
        (lambda: alone.fill_mask("[MASK]"), "no masked-LM head .*: use embed"),
        (lambda: span.fill_mask("[MASK]"), "its head is span.: use predict"),
        (lambda: both_sides.predict("the cat"), "no fine-tuned head .*: use fill_mask"),
        (lambda: one_way.fill_mask("[MASK]"), "left-to-right model cannot fill .*: use generate"),
        (lambda: alone.embed(["a", " "]), "text 1 is empty"),
        (lambda: alone.embed("a", "median"), "pooling='median'; it is one of cls, max"),
        (lambda: alone.embed("a", layer=3), "layer=3; the encoder has hidden states 0 to 2"),
        (lambda: alone.embed("a", batch_size=0), "batch_size must be positive, not 0"),
        (lambda: alone.embed("a", batch_size=-1), "batch_size must be positive, not -1"),
        (lambda: span.predict("the cat ?"), "a passage for each question"),
        (lambda: without.embed("a"), "without a vocabulary"),
    ):
        with pytest.raises(ob.UserError, match=message):
            ask()
