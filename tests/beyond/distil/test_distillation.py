"""Distillation against independent implementations, and what a student begins with and keeps."""

import keras
import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from experiments.beyond.distil.distillation import Distilled, taught
from experiments.beyond.distil.teacher_fit import chosen_layers
from experiments.beyond.distil.teachers import Teacher, begin_with
from official_bert import (
    BertAdamW,
    BertClassifier,
    BertEncoder,
    BertPretrainer,
    BertSpan,
    BertTagger,
    UserError,
    named_config,
)
from official_bert.checkpoints import model_folder

DISTILBERT = ({"name": "masked_lm", "weight": 2.0}, "soft_targets", "cosine_states")


def tensors(batch):
    return {name: keras.ops.convert_to_tensor(x) for name, x in batch.items()}


def numpy(x):
    return keras.ops.convert_to_numpy(x)


def noisy(model, seed=0):
    """Weights of unit size, so that nothing that is compared is near zero."""
    rng = np.random.default_rng(seed)
    for variable in model.weights:
        variable.assign(variable + 0.3 * rng.normal(size=variable.shape).astype("float32"))
    return model


@pytest.fixture(scope="module")
def shapes(config):
    """Return (student, teacher)."""
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    teacher = config.replaced(num_hidden_layers=4, **rates)
    student = teacher.replaced(num_hidden_layers=2, type_vocab_size=0, pooler_activation="none")
    return student, teacher


@pytest.fixture(scope="module")
def teacher(shapes):
    return Teacher(noisy(BertPretrainer(shapes[1], seed=1)))


def test_only_masked_positions(shapes, teacher, pretraining_batch):
    few = [DISTILBERT[0], {"name": "soft_targets", "every_token": False}]
    model = BertPretrainer(shapes[0], taught(few, teacher), seed=2)
    outputs = model(pretraining_batch)
    own, theirs = (numpy(outputs[f"{who}_logits"]) / 2 for who in ("student", "teacher"))
    assert own.shape == numpy(outputs["masked_lm_logits"]).shape
    divergence = (softmax(theirs, -1) * (log_softmax(theirs, -1) - log_softmax(own, -1))).sum(-1)
    weights = pretraining_batch["masked_lm_weights"]
    total, weight = model.loss_terms(tensors(pretraining_batch), outputs)["soft_target_loss"]
    np.testing.assert_allclose(float(total), 4 * (divergence * weights).sum(), rtol=1e-5)
    assert float(weight) == weights.sum()


def test_tinybert_by_hand(shapes, teacher, pretraining_batch):
    """Two layers of eight numbers learn from four of sixteen: layers 2 and 4, states 0, 2, 4."""
    narrow = shapes[0].replaced(hidden_size=8, type_vocab_size=2)
    model = noisy(BertPretrainer(narrow, taught(["transformer_layers"], teacher), seed=4), seed=5)
    outputs = model(pretraining_batch)
    found = model.loss_terms(tensors(pretraining_batch), outputs)
    own, theirs = (
        {name: [numpy(x) for x in encoded[name]] for name in ("hidden_states", "attention_scores")}
        for encoded in (
            one.encoder(pretraining_batch, return_attention=True) for one in (model, teacher)
        )
    )
    kernel, bias = model.to_teacher.kernel.numpy(), model.to_teacher.bias.numpy()
    assert kernel.shape == (8, 16)
    lengths = pretraining_batch["input_mask"].sum(-1)
    attention, states = [], []
    for row, n in enumerate(lengths):
        for student, layer in ((0, 1), (1, 3)):
            difference = own["attention_scores"][student] - theirs["attention_scores"][layer]
            attention.append((difference[row, :, :n, :n] ** 2).mean() * n * n)
        for student, state in ((0, 0), (1, 2), (2, 4)):
            seen = own["hidden_states"][student][row, :n] @ kernel + bias
            states.append(((seen - theirs["hidden_states"][state][row, :n]) ** 2).mean() * n)
    for name, parts, weight in (
        ("attention_loss", attention, (lengths**2).sum()),
        ("states_loss", states, lengths.sum()),
    ):
        np.testing.assert_allclose(float(found[name][0]), np.sum(parts), rtol=1e-4)
        assert float(found[name][1]) == weight


def test_scores_become_the_probabilities(config, inputs):
    """By hand for one token: the softmax of its products with all keys."""
    encoder = noisy(BertEncoder(config, seed=0))
    outputs = encoder(inputs, return_attention=True)
    attention, x = encoder.blocks[0].attention, numpy(outputs["hidden_states"][0])
    query, key = (x @ d.kernel.numpy() + d.bias.numpy() for d in (attention.query, attention.key))
    width = config.hidden_size // 2
    expected = key[0, :, width:] @ query[0, 3, width:] / np.sqrt(width)  # second head, fourth token
    np.testing.assert_allclose(numpy(outputs["attention_scores"][0])[0, 1, 3], expected, rtol=1e-4)
    np.testing.assert_allclose(
        numpy(outputs["attention_probabilities"][0])[0, 1, 3], softmax(expected), rtol=1e-4
    )


def test_which_layers_a_student_begins_with():
    assert chosen_layers("even", 6, 12) == [0, 2, 4, 7, 9, 11]  # DistilBERT's
    assert chosen_layers("even", 3, 12) == [0, 6, 11]
    assert chosen_layers("even", 1, 2) == [0]
    assert chosen_layers("1, 3", 2, 4) == [1, 3]
    for written, message in (
        ("0,4", "of the teacher's 0 to 3"),
        ("0", "names 1 layers; the student needs 2"),
        ("first", "neither even nor numbers"),
    ):
        with pytest.raises(UserError, match=message):
            chosen_layers(written, 2, 4)
    with pytest.raises(UserError, match="the student has 5 layers, its teacher only 4"):
        chosen_layers("even", 5, 4)


def test_a_student_begins_with_its_teachers_numbers(shapes, teacher):
    student = BertEncoder(shapes[0], seed=7)
    begin_with(student, teacher, [0, 3])
    ours, theirs = student.embeddings, teacher.encoder.embeddings
    assert_same(ours.norm.weights, theirs.norm.weights)
    for name in ("word_embeddings", "position_embeddings"):
        assert_same([getattr(ours, name)], [getattr(theirs, name)])
    for block, layer in ((0, 0), (1, 3)):
        assert_same(student.blocks[block].weights, teacher.encoder.blocks[layer].weights)
    model = BertPretrainer(shapes[0], ["masked_lm"], seed=7)
    begin_with(model, teacher, [0, 3])
    assert_same(model.masked_lm.weights, teacher.model.masked_lm.weights)
    narrow = BertEncoder(shapes[0].replaced(hidden_size=8), seed=0)
    with pytest.raises(UserError, match=r"word_embeddings is \[50, 8\], the teacher's \[50, 16\]"):
        begin_with(narrow, teacher, [0, 3])
    shared = BertEncoder(shapes[0].replaced(num_hidden_groups=1), seed=0)
    with pytest.raises(UserError, match="share weights"):
        begin_with(shared, teacher, [0, 3])


def assert_same(variables, others):
    for x, y in zip(variables, others, strict=True):
        np.testing.assert_array_equal(numpy(x), numpy(y))


def test_teachers_that_do_not_fit(shapes, teacher, config):
    student, shape = shapes

    def built(objectives, student=student, teacher=teacher):
        return BertPretrainer(student, taught(objectives, teacher), seed=0)

    for kind, message, options in (
        (DISTILBERT, "soft_targets: there is no teacher; name one with", {"teacher": None}),
        (["soft_targets"], 'put "masked_lm" before it', {}),
        (DISTILBERT, "the teacher has no masked-LM head", {"teacher": Teacher(BertEncoder(shape))}),
        (DISTILBERT, "vocab_size is 49 in the student, 50 in the teacher",
         {"student": _with(student, vocab_size=49)}),
        (DISTILBERT, "hidden_size is 8 in the student, 16 in",
         {"student": _with(student, hidden_size=8)}),
        (["transformer_layers"], "num_attention_heads is 4 in the student, 2 in the teacher",
         {"student": _with(student, num_attention_heads=4)}),
        (["transformer_layers"], "the student's 3 layers must divide the teacher's 4",
         {"student": _with(student, num_hidden_layers=3)}),
    ):  # fmt: skip
        with pytest.raises(UserError, match=message):
            built(kind, **options)


def _with(config, **fields):
    return config.replaced(**fields)


@pytest.mark.slow
def test_a_teacher_is_not_trained_and_not_saved(shapes, teacher, pretraining_batch, tmp_path):
    """After `fit` only the student differs; its folder says and holds nothing of the teacher."""
    model = BertPretrainer(shapes[0], taught((*DISTILBERT, "transformer_layers"), teacher), seed=2)
    ours = {id(v) for v in model.variables}
    assert not ours & {id(v) for v in teacher.variables}
    assert len(model.read_only) == len(teacher.variables)
    before = [numpy(v).copy() for v in teacher.model.weights]
    start = numpy(model.encoder.embeddings.word_embeddings).copy()
    model.compile(optimizer=BertAdamW(1e-2, weight_decay=0.1))
    model.train_on_batch(tensors(pretraining_batch))
    assert_same(before, teacher.model.weights)
    assert not np.array_equal(start, numpy(model.encoder.embeddings.word_embeddings))
    model_folder.save(tmp_path / "m", model, None)
    loaded = model_folder.load(tmp_path / "m")
    assert [one.to_spec() for one in loaded.model.objectives] == [DISTILBERT[0]]
    for name in ("masked_lm", "encoder"):
        assert_same(getattr(model, name).weights, getattr(loaded.model, name).weights)
    alone = BertPretrainer(shapes[0], taught(["transformer_layers"], teacher), seed=2)
    assert alone.kept() is alone.encoder
    model_folder.save(tmp_path / "alone", alone, None)
    assert model_folder.load(tmp_path / "alone").head == "none"
    plain = BertPretrainer(shapes[0], ["masked_lm"], seed=2)
    assert plain.kept() is plain


def _logits(outputs, name):
    return numpy(outputs[name]).astype("float64")


def _divergence(own, theirs, temperature):
    own, theirs = log_softmax(own / temperature, -1), log_softmax(theirs / temperature, -1)
    return temperature**2 * (np.exp(theirs) * (theirs - own)).sum(-1)


def test_a_classifier_learns_its_teachers_answers(shapes, inputs):
    """By hand: a quarter of the labels' cross entropy, three of the softened divergence."""
    student = noisy(BertClassifier(BertEncoder(shapes[0], seed=0), 3, seed=0))
    teacher = noisy(BertClassifier(BertEncoder(shapes[1], seed=1), 3, seed=1), seed=9)
    model = Distilled(student, Teacher(teacher), temperature=2.0, weight=0.75)
    batch = {**inputs, "label_ids": np.arange(8, dtype="int32") % 3}
    batch["example_weights"] = np.array([1, 1, 1, 1, 1, 1, 1, 0], "float32")
    outputs = model(batch, training=True)
    loss = model.compute_loss(x=tensors(batch), y_pred=outputs)
    own, theirs = _logits(student(inputs), "logits"), _logits(teacher(inputs), "logits")
    hard = -log_softmax(own, -1)[np.arange(7), batch["label_ids"][:7]].mean()
    soft = _divergence(own, theirs, 2.0)[:7].mean()
    np.testing.assert_allclose(float(loss), 0.25 * hard + 0.75 * soft, rtol=1e-4)
    assert set(model(batch)) == {"logits"}
    # TinyBERT's soft cross entropy has the same gradient: it is larger by what the student does
    # not change, the teacher's entropy.
    shares = softmax(theirs, -1)
    entropy = -(shares * np.log(shares)).sum(-1)
    crossed = -(shares * log_softmax(own, -1)).sum(-1)
    np.testing.assert_allclose(_divergence(own, theirs, 1.0) + entropy, crossed, rtol=1e-9)


def test_other_heads_learn_by_hand(shapes, inputs):
    labels = np.where(inputs["input_ids"] % 2, 1, -1).astype("int32")
    student = noisy(BertTagger(BertEncoder(shapes[0], seed=0), 3, seed=0))
    teacher = noisy(BertTagger(BertEncoder(shapes[1], seed=1), 3, seed=1), seed=9)
    batch = {**inputs, "label_ids": labels}
    own, theirs = _logits(student(inputs), "logits"), _logits(teacher(inputs), "logits")
    expected = _divergence(own, theirs, 1.0)[labels >= 0].mean()
    np.testing.assert_allclose(_soft(student, teacher, batch), expected, rtol=1e-4)

    student = noisy(BertSpan(BertEncoder(shapes[0], seed=0), seed=0))
    teacher = noisy(BertSpan(BertEncoder(shapes[1], seed=1), seed=1), seed=9)
    ends = {name: np.full(8, 3, "int32") for name in ("start_positions", "end_positions")}
    own, theirs = student(inputs), teacher(inputs)
    expected = np.mean([_divergence(_logits(own, n), _logits(theirs, n), 1.0)
                        for n in ("start_logits", "end_logits")])  # fmt: skip
    np.testing.assert_allclose(_soft(student, teacher, {**inputs, **ends}), expected, rtol=1e-4)

    for problem, count in (("regression", 1), ("multi_label", 4)):
        student = noisy(BertClassifier(BertEncoder(shapes[0], seed=0), count, problem, seed=0))
        teacher = noisy(BertClassifier(BertEncoder(shapes[1], seed=1), count, problem, seed=1), 9)
        shape = (8,) if problem == "regression" else (8, count)
        batch = {**inputs, "label_ids": np.ones(shape, "float32")}
        own, theirs = _logits(student(inputs), "logits"), _logits(teacher(inputs), "logits")
        if problem == "regression":
            expected = ((own - theirs) ** 2).mean()
        else:
            p, q = (1 / (1 + np.exp(-x)) for x in (theirs, own))
            expected = (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).mean()
        np.testing.assert_allclose(_soft(student, teacher, batch), expected, rtol=1e-3)
    with pytest.raises(UserError, match="num_labels 4.*its teacher a BertClassifier .num_labels 3"):
        Distilled(student, Teacher(BertClassifier(BertEncoder(shapes[1]), 3, problem)))


def _soft(student, teacher, batch):
    model = Distilled(student, Teacher(teacher), temperature=1.0, weight=1.0)
    outputs = model(batch, training=True, seed=keras.ops.convert_to_tensor([0, 0], "int32"))
    total, weight = model.loss_terms(tensors(batch), outputs)["soft_loss"]
    return float(total) / float(weight)


def test_named_sizes():
    published = {"tinybert": 14_350_248, "distilbert": 66_362_880}  # as transformers counts them
    assert {name: named_config(name).num_parameters for name in published} == published
