"""Decoders: steps equal the whole, nothing sees what comes, beams by hand, one graph."""

import keras
import numpy as np
import pytest
from keras import ops

import official_bert as ob
from experiments.beyond.common.beam_search import search
from experiments.beyond.seq2seq.head import DECODERS, RNN_DECODERS
from experiments.training.start import initial_state
from official_bert.backend.variables import named_variables
from official_bert.checkpoints import model_folder
from official_bert.checkpoints.hugging_face import huggingface
from official_bert.common.errors import UserError
from official_bert.heads import build_head
from official_bert.predict import Model
from official_bert.tokenization import BertTokenizer

SIZES = {
    "vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 24, "max_position_embeddings": 24, "initializer_range": 0.3,
}  # fmt: skip
HEAD = {"head": "text", "longest": 8, "beams": 1, "length_penalty": 1.0}
BEGIN, END, LONGEST = 2, 3, 8
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxy"]
ALL = [*DECODERS, *RNN_DECODERS]


def model_of(decoder, **fields):
    encoder = ob.BertEncoder(ob.BertConfig.from_dict({**SIZES, **fields}), seed=0)
    return build_head(encoder, {**HEAD, "decoder": decoder}, seed=1)


@pytest.fixture(scope="module")
def batch():
    """Three sources of 6 to 9 tokens, three targets of 5 and 7."""
    draw = np.random.default_rng(0)
    ids = draw.integers(5, 30, (3, 9)).astype("int32")
    mask = (np.arange(9) < [[6], [9], [7]]).astype("int32")
    ids[:, 0] = BEGIN
    ids[np.arange(3), mask.sum(1) - 1] = END
    labels = draw.integers(5, 30, (3, 7)).astype("int32")
    labels[:, 0], labels[1, 5:] = BEGIN, -1
    return {"input_ids": ids * mask, "input_mask": mask, "segment_ids": 0 * ids,
            "label_ids": labels}  # fmt: skip


def asked(batch):
    return {name: x for name, x in batch.items() if name != "label_ids"}


def logits_of(model, batch):
    return ops.convert_to_numpy(model(batch)["logits"])


@pytest.mark.parametrize("decoder", ALL)
@pytest.mark.slow
def test_a_step_says_what_the_whole_says(decoder, batch):
    model = model_of(decoder)
    ids = np.maximum(batch["label_ids"], 0)
    whole = logits_of(model, {**batch, "label_ids": ids})
    assert whole.shape == (3, 6, 30)
    memory = model.read(asked(batch))
    state = model.begin(memory, 3, LONGEST)
    for place in range(6):
        now = ops.convert_to_tensor(ids[:, place]), ops.convert_to_tensor(place)
        scores, state = model.step(memory, *now, state)
        np.testing.assert_allclose(ops.convert_to_numpy(scores), whole[:, place], atol=1e-5)


@pytest.mark.parametrize("decoder", ALL)
def test_a_token_sees_what_is_before_it_and_the_source_without_its_padding(decoder, batch):
    model = model_of(decoder)
    before = logits_of(model, batch)
    labels = batch["label_ids"].copy()
    labels[:, 4] = 7
    after = logits_of(model, {**batch, "label_ids": labels})
    np.testing.assert_allclose(after[:, :4], before[:, :4], atol=1e-6)
    assert np.abs(after[:, 4:] - before[:, 4:]).max() > 1e-3
    longer = {name: np.pad(x, ((0, 0), (0, 3))) for name, x in asked(batch).items()}
    longer["input_ids"][:, 9:] = 11  # whatever the padding says
    padded = logits_of(model, {**longer, "label_ids": batch["label_ids"]})
    np.testing.assert_allclose(padded, before, atol=1e-5)
    ids = batch["input_ids"].copy()
    ids[:, 2] = 9
    assert np.abs(logits_of(model, {**batch, "input_ids": ids}) - before).max() > 1e-3


@pytest.mark.parametrize("decoder", ALL)
def test_loss_and_gradient(decoder, batch):
    """The loss is the mean over the tokens behind the first; all that is used is trained."""
    model = model_of(decoder)
    total, weight = model.loss_terms(batch, model(batch))["label_loss"]
    logs = ops.convert_to_numpy(ops.log_softmax(ops.convert_to_tensor(logits_of(model, batch))))
    labels = batch["label_ids"][:, 1:]
    real = labels >= 0
    expected = -np.take_along_axis(logs, np.maximum(labels, 0)[..., None], -1)[..., 0][real].sum()
    assert float(weight) == real.sum() == 16
    assert float(total) == pytest.approx(expected, 1e-5)
    with pytest.raises(UserError, match="give label_ids among the inputs"):
        model.loss_terms(batch, model(asked(batch)))
    if keras.backend.backend() != "tensorflow":
        return
    import tensorflow as tf

    with tf.GradientTape() as tape:
        outputs = model(batch, training=True)
        loss, _ = model.loss_terms(batch, outputs)["label_loss"]
    variables = model.trainable_variables
    gradients = tape.gradient(loss, [v.value for v in variables])
    unused = {v.path for v, g in zip(variables, gradients, strict=True) if g is None}
    assert unused == ({"encoder/pooler/kernel", "encoder/pooler/bias"} - set(RNN_DECODERS)
                      if decoder in DECODERS else set())  # fmt: skip


@pytest.mark.parametrize(
    "decoder",
    [*DECODERS, *(pytest.param(name, marks=pytest.mark.slow) for name in RNN_DECODERS)],
)
def test_greedy_is_the_likeliest_token_each_time(decoder, batch):
    model = model_of(decoder)
    written = ops.convert_to_numpy(model(asked(batch))["output_ids"])
    assert written.shape == (3, LONGEST)
    for row, found in enumerate(written):
        text = [BEGIN]
        for _ in range(LONGEST):
            one = {name: x[row : row + 1] for name, x in asked(batch).items()}
            labels = np.array([[*text, 0]], "int32")
            text.append(int(logits_of(model, {**one, "label_ids": labels})[0, -1].argmax()))
            if text[-1] == END:
                break
        expected = [token for token in text[1:] if token != END]
        assert [token for token in found if token >= 0] == expected


CHANCES = np.array(  # of the token after each: the end, a, b, and what begins a text
    [[0, 0, 0, 1.0], [0.3, 0.4, 0.3, 0], [0.9, 0.05, 0.05, 0], [0, 0.6, 0.4, 0]]
)


def chances(tokens, place, state):
    return ops.take(ops.log(ops.convert_to_tensor(CHANCES + 1e-9)), tokens, axis=0), state


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"beams": 1, "longest": 3}, [1, 1, 1]),  # 0.6 0.4 0.4 = 0.096
        ({"beams": 2, "longest": 3, "length_penalty": 0.0}, [2]),  # 0.4 0.9 = 0.36
        # Of a token's geometric mean: (0.6 0.4 0.4 0.4)^(1/4) = 0.44 below 0.36^(1/2) = 0.6.
        ({"beams": 2, "longest": 4, "length_penalty": 1.0}, [2]),
        # The longest texts: 0.6 0.4 0.3 0.9 = 0.065, above 0.6 0.4 0.4 0.4 = 0.038.
        ({"beams": 3, "longest": 4, "length_penalty": 9.0}, [1, 1, 2]),
    ],
)
def test_beams_by_hand(options, expected):
    first, end = np.array([3, 3], "int32"), np.array([0, 0], "int32")
    state = [ops.zeros((2 * options["beams"], 1))]
    found = ops.convert_to_numpy(search(chances, state, first, end, **options))
    for row in found:
        assert [token for token in row.tolist() if token >= 0] == expected


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a compiler looks once")
def test_beams_keep_their_own_state():
    """The state of a beam is that of its text: here the number of its tokens that were 1."""
    seen = []

    def counting(tokens, place, state):
        ones = state[0] + ops.cast(ops.equal(tokens, 1), "int32")[:, None]
        seen.append((np.asarray(tokens), ops.convert_to_numpy(ones)[:, 0]))
        return chances(tokens, place, None)[0], [ones]

    search(counting, [ops.zeros((3, 1), "int32")], np.array([3]), np.array([0]), 4, 3)
    _, (tokens, ones), *_ = seen
    assert (ones == (tokens == 1)).all() and {1, 2} <= set(tokens.tolist())


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's graphs")
@pytest.mark.parametrize("decoder", ALL)
def test_one_graph_writes_what_is_written_without(decoder, batch):
    import tensorflow as tf

    model = model_of(decoder)
    model.beams = 3
    specs = {name: tf.TensorSpec([None, None], tf.int32) for name in asked(batch)}
    graph = tf.function(lambda x: model(x)["output_ids"], autograph=False, input_signature=[specs])
    expected = ops.convert_to_numpy(model(asked(batch))["output_ids"])
    np.testing.assert_array_equal(graph(asked(batch)).numpy(), expected)


def test_weights_of_a_checkpoint(batch):
    """BERT2BERT begins with the encoder twice and the checkpoint's head; the rest is new."""
    encoder = ob.BertEncoder(ob.BertConfig(**SIZES), seed=4)
    head = ob.BertPretrainer(encoder, ["masked_lm"], seed=5).masked_lm
    head.bias.assign(np.arange(30.0))
    model = build_head(encoder, {**HEAD, "decoder": "separate"}, seed=1)
    table = model.own_decoder.embeddings.word_embeddings
    assert not np.array_equal(table, encoder.embeddings.word_embeddings)
    model.begin_as({v.path: ops.convert_to_numpy(v) for v in head.weights})
    np.testing.assert_array_equal(table, encoder.embeddings.word_embeddings)
    np.testing.assert_array_equal(
        model.own_decoder.blocks[1].intermediate.kernel, encoder.blocks[1].intermediate.kernel
    )
    np.testing.assert_array_equal(model.masked_lm.bias, np.arange(30.0))
    assert model_of("shared").decoder is not None
    names = [len(model_of(decoder).weights) for decoder in DECODERS]
    assert names[0] > names[1] > names[2]


@pytest.mark.parametrize(
    "decoder", [*DECODERS, "rnn_attention", pytest.param("rnn", marks=pytest.mark.slow)]
)
def test_a_model_folder(decoder, batch, tmp_path):
    model = model_of(decoder)
    model.beams, model.length_penalty = 2, 0.5
    assert len(named_variables(model)) == len(model.weights)
    model_folder.save(tmp_path / "m", model, BertTokenizer(WORDS), {"max_seq_length": 12})
    loaded = Model.from_loaded(model_folder.load(tmp_path / "m"))
    assert loaded.head == "text" and loaded.model.beams == 2
    np.testing.assert_allclose(logits_of(loaded.model, batch), logits_of(model, batch), atol=1e-6)
    found = loaded.predict(["a b c", "d e"])
    ids = ops.convert_to_numpy(model(loaded.tokenizer(["a b c"]))["output_ids"])[0]
    assert found[0] == {"output": loaded.tokenizer.decode(int(i) for i in ids if i >= 0)}
    assert loaded.predict("d e") == found[1]
    with pytest.raises(UserError, match="no other format has a (RNN)?Seq2Seq; a model folder has"):
        huggingface.export_huggingface(tmp_path / "hf", loaded.model, loaded.tokenizer)
    if decoder in RNN_DECODERS:
        with pytest.raises(UserError, match="no Transformer, so no vectors: use predict"):
            loaded.embed("d e")
        with pytest.raises(UserError, match="m has no Transformer; fine-tuning needs one"):
            initial_state.read_model(tmp_path / "m", "fine-tuning")


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="SavedModels")
def test_an_export_takes_and_gives_text(tmp_path):
    from official_bert import export as serving
    from official_bert.export.formats.id_export import resolve_export

    model = model_of("separate")
    model.masked_lm.bias.assign(np.where(np.arange(30) == END, 2.0, 0.0))
    model_folder.save(tmp_path / "m", model, BertTokenizer(WORDS), {"max_seq_length": 9})
    loaded = Model.from_loaded(model_folder.load(tmp_path / "m"))
    texts = ["a b c", "d e", "a a b c d e f g h i j"]
    served = serving.load(serving.export(loaded, tmp_path / "served", beams=3))
    answers = served(text=texts)
    expected = {}
    for beams in (1, 3):
        loaded.model.beams = beams
        with pytest.warns(UserWarning, match="1 of 3"):
            expected[beams] = [one["output"] for one in loaded.predict(texts)]
    assert answers["output"] == expected[3], "letters alone: blanks between all"
    assert expected[3] != expected[1]
    assert answers["truncated"].tolist() == [False, False, True]
    ids = loaded.tokenizer(texts, max_length=9, truncation="head")
    by_ids = served("token_ids", **ids)["token_ids"]
    np.testing.assert_array_equal(by_ids, answers["token_ids"])
    for options, message in (({"precision": "bfloat16"}, "float32"), ({"beams": 0}, "beams")):
        with pytest.raises(UserError, match=message):
            serving.export(loaded, tmp_path / "other", **options)
    with pytest.raises(UserError, match="a SavedModel does"):
        resolve_export(loaded, "it", "onnx")


def test_what_cannot_write():
    with pytest.raises(UserError, match="see both ways; this encoder is left_to_right"):
        model_of("separate", attention_direction="left_to_right")
    with pytest.raises(UserError, match="this encoder has 4 positions"):
        model_of("shared", max_position_embeddings=4)
