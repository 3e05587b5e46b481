"""Exported models answer as the models they were made from, without this project."""

import json
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
from tiny_served import Unsaved

import official_bert
from data_prep.tasks import squad
from official_bert import (
    BertClassifier,
    BertConfig,
    BertEncoder,
    BertMultipleChoice,
    BertPretrainer,
    BertSpan,
    BertTagger,
    BertTokenizer,
    UserError,
)
from official_bert.checkpoints.model_folder import LoadedModel, describe
from official_bert.serving import export, load
from official_bert.tokenization import sequences

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
VOCAB = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    *".,!?'()-",
    *("the", "answer", "is", "##ing", "here", "who", "good", "bad", "東", "京"),
]
TEXTS = ["The answer is here, good!", "", "\u0378 \u20ac", "bad " * 60, "Ünïcode ing 東京", "a"]
LABELS = ("no", "maybe", "yes")

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
    """[(SavedModel, signature, inputs)] -> outputs of each, with texts as str."""
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    asked.write_bytes(pickle.dumps([(str(path), *rest) for path, *rest in questions]))
    command = [sys.executable, "-I", "-c", FRESH, str(asked), str(answered)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    return pickle.loads(answered.read_bytes())


def make_encoder(vocab=VOCAB, **fields):
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 64,
        "initializer_range": 0.3,
    }
    return BertEncoder(BertConfig(vocab_size=len(vocab), **{**sizes, **fields}), seed=7)


def loaded(model, vocab=VOCAB, **settings):
    """The model as `official_bert.load` would give it."""
    head, own = describe(model)
    encoder = model if head == "none" else model.encoder
    tokenizer = BertTokenizer(vocab)
    return LoadedModel(encoder.config, encoder, model, head, tokenizer, {**settings, **own})


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """(the model, the folder of its only version, 2)"""
    model = loaded(BertClassifier(make_encoder(), 3), labels=LABELS)
    return model, export(model, tmp_path_factory.mktemp("exported") / "spam", version=2)


@pytest.fixture(scope="module")
def choices(tmp_path_factory):
    model = loaded(BertMultipleChoice(make_encoder(), seed=2), max_seq_length=16)
    return model, export(model, tmp_path_factory.mktemp("exported") / "choices")


def features(tokenizer, rows, max_seq_length):
    """One or two texts a row -> padded inputs of the Keras model."""
    packed = [
        sequences.pack(
            tokenizer,
            tokenizer.encode(first),
            tokenizer.encode(second[0]) if second else None,
            max_seq_length,
        )
        for first, *second in rows
    ]
    length = max(len(feature["input_ids"]) for feature in packed)
    batch = {
        name: np.zeros((len(packed), length), np.int32)
        for name in ("input_ids", "input_mask", "segment_ids")
    }
    for row, feature in enumerate(packed):
        count = len(feature["input_ids"])
        batch["input_ids"][row, :count] = feature["input_ids"]
        batch["segment_ids"][row, :count] = feature["segment_ids"]
        batch["input_mask"][row, :count] = 1
    return batch


def numpy_logits(model, batch):
    return np.asarray(model(batch)["logits"])


@pytest.mark.parametrize("direction", ["bidirectional", "left_to_right"])
def test_the_packed_encoder_equals_the_encoder(monkeypatch, direction):
    """Rows of mixed length, in one group and in several."""
    from official_bert.serving import packed_encoder, packing

    encoder = make_encoder(attention_direction=direction)
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


def test_classifiers_answer_in_a_fresh_process(tmp_path):
    pairs = [(text, other) for text, other in zip(TEXTS, reversed(TEXTS), strict=True)]
    single = loaded(BertClassifier(make_encoder(), 3, seed=1), labels=LABELS, max_seq_length=32)
    left_to_right = make_encoder(attention_direction="left_to_right", gelu_form="tanh")
    pair_model = BertClassifier(left_to_right, 3, bilstm=True, seed=1)
    pair = loaded(pair_model, labels=LABELS, max_seq_length=32)
    paths = [
        export(single, tmp_path / "single"),
        export(pair, tmp_path / "pair", input_fields=("premise", "hypothesis")),
    ]
    ids = features(single.tokenizer, [(text,) for text in TEXTS], 32)
    premises, hypotheses = zip(*pairs, strict=True)
    by_text, by_id, by_pair = ask_in_fresh_process(
        tmp_path,
        [
            (paths[0], "serving_default", {"text": TEXTS}),
            (paths[0], "token_ids", ids),
            (paths[1], "serving_default", {"premise": premises, "hypothesis": hypotheses}),
        ],
    )
    expected = numpy_logits(single.model, ids)
    for answer in (by_text, by_id):
        np.testing.assert_allclose(answer["logits"], expected, atol=1e-4)
        assert [label.decode() for label in answer["labels"]] == [
            LABELS[i] for i in expected.argmax(axis=1)
        ]
        np.testing.assert_allclose(answer["probabilities"].sum(axis=1), 1, atol=1e-5)
    expected = numpy_logits(pair.model, features(pair.tokenizer, pairs, 32))
    np.testing.assert_allclose(by_pair["logits"], expected, atol=1e-4)
    assert len(set(expected.argmax(axis=1))) > 1, "the test needs answers that differ"


def test_a_folder_holds_what_tensorflow_serving_wants(classifier):
    model, path = classifier
    assert path.parts[-2:] == ("spam", "2")
    assert (path / "assets" / "vocab.txt").read_text().splitlines() == VOCAB
    assert (path / "assets" / "labels.txt").read_text().splitlines() == list(LABELS)
    assert json.loads((path / "assets.extra" / "serving.json").read_text())["labels"] == list(
        LABELS
    )
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


def test_multi_label_regression_and_bfloat16(tmp_path):
    model = BertClassifier(make_encoder(), 3, problem="multi_label", concat_pooling=True)
    multi = loaded(model, labels=LABELS)
    answer = Unsaved(multi)(text=TEXTS)
    expected = numpy_logits(multi.model, features(multi.tokenizer, [(t,) for t in TEXTS], 64))
    np.testing.assert_allclose(answer["logits"], expected, atol=1e-4)
    for labels, row in zip(answer["labels"], expected, strict=True):
        chosen = [LABELS[i] for i in np.flatnonzero(row > 0)]
        assert labels == chosen + [""] * (len(labels) - len(chosen))

    regression = loaded(BertClassifier(make_encoder(), 1, problem="regression"))
    batch = features(regression.tokenizer, [(text,) for text in TEXTS], 64)
    expected = numpy_logits(regression.model, batch)[:, 0]
    exact = Unsaved(regression)(text=TEXTS)["values"]
    path = export(regression, tmp_path / "rough", precision="bfloat16")
    rough = load(path)(text=TEXTS)["values"]
    np.testing.assert_allclose(exact, expected, atol=1e-4)
    np.testing.assert_allclose(rough, expected, atol=0.1)
    assert np.abs(rough - expected).max() > 1e-5, "bfloat16 changes the last digits"
    stored = sum(f.stat().st_size for f in (path / "variables").iterdir())
    assert stored < 0.75 * 4 * regression.model.count_params(), "tables and matrices are halved"


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_answers_equal_those_of_evaluation(tmp_path, version):
    options = {"doc_stride": 9, "max_query_length": 6, "max_answer_length": 7, "n_best_size": 5}
    task = squad.Squad(version=version, **options)
    task_settings = {"name": f"squad_v{version}", "options": task.settings()}
    model = loaded(BertSpan(make_encoder(), seed=3), max_seq_length=32, task=task_settings)
    rng = np.random.default_rng(0)
    words = ["the", "answer", "is", "here", "good", "Bad,", "ing", "東京", "é", "\u20ac", "x9"]
    contexts = [" ".join(rng.choice(words, size)) for size in (1, 3, 12, 40, 90)] + ["", " \u0378"]
    questions = [" ".join(rng.choice(words, 1 + i)) for i in range(len(contexts))]
    examples = [
        task.example({"id": str(i), "question": q, "context": c})
        for i, (q, c) in enumerate(zip(questions, contexts, strict=True))
    ]
    rows, outputs = [], {"start_logits": [], "end_logits": []}
    for index, example in enumerate(examples):
        for feature in task.features(example, model.tokenizer, 32):
            rows.append({**feature, "example_index": index})
            ids = np.array([feature["input_ids"]], np.int32)
            segments = np.array([feature["segment_ids"]], np.int32)
            batch = {"input_ids": ids, "input_mask": ids * 0 + 1, "segment_ids": segments}
            for name, logits in model.model(batch).items():
                outputs[name].append(np.asarray(logits)[0])
    expected = task.predictions(examples, rows, outputs)

    # One version of the two through the whole export.
    served = load(export(model, tmp_path / "span")) if version == "2.0" else Unsaved(model)
    answer = served(question=questions, context=contexts)
    for i, wanted in enumerate(expected):
        assert (answer["start"][i], answer["end"][i]) == (wanted["start"], wanted["end"]), i
        begin, end = max(wanted["start"], 0), max(wanted["end"], 0)
        assert answer["answer"][i] == contexts[i][begin:end]
        if contexts[i].strip(" \u0378"):
            assert answer["probability"][i] == pytest.approx(wanted["probability"], abs=1e-4)
    assert sum(bool(text) for text in answer["answer"]) > 2
    assert len(served(question=[], context=[])["answer"]) == 0
    nothing = served(question=[""], context=[""])
    assert (nothing["answer"], nothing["start"]) == ([""], [-1])


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


def test_tagging_labels_words(tmp_path):
    model = loaded(BertTagger(make_encoder(), 3, seed=4), labels=LABELS, max_seq_length=32)
    served = load(export(model, tmp_path / "tags"))
    texts = ["The U.N. is (here)! 19-year, good.", "", "J. 東京 \U0001f600 a", "is bad " * 40]
    answer = served(text=texts)
    words = [[word for word in row if word] for row in answer["words"]]
    assert words[0] == ["The", "U.N.", "is", "(", "here", ")", "!", "19-year", ",", "good", "."]
    assert words[1] == []
    assert words[2] == ["J.", "東", "京", "\U0001f600", "a"]
    assert words[3] == ["is", "bad"] * 40  # longer than the encoder
    for row, text in enumerate(texts):
        for i, word in enumerate(words[row]):
            assert text[answer["start"][row, i] : answer["end"][row, i]] == word
            assert answer["labels"][row][i] in LABELS
        assert all(start == -1 for start in answer["start"][row, len(words[row]) :])

    # A book's length: a graph that copied the text for each word would want 20 GB here.
    long = served(text=["is bad, " * 25_000])
    assert list(long["words"][0]) == ["is", "bad", ","] * 25_000

    # The label of a word is that of its first piece; the same words given one by one agree.
    batch = features(model.tokenizer, [(texts[0],)], 32)
    logits = numpy_logits(model.model, batch)[0]
    first, place = [], 1
    for word in words[0]:
        first.append(place)
        place += len(model.tokenizer.encode(word))
    expected = [LABELS[i] for i in logits[first].argmax(axis=1)]
    assert answer["labels"][0][: len(expected)] == expected
    by_words = served("words", words=[[*words[0], "", "\u0378"], [""] * 13])
    assert by_words["labels"][0][: len(expected)] == expected
    assert by_words["labels"][0][len(expected)] == ""
    assert by_words["labels"][1] == [""] * 13


def test_a_tagger_trained_on_last_pieces_is_read_there():
    import tensorflow as tf

    from official_bert.serving.in_memory import (
        in_graph_tokenizer,  # made once for all of these tests
    )
    from official_bert.serving.settings import ServingSettings
    from official_bert.serving.tagging import ServedTagger

    model = loaded(
        BertTagger(make_encoder(), 3, seed=4),
        labels=LABELS,
        max_seq_length=32,
        task={"name": "conll2003", "options": {"label_piece": "last"}},
    )
    served = ServedTagger(
        model, in_graph_tokenizer(model.tokenizer), ServingSettings.of_model(model)
    )
    texts = ["good 19-year (here) the answering", "", "abc"]
    answer = {name: x.numpy().tolist() for name, x in served.answer_texts(text=texts).items()}
    words = [[word.decode() for word in row if word] for row in answer["words"]]
    assert words[0] == ["good", "19-year", "(", "here", ")", "the", "answering"]
    logits = numpy_logits(model.model, features(model.tokenizer, [(text,) for text in texts], 32))
    for row, line in enumerate(words):
        last = np.cumsum([len(model.tokenizer.encode(word)) for word in line]).astype(int)
        expected = [LABELS[i].encode() for i in logits[row][last].argmax(axis=1)]
        assert answer["labels"][row][: len(line)] == expected
        by_words = served.answer_words(tf.constant([[*line, ""]]))["labels"]
        assert by_words.numpy()[0].tolist() == [*expected, b""]


def test_masked_words_are_those_of_the_masked_language_model(tmp_path):
    model = loaded(BertPretrainer(make_encoder(), seed=5), max_seq_length=32)
    served = load(export(model, tmp_path / "masks", top_k=3))
    texts = ["the [MASK] is [MASK]!", "", "no mask", "é[MASK]", "a " * 40 + "[MASK]"]
    answer = served(text=texts)
    assert np.array(answer["words"]).shape == (5, 2, 3)
    mask, encode = model.tokenizer.mask_id, model.tokenizer.encode
    cls_id, sep_id = model.tokenizer.cls_id, model.tokenizer.sep_id
    ids = [cls_id, *encode("the"), mask, *encode("is"), mask, *encode("!"), sep_id]
    positions = np.array([[i for i, id in enumerate(ids) if id == mask]], np.int32)
    batch = {
        "input_ids": np.array([ids], np.int32),
        "input_mask": np.ones((1, len(ids)), np.int32),
        "segment_ids": np.zeros((1, len(ids)), np.int32),
        "masked_lm_positions": positions,
        "masked_lm_ids": np.zeros_like(positions),
        "masked_lm_weights": np.ones(positions.shape, np.float32),
        "next_sentence_labels": np.zeros((1, 1), np.int32),
    }
    logits = np.asarray(model.model(batch)["masked_lm_logits"], np.float64)[0]
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    best = np.argsort(-shares, axis=-1)[:, :3]
    assert answer["words"][0] == [[VOCAB[i] for i in row] for row in best]
    expected = np.take_along_axis(shares, best, axis=-1)
    np.testing.assert_allclose(answer["probabilities"][0], expected, atol=1e-4)
    spans = zip(answer["start"][0], answer["end"][0], strict=True)
    assert [texts[0][start:end] for start, end in spans] == ["[MASK]", "[MASK]"]
    assert (answer["start"][3, 0], answer["end"][3, 0]) == (1, 7)
    for row in (1, 2, 4):  # none, none, and one that was cut off
        assert answer["start"][row].tolist() == [-1, -1]
        assert answer["words"][row][0] == ["", "", ""]


def test_embeddings_and_features(tmp_path):
    encoder = loaded(make_encoder(num_hidden_layers=4), max_seq_length=32)
    batch = features(encoder.tokenizer, [(text,) for text in TEXTS], 32)
    states = [np.asarray(state) for state in encoder.model(batch)["hidden_states"]]
    mask = batch["input_mask"][..., None]

    answer = Unsaved(encoder, normalize=True)(text=TEXTS)["embedding"]
    mean = (states[-1] * mask).sum(axis=1) / mask.sum(axis=1)
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(answer, mean, atol=1e-4)

    ask = Unsaved(encoder, pooling="cls", layers="concat_last_four")
    answer = ask(text=TEXTS)["embedding"]
    expected = np.concatenate([state[:, 0] for state in states[1:]], axis=1)
    np.testing.assert_allclose(answer, expected, atol=1e-4)

    path = export(encoder, tmp_path / "features", head="features", layers="mean_all")
    answer = load(path)(text=TEXTS)
    length = answer["features"].shape[1]
    assert length % 8 == 0
    padded = np.pad(sum(states[1:]) / 4 * mask, [(0, 0), (0, length - mask.shape[1]), (0, 0)])
    np.testing.assert_allclose(answer["features"], padded, atol=1e-4)
    pooled = np.asarray(encoder.model(batch)["pooled_output"])
    np.testing.assert_allclose(answer["pooled_output"], pooled, atol=1e-4)
    spans = zip(answer["start"][0], answer["end"][0], strict=True)
    pieces = [TEXTS[0][start:end] for start, end in spans if start >= 0]
    assert pieces == ["The", "answer", "is", "here", ",", "good", "!"]


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (lambda: loaded(make_encoder()), {"head": "span"}, "embedding, features"),
        (lambda: loaded(make_encoder()), {"colour": 1}, "unknown setting colour"),
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


def test_a_thousand_real_texts(tmp_path, data_dir):
    """Real vocabulary, real texts: the ids of the graph are those of training."""
    vocab = (data_dir / "vocab" / "bert-base-uncased-vocab.txt").read_text("utf-8").splitlines()
    sms = (data_dir / "sms_spam" / "sms_spam.tsv").read_text("utf-8").splitlines()[1:501]
    reviews = (data_dir / "glue_data" / "SST-2" / "dev.tsv").read_text("utf-8").splitlines()[1:501]
    texts = [line.rsplit("\t", 1)[0] for line in sms + reviews]
    classifier = BertClassifier(make_encoder(vocab), 3, seed=1)
    folder = tmp_path / "model"
    official_bert.save(
        folder, classifier, BertTokenizer(vocab), {"labels": LABELS, "max_seq_length": 48}
    )
    served = load(export(folder, tmp_path / "exported"))
    batches = [texts[i : i + 250] for i in range(0, len(texts), 250)]
    answers = [served(text=batch) for batch in batches]
    tokenizer = BertTokenizer(vocab)
    expected = np.concatenate(
        [
            numpy_logits(classifier, features(tokenizer, [(text,) for text in batch], 48))
            for batch in batches
        ]
    )
    found = np.concatenate([answer["logits"] for answer in answers])
    assert len(found) == 1000
    np.testing.assert_allclose(found, expected, atol=1e-4)
    np.testing.assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))
