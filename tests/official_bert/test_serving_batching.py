"""Requests that wait are answered together, each with its own rows."""

import threading
import types

import numpy as np
import pytest
import tensorflow as tf

from experiments.serving.batching import Batcher, can_be_joined


def signature(input_shape=(None,), **output_shapes):
    """What a loaded signature tells of itself."""
    return types.SimpleNamespace(
        structured_input_signature=((), {"text": tf.TensorSpec(input_shape, tf.string)}),
        structured_outputs={
            name: tf.TensorSpec(shape, tf.float32) for name, shape in output_shapes.items()
        },
    )


def test_only_signatures_without_padding_are_joined():
    assert can_be_joined(signature(labels=[None], logits=[None, 3]))
    assert not can_be_joined(signature(words=[None, None]))
    assert not can_be_joined(signature([None, None], choice=[None]))


class Model:
    """Doubles numbers; the first call waits until it is let go, so that others gather."""

    def __init__(self):
        self.batches, self.entered, self.go = [], threading.Event(), threading.Event()

    def run(self, signature, inputs):
        values = inputs["text"]
        self.batches.append(len(values))
        if len(self.batches) == 1:
            self.entered.set()
            assert self.go.wait(30)
        if -1 in values:
            raise ValueError("minus one")
        return {"labels": [str(value) for value in values], "double": 2 * values}


@pytest.fixture
def requests():
    """Function: lists of numbers -> (answers or errors in their order, sizes of the batches)."""

    def send(*rows, most_rows=8):
        model = Model()
        run = Batcher(model.run, {"default": signature(double=[None])}, 1, most_rows)
        answers = [None] * len(rows)

        def ask(place):
            try:
                answers[place] = run("default", {"text": np.array(rows[place], int)})
            except ValueError as error:
                answers[place] = error

        threads = [threading.Thread(target=ask, args=[place]) for place in range(len(rows))]
        threads[0].start()
        assert model.entered.wait(30)
        for count, thread in enumerate(threads[1:], 1):
            thread.start()
            while len(run._waiting) < count:
                threading.Event().wait(0.001)
        model.go.set()
        for thread in threads:
            thread.join(30)
        assert run._waiting == []
        return answers, model.batches

    return send


def test_requests_that_wait_are_computed_together(requests):
    answers, batches = requests([1], [2, 3], [4], [], [5])
    assert batches == [1, 4]
    assert [answer["labels"] for answer in answers] == [["1"], ["2", "3"], ["4"], [], ["5"]]
    assert [answer["double"].tolist() for answer in answers] == [[2], [4, 6], [8], [], [10]]


def test_a_batch_has_no_more_rows_than_it_may(requests):
    _, batches = requests([1], [2, 3], [4, 5], [6, 7], most_rows=4)
    assert batches[0] == 1 and sorted(batches[1:]) == [2, 4]


def test_a_request_that_fails_does_not_take_others_with_it(requests):
    answers, _ = requests([1], [2], [-1], [3])
    assert [answer["labels"] for answer in answers[:2]] == [["1"], ["2"]]
    assert str(answers[2]) == "minus one"
    assert answers[3]["labels"] == ["3"]
