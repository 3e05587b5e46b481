"""Wrong settings, inputs and requests of exports, refused by name before a graph runs."""

import types

import pytest
from served_models import LABELS, loaded, make_encoder

from official_bert import BertClassifier, UserError
from official_bert.export import exports
from official_bert.export.settings import ServingSettings

tf = pytest.importorskip("tensorflow")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_query_length": -1}, "max_query_length must not be negative, but is -1"),
        ({"window_overlap": -3}, "window_overlap must not be negative"),
        ({"input_fields": ("my text",)}, "input_fields: 'my text' is not a name"),
        ({"input_fields": ("self",)}, "input_fields: 'self' is not a name"),
        ({"input_fields": ("",)}, "input_fields: '' is not a name"),
    ],
)
def test_settings_that_no_graph_can_have(fields, message):
    with pytest.raises(UserError, match=message):
        ServingSettings(**fields)


def test_rows_without_room_for_text():
    """A graph would cut every text to nothing, or fail at each request."""
    model = loaded(BertClassifier(make_encoder(), 3), labels=LABELS)
    for length, fields in ((2, ("text",)), (3, ("text_a", "text_b"))):
        settings = ServingSettings(fields, LABELS, max_seq_length=length)
        with pytest.raises(UserError, match=f"max_seq_length={length} leaves no room for text"):
            settings.check_for("classification", model)
    ServingSettings(("text",), LABELS, max_seq_length=3).check_for("classification", model)


def test_a_loaded_model_without_a_vocabulary():
    with pytest.raises(UserError, match="the model: has no vocabulary"):
        exports.load(types.SimpleNamespace(tokenizer=None))


@pytest.mark.parametrize(
    ("signature", "inputs", "message"),
    [
        ("words", {"text": ["a"]}, "signature='words'; it is one of serving_default"),
        ("serving_default", {"texts": ["a"]}, "the inputs are texts; they must be text"),
        ("serving_default", {}, "the inputs are none; they must be text"),
        ("serving_default", {"text": "a"}, r"text has the shape \(\); it must be \(None,\)"),
        ("serving_default", {"text": [1]}, "text: .*string"),
    ],
)
def test_inputs_that_a_signature_does_not_take(signature, inputs, message):
    from official_bert.export.client import ExportedModel

    @tf.function(autograph=False)
    def lengths(*, text):
        return {"length": tf.strings.length(text)}

    model = object.__new__(ExportedModel)
    function = lengths.get_concrete_function(text=tf.TensorSpec([None], tf.string, "text"))
    model.signatures = {"serving_default": function}
    assert model(text=["abc"])["length"].tolist() == [3]
    with pytest.raises(UserError, match=message):
        model(signature, **inputs)


def test_examples_with_different_numbers_of_choices():
    """A choice of "" that fills a row would take a share of the others' probability."""
    from official_bert.export.saved_model import _example, _parse_examples

    two, three = ({"choices": [["x"] * count]} for count in (2, 3))
    shapes = {"choices": [None, None]}
    both = _parse_examples(tf.constant([_example(three, 0), _example(three, 0)]), shapes)
    assert both["choices"].shape == (2, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="choices must be of one number"):
        _parse_examples(tf.constant([_example(two, 0), _example(three, 0)]), shapes)
