"""Bytes that are not UTF-8, in every head: the graph reads what Python's "ignore" leaves."""

import numpy as np
import pytest
from served_models import loaded
from tiny_served import Unsaved

import official_bert as ob
from official_bert.export.served_model import valid_utf8

tf = pytest.importorskip("tensorflow")


def random_bytes(count, seed=0):
    """Return texts, each with some bytes changed, left out or put in."""
    numbers = np.random.default_rng(seed)
    words = ["the cat", "dog .", "é", "東", "\U0001f600", "Å", "\u0378", " ", "sat", "[MASK]"]
    found = []
    for _ in range(count):
        raw = bytearray(" ".join(numbers.choice(words, 12)).encode())
        for _ in range(numbers.integers(0, 12)):
            place = int(numbers.integers(0, len(raw)))
            raw[place : place + int(numbers.integers(0, 3))] = numbers.bytes(numbers.integers(0, 4))
        found.append(bytes(raw))
    return found


def test_strings_are_made_valid_as_python_does():
    raw = [*random_bytes(3000), *(np.random.default_rng(1).bytes(40) for _ in range(2000)), b""]
    raw += b"\xed\xa0\x80a \xf4\x90\x80\x80 \xc0\xafb \xef\xbb\xbfx a\x00b \xe2\x82".split()
    expected = [text.decode("utf-8", "ignore").encode() for text in raw]
    assert valid_utf8(tf.constant(raw)).numpy().tolist() == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda encoder: ob.BertClassifier(encoder, 2, seed=1),
        lambda encoder: ob.BertSpan(encoder, seed=1),
        lambda encoder: ob.BertTagger(encoder, 2, seed=1),
        lambda encoder: ob.BertMultipleChoice(encoder, seed=1),
        lambda encoder: ob.BertPretrainer(encoder, seed=1),
        lambda encoder: encoder,
    ],
)
def test_every_head_answers_bytes_as_the_text_that_is_left(make, config, tokenizer):
    settings = {"labels": ["x", "y"], "max_seq_length": 32, "max_query_length": 8}
    model = loaded(make(ob.BertEncoder(config, seed=0)), tokenizer, **settings)
    served = Unsaved(model)
    raw = random_bytes(40, seed=2)
    texts = [text.decode("utf-8", "ignore") for text in raw]
    names = list(served._served.text_inputs)
    given, expected = {names[0]: raw}, {names[0]: texts}
    if len(names) == 2:
        nested = (lambda rows: [[row, row] for row in rows]) if "choices" in names else list
        given[names[1]], expected[names[1]] = nested(raw[::-1]), nested(texts[::-1])
    found, wanted = served(**given), served(**expected)
    for name, values in wanted.items():
        if np.asarray(values).dtype.kind == "f":
            np.testing.assert_allclose(found[name], values, atol=1e-5)
        else:
            assert np.array_equal(found[name], values), name
    if model.head == "span":
        for answer, start, end, text in zip(
            *(found[n] for n in ("answer", "start", "end")), texts[::-1], strict=True
        ):
            assert answer == (text[start:end] if start >= 0 else "")


def test_masks_that_are_none_are_refused(config, tokenizer):
    model = ob.BertClassifier(ob.BertEncoder(config, seed=0), 2, seed=1)
    answer = Unsaved(loaded(model, tokenizer, labels=["x", "y"]))._served.answer_padded_ids
    ids, mask = np.full((2, 4), 7, np.int32), np.ones((2, 4), np.int32)
    answer(*map(tf.constant, (ids, mask, 0 * mask)))
    for wrong, message in (
        (2 * mask, "must be 0 or 1"), (-mask, "must be 0 or 1"), (mask * [[1], [0]], "no token"),
    ):  # fmt: skip
        wrong = wrong.astype(np.int32)
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            answer(*map(tf.constant, (ids, wrong, 0 * mask)))
        batch = {"input_ids": ids, "input_mask": wrong, "segment_ids": 0 * mask}
        for ask in (model.predict, model.encoder.predict):
            with pytest.raises(ob.UserError, match=message):
                ask(batch)
