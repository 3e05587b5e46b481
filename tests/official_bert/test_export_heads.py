"""Answers of exported heads: labels, spans, words, masked words, vectors."""

import numpy as np
import pytest
import tensorflow as tf
from served_models import LABELS, TEXTS, features, loaded, make_encoder, numpy_logits
from tiny_served import Unsaved

import official_bert as ob
from data_prep.tasks import get_task
from data_prep.tasks.batches import make_batch
from data_prep.tasks.classification.sequence_classification import TextExample
from data_prep.tasks.feature_set import FeatureSet
from data_prep.tasks.question_answering import squad
from official_bert.export import export, load
from official_bert.predict import Model


@pytest.mark.slow
def test_multi_label_regression_and_bfloat16(tmp_path):
    model = ob.BertClassifier(make_encoder(), 3, problem="multi_label", mean_pooling=True)
    multi = loaded(model, labels=LABELS)
    answer = Unsaved(multi)(text=TEXTS)
    expected = numpy_logits(multi.model, features(multi.tokenizer, [(t,) for t in TEXTS], 64))
    np.testing.assert_allclose(answer["logits"], expected, atol=1e-4)
    for labels, row in zip(answer["labels"], expected, strict=True):
        chosen = [LABELS[i] for i in np.flatnonzero(row > 0)]
        assert labels == chosen + [""] * (len(labels) - len(chosen))

    encoder = make_encoder(num_hidden_layers=2)
    regression = loaded(ob.BertClassifier(encoder, 1, problem="regression"))
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


@pytest.mark.parametrize(
    ("pooling", "pairs"),
    [
        ("max", True),
        *(
            pytest.param(*more, marks=pytest.mark.slow)
            for more in (("mean", False), ("first_last", True))
        ),
    ],
)
def test_windows_are_those_of_training(tmp_path, pooling, pairs):
    """A classifier of windows: SavedModel, `predict` and training agree, on what was cut too."""
    data_folder = tmp_path / "data"
    data_folder.mkdir()
    (data_folder / "train.tsv").write_text("a\tb\tlabel\nx\ty\tno\nx\ty\tyes\nx\ty\tmaybe\n")
    columns = {"text_column": "a", **({"text_b_column": "b"} if pairs else {})}
    options = {"windows": 3, "window_pooling": pooling, "window_overlap": 2}
    task = get_task("text_classification", str(data_folder), **columns, **options)
    fields = ["text_a", "text_b"] if pairs else ["text"]
    own = {"labels": task.labels, "max_seq_length": 16, "input_fields": fields}
    own["task"] = {"name": "text_classification", "options": task.settings()}
    encoder = make_encoder(num_hidden_layers=2)
    model = loaded(ob.BertClassifier(encoder, 3, windows=pooling, seed=3), **own)
    firsts = TEXTS
    seconds = ["good bad", "is here " * 20, "a", "東 bad " * 40, "", "the answer is " * 9]
    texts = [firsts, seconds] if pairs else [firsts]
    examples = [TextExample("", *row) for row in zip(*texts, strict=True)]
    features = [task.features(example, model.tokenizer, 16)[0] for example in examples]
    rows = np.arange(len(examples))
    made = make_batch(FeatureSet.of(features, len(rows), 16), rows, len(rows), 16)
    batch = {name: made[name] for name in ("input_ids", "input_mask", "segment_ids")}
    expected = numpy_logits(model.model, batch)
    cut = [bool(feature["truncated"]) for feature in features]
    assert True in cut and False in cut and any(f["input_ids"][1] for f in features)

    whole = pooling == "first_last"  # through the whole export
    served = load(export(model, tmp_path / "windows")) if whole else Unsaved(model)
    answer = served(**dict(zip(fields, texts, strict=True)))
    np.testing.assert_allclose(answer["logits"], expected, atol=1e-4)
    assert answer["truncated"].tolist() == cut
    if whole:
        assert len(served(**{field: [] for field in fields})["labels"]) == 0
        np.testing.assert_allclose(served("token_ids", **batch)["logits"], expected, atol=1e-4)
        batch["input_mask"][1] = 0
        with pytest.raises(tf.errors.InvalidArgumentError, match="of one window or more"):
            served("token_ids", **batch)
    asked = [i for i, row in enumerate(zip(*texts, strict=True)) if all(t.strip() for t in row)]
    with pytest.warns(UserWarning, match=r"longer than 16 tokens in 3 windows and were cut"):
        found = Model.from_loaded(model).predict(*[[column[i] for i in asked] for column in texts])
    shares = [list(one["probabilities"].values()) for one in found]
    np.testing.assert_allclose(shares, answer["probabilities"][asked], atol=1e-5)


def test_every_answer_says_whether_its_text_was_cut():
    texts, cut = ["the answer", "bad " * 14, "bad " * 15], [False, False, True]
    encoder = make_encoder()
    for model, settings in (
        (ob.BertClassifier(encoder, 3), {"labels": LABELS}),
        (ob.BertClassifier(encoder, 1, problem="regression"), {}),
        (ob.BertPretrainer(encoder), {}),
        (encoder, {}),
    ):
        served = Unsaved(loaded(model, max_seq_length=16, **settings))
        assert served(text=texts)["truncated"].tolist() == cut
    choices = [["a", "good"], ["a", "bad " * 12], ["a", "bad " * 13]]
    served = Unsaved(loaded(ob.BertMultipleChoice(encoder), max_seq_length=16))
    assert served(context=["a"] * 3, choices=choices)["truncated"].tolist() == cut
    served = Unsaved(loaded(ob.BertSpan(encoder), max_seq_length=32, max_query_length=14))
    answer = served(question=texts, context=["the answer is here " * 20] * 3)
    assert answer["truncated"].tolist() == cut


@pytest.mark.parametrize("version", ["1.1", pytest.param("2.0", marks=pytest.mark.slow)])
def test_answers_equal_those_of_evaluation(tmp_path, version):
    options = {"doc_stride": 9, "max_query_length": 6, "max_answer_length": 7, "n_best_size": 5}
    task = squad.Squad(version=version, **options)
    settings = {"name": f"squad_v{version}", "options": task.settings()}
    span = ob.BertSpan(make_encoder(num_hidden_layers=2), seed=3)
    model = loaded(span, max_seq_length=32, task=settings)
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
        if version == "1.1" or contexts[i].strip(" \u0378"):
            assert answer["probability"][i] == pytest.approx(wanted["probability"], abs=1e-4)
    assert sum(bool(text) for text in answer["answer"]) > 2
    if version == "2.0":  # without a graph there is nothing to put together
        assert len(served(question=[], context=[])["answer"]) == 0
    nothing = served(question=[""], context=[""])
    assert (nothing["answer"], nothing["start"]) == ([""], [-1])


def test_tagging_labels_words(tmp_path):
    tagger = ob.BertTagger(make_encoder(num_hidden_layers=2), 3, seed=4)
    model = loaded(tagger, labels=LABELS, max_seq_length=32)
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
    from official_bert.export.settings import ServingSettings
    from official_bert.export.tagging import ServedTagger
    from official_bert.export.tokenizer_layer import in_graph_tokenizer  # made once for all tests

    task = {"name": "conll2003", "options": {"label_piece": "last"}}
    tagger = ob.BertTagger(make_encoder(), 3, seed=4)
    model = loaded(tagger, labels=LABELS, max_seq_length=32, task=task)
    tokenizer, settings = in_graph_tokenizer(model.tokenizer), ServingSettings.from_loaded(model)
    served = ServedTagger(model, tokenizer, settings)
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


@pytest.mark.slow
def test_masked_words_are_those_of_the_masked_language_model(tmp_path):
    """Compare with `fill_mask` of the model, which test_model_predict.py checks by hand."""
    model = loaded(ob.BertPretrainer(make_encoder(), seed=5), max_seq_length=32)
    served = load(export(model, tmp_path / "masks", top_k=3))
    texts = ["the [MASK] is [MASK]!", "", "no mask", "é[MASK]", "a " * 40 + "[MASK]"]
    answer = served(text=texts)
    assert np.array(answer["words"]).shape == (5, 2, 3)
    masks = Model.from_loaded(model).fill_mask(texts[0], top_k=3)["masks"]
    assert answer["words"][0] == [[one["word"] for one in mask] for mask in masks]
    shares = [[one["probability"] for one in mask] for mask in masks]
    np.testing.assert_allclose(answer["probabilities"][0], shares, atol=1e-4)
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
