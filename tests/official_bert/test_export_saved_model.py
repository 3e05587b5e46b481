"""Exported models answer as the models they were made from, without this project."""

import json
import pickle
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest
from damage import flipped
from served_models import LABELS, TEXTS, VOCAB, features, loaded, make_encoder, numpy_logits
from tiny_served import Unsaved

from official_bert import BertClassifier, BertMultipleChoice, BertSpan, UserError
from official_bert.export import export, load

# Runs in a process that has tensorflow and tensorflow-text, and cannot import this project.
FRESH = """
import pickle, sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("official_bert", "data_prep", "experiments", "keras_hub"):
            raise ImportError(name + " is not here")
sys.meta_path.insert(0, Block())
import numpy as np, tensorflow as tf, tensorflow_text
answers = []
for folder, signature, inputs in pickle.load(open(sys.argv[1], "rb")):
    model = tf.saved_model.load(folder)
    run = model.signatures[signature]
    specs = run.structured_input_signature[1]
    out = run(**{name: tf.constant(value, specs[name].dtype) for name, value in inputs.items()})
    answers.append({name: value.numpy() for name, value in out.items()})
assert not any(name.startswith("official_bert") for name in sys.modules)
pickle.dump(answers, open(sys.argv[2], "wb"))
"""


def ask_in_fresh_process(tmp_path, questions):
    """Map [(SavedModel, signature, inputs)] -> outputs of each, with texts as str."""
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    asked.write_bytes(pickle.dumps([(str(path), *rest) for path, *rest in questions]))
    command = [sys.executable, "-I", "-c", FRESH, str(asked), str(answered)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    return pickle.loads(answered.read_bytes())


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """Return (the model, the folder of its only version, 2)."""
    model = loaded(BertClassifier(make_encoder(num_hidden_layers=2), 3, seed=1), labels=LABELS)
    return model, export(model, tmp_path_factory.mktemp("exported") / "spam", version=2)


@pytest.fixture(scope="module")
def choices(tmp_path_factory):
    model = loaded(BertMultipleChoice(make_encoder(), seed=2), max_seq_length=16)
    return model, export(model, tmp_path_factory.mktemp("exported") / "choices")


@pytest.mark.parametrize("direction", ["bidirectional", "left_to_right"])
def test_the_packed_encoder_equals_the_encoder(monkeypatch, direction):
    """Rows of mixed length, in one group and in several."""
    from official_bert.export import packed_encoder
    from official_bert.tokenization.graph import in_graph_packing as packing

    encoder = make_encoder(num_hidden_layers=2, attention_direction=direction)
    rng = np.random.default_rng(0)
    lengths = np.array([3, 40, 1, 17, 64, 2, 9, 33])
    mask = (np.arange(64) < lengths[:, None]).astype(np.int32)
    ids = rng.integers(0, len(VOCAB), mask.shape).astype(np.int32) * mask
    segments = (np.arange(64) > 5).astype(np.int32) * mask
    batch = {"input_ids": ids, "input_mask": mask, "segment_ids": segments}
    expected = np.asarray(encoder(batch)["sequence_output"])[mask == 1]
    pooled = np.asarray(encoder(batch)["pooled_output"])
    packed = packing.from_padded(ids, mask, segments)
    for tokens_of_a_group in (64, 70, 10_000):
        monkeypatch.setattr(packed_encoder, "_GROUP_TOKENS", tokens_of_a_group)
        fast = packed_encoder.PackedEncoder(encoder)
        sequence = fast.encode(packed)
        np.testing.assert_allclose(sequence, expected, atol=2e-5)
        np.testing.assert_allclose(fast.pooled(sequence, packed), pooled, atol=2e-5)


def test_pairs_of_texts_are_answered():
    pairs = [(text, other) for text, other in zip(TEXTS, reversed(TEXTS), strict=True)]
    left_to_right = make_encoder(attention_direction="left_to_right", gelu_form="tanh")
    pair_model = BertClassifier(left_to_right, 3, bilstm=True, seed=1)
    pair = loaded(pair_model, labels=LABELS, max_seq_length=32)
    served = Unsaved(pair, input_fields=("premise", "hypothesis"))
    premises, hypotheses = zip(*pairs, strict=True)
    found = served(premise=premises, hypothesis=hypotheses)["logits"]
    expected = numpy_logits(pair.model, features(pair.tokenizer, pairs, 32))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert len(set(expected.argmax(axis=1))) > 1, "the test needs answers that differ"


def test_a_classifier_answers_in_a_fresh_process(classifier, tmp_path):
    single, path = classifier
    ids = features(single.tokenizer, [(text,) for text in TEXTS], 64)
    asked = [(path, "serving_default", {"text": TEXTS}), (path, "token_ids", ids)]
    by_text, by_id = ask_in_fresh_process(tmp_path, asked)
    expected = numpy_logits(single.model, ids)
    for answer in (by_text, by_id):
        np.testing.assert_allclose(answer["logits"], expected, atol=1e-4)
        likeliest = [LABELS[i].encode() for i in expected.argmax(axis=1)]
        assert answer["labels"].tolist() == likeliest
        np.testing.assert_allclose(answer["probabilities"].sum(axis=1), 1, atol=1e-5)


@pytest.mark.filterwarnings("error:.*serving.json has no checksums")  # the flip was in that word
def test_every_flipped_bit_is_found_before_the_graph_is_read(classifier, tmp_path):
    folder = tmp_path / "1"
    shutil.copytree(classifier[1], folder)
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name[:1] != ".")
    names = {"saved_model.pb", "variables.index", "vocab.txt", "serving.json"}
    assert names <= {path.name for path in files}
    draw = random.Random(0)
    for path in files:
        content = path.read_bytes()
        for _ in range(20):
            path.write_bytes(flipped(content, *divmod(draw.randrange(8 * len(content)), 8)))
            with pytest.raises((UserError, UserWarning), match=r"checksum|json: not valid JSON"):
                load(folder)
        path.write_bytes(content)
    (folder / "assets" / "labels.txt").unlink()
    with pytest.raises(UserError, match="labels.txt: missing, but assets.extra/serving.json has"):
        load(folder)


def test_a_folder_holds_what_tensorflow_serving_wants(classifier):
    model, path = classifier
    assert path.parts[-2:] == ("spam", "2")
    assert (path / "assets" / "vocab.txt").read_text().splitlines() == VOCAB
    assert (path / "assets" / "labels.txt").read_text().splitlines() == list(LABELS)
    described = json.loads((path / "assets.extra" / "serving.json").read_text())
    assert described["labels"] == list(LABELS)
    served = load(path.parent)
    assert set(served.signatures) == {"serving_default", "token_ids", "serving_examples"}

    import tensorflow as tf

    def example(**texts):
        features = {
            name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))
            for name, text in texts.items()
        }
        return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    by_example = served("serving_examples", examples=[example(text=TEXTS[0]), example()])
    by_text = served(text=[TEXTS[0], ""])
    np.testing.assert_allclose(by_example["logits"], by_text["logits"], atol=1e-6)
    assert by_text["labels"] == by_example["labels"]
    assert served(text=[])["logits"].shape == (0, 3)

    with pytest.raises(UserError, match="exists already"):
        export(model, path.parent, version=2)
    shutil.copytree(path, path.with_name("10"))
    assert load(path.parent).path.name == "10"


def test_the_warm_up_file_is_what_tensorflow_serving_reads(choices):
    log = pytest.importorskip(
        "tensorflow_serving.apis.prediction_log_pb2", reason="needs tensorflow-serving-api"
    )
    import tensorflow as tf

    _, path = choices
    served = load(path)
    seen = set()
    records = tf.data.TFRecordDataset(str(path / "assets.extra" / "tf_serving_warmup_requests"))
    for record in records:
        request = log.PredictionLog.FromString(record.numpy()).predict_log.request
        assert request.model_spec.name == "choices"
        signature = request.model_spec.signature_name
        inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
        assert np.all(np.isfinite(served(signature, **inputs)["probabilities"]))
        seen.add(signature)
    assert seen == set(served.signatures)


def test_multiple_choice_scores_each_pair(choices):
    model, path = choices
    contexts, endings = ["the answer", "who"], [["is here", "", "bad " * 20], ["a", "b", "c d"]]
    answer = load(path)(context=contexts, choices=endings)
    flat = [(c, end) for c, of_one in zip(contexts, endings, strict=True) for end in of_one]
    batch = {
        name: value.reshape(2, 3, -1) for name, value in features(model.tokenizer, flat, 16).items()
    }
    expected = numpy_logits(model.model, batch)
    np.testing.assert_allclose(answer["logits"], expected, atol=1e-4)
    assert answer["choice"].tolist() == expected.argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (lambda: loaded(make_encoder()), {"head": "span"}, "embedding, features"),
        (lambda: loaded(make_encoder()), {"colour": 1}, "unknown field colour"),
        (lambda: loaded(make_encoder()), {"precision": "int8"}, "float32, bfloat16"),
        (lambda: loaded(make_encoder()), {"max_seq_length": 65}, "64 positions"),
        (lambda: loaded(make_encoder()), {"layers": "concat_last_four"}, "four layers"),
        (lambda: loaded(BertClassifier(make_encoder(), 3)), {"labels": ["a"]}, "1 labels"),
        (lambda: loaded(BertSpan(make_encoder())), {"max_query_length": 64}, "no room"),
        (lambda: loaded(make_encoder()), {"version": 0}, "positive"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_leaves_nothing(tmp_path, model, options, message):
    with pytest.raises(UserError, match=message):
        export(model(), tmp_path / "out", **options)
    assert not list(tmp_path.rglob("saved_model.pb"))
    with pytest.raises(UserError, match="no SavedModel"):
        load(tmp_path / "out")


def test_ids_that_the_model_does_not_have_are_an_error(classifier):
    import tensorflow as tf

    served = load(classifier[1])
    ok = np.ones((1, 64), np.int32)
    served("token_ids", input_ids=ok, input_mask=ok, segment_ids=ok)
    for wrong in (
        {"input_ids": ok * len(VOCAB)},
        {"segment_ids": ok * 2},
        {name: np.ones((1, 65), np.int32) for name in ("input_ids", "input_mask", "segment_ids")},
    ):
        inputs = {"input_ids": ok, "input_mask": ok, "segment_ids": ok, **wrong}
        with pytest.raises(tf.errors.InvalidArgumentError):
            served("token_ids", **inputs)
