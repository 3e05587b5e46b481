"""Starts of fine-tuning and how it may differ from the paper's: heads, weights, patience."""

import types

import numpy as np
import pytest

from experiments.training.start import class_weights, reuse_head
from experiments.training.step import loop
from official_bert.common.errors import UserError

OURS = {"head": "classification", "num_labels": 2, "labels": ["ham", "spam"]}
OURS["problem"] = "single_label"


@pytest.mark.parametrize(
    ("theirs", "why"),
    [
        ({}, ""),
        ({"labels": ["spam", "ham"]}, ""),
        ({"labels": ["LABEL_0", "LABEL_1"]}, ""),
        ({"labels": []}, ""),
        ({"labels": ["ham", "eggs"]}, "the model's labels are ham, eggs, the task's ham, spam"),
        ({"labels": list("abc"), "num_labels": 3}, "the model's labels are a, b, c, the task's"),
        ({"problem": "multi_label"}, "the model's is multi_label, the task's single_label"),
        ({"bilstm": True}, "the model's has a BiLSTM"),
        ({"mean_pooling": True}, "the model's has mean pooling"),
        ({"head": "span"}, "the model's is for span, the task's for classification"),
        ({"head": "pretraining"}, "the model has none"),
    ],
)
def test_a_head_is_kept_where_it_fits(theirs, why):
    found = reuse_head.difference({**OURS, **theirs}, OURS, bilstm=False)
    assert found.startswith(why) and bool(found) == bool(why)
    assert reuse_head.difference(None, OURS, False) == "the model has none"


def test_labels_in_another_order_take_their_columns_along():
    weights = [np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([5.0, 6.0])]
    kernel, bias = reuse_head.arrays({**OURS, "labels": ["spam", "ham"]}, OURS, weights)
    assert kernel.tolist() == [[2.0, 1.0], [4.0, 3.0]] and bias.tolist() == [6.0, 5.0]


def test_weights_of_classes():
    def of(text, problem="single_label"):
        task = types.SimpleNamespace(name="t", head={**OURS, "problem": problem})
        labels = types.SimpleNamespace(values=np.array([0, 0, 0, 1], np.int8))
        features = types.SimpleNamespace(columns={"label_ids": labels})
        return class_weights.class_weights_of(
            types.SimpleNamespace(class_weights=text), task, features
        )

    assert of("") is None
    np.testing.assert_allclose(of("balanced"), [4 / 6, 2.0])
    np.testing.assert_allclose(of("spam=3"), [1.0, 3.0])
    for wrong in ("eggs=2", "ham=-1", "ham=nan", "ham=inf", "spam=2"):
        with pytest.raises(UserError, match=f"'{wrong}' is not a .* the labels are ham, spam; or"):
            of(f"spam=1,{wrong}")
    with pytest.raises(UserError, match="t is multi_label here. Leave class_weights out"):
        of("balanced", "multi_label")


@pytest.mark.parametrize("worst", [0.6, np.nan])
def test_training_stops_when_patience_ends(worst):
    scores = {2: worst, 4: 0.7, 6: worst, 8: 0.7, 10: 0.9}
    said = types.SimpleNamespace(advance=lambda *_: None, log=lambda *_: None, say=lambda *_: None)
    trainer = types.SimpleNamespace(arrays=dict, learning_rate=lambda step: 0.0)
    metrics = {"loss": np.ones(1), "gradient_norm": np.ones(1)}
    batches = types.SimpleNamespace(
        take=lambda trainer, step, count: (metrics, 1, 1, 1), position=lambda step: {}
    )
    checkpoints = types.SimpleNamespace(save=lambda *_, **__: None, steps=list)
    events = loop.LoopEvents(last_step=10, eval_every=2, patience=2, steps_per_call=1)
    state = loop.train(
        trainer, batches, events, checkpoints, said, loop.TrainingState(),
        evaluate=lambda step: ({"f1": scores[step]}, scores[step]),
    )  # fmt: skip
    assert (state.step, state.best_step) == (8, 4)
