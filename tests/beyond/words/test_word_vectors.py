"""Word vectors: their files, the words of a text, and GLUE's baselines that read them."""

import gzip
import os

import keras
import numpy as np
import pytest
from keras import ops
from scipy.special import softmax

from experiments.beyond.common.words import WordTokenizer
from experiments.beyond.elmo.shape import ElmoConfig
from experiments.beyond.words.model import CBOW, BiLSTMAttention
from experiments.beyond.words.vectors import read_vectors, vectors_width
from official_bert.common.errors import UserError

GLOVE = "the 0.5 -1 2\n. . 1 2 3\nunion 4e-1 5 6\nthe 9 9 9\n"
LABELS = {"num_labels": 3, "problem": "single_label"}


def test_both_formats(tmp_path):
    (tmp_path / "glove.txt").write_text(GLOVE)
    words, vectors = read_vectors(tmp_path / "glove.txt")
    assert words == ["the", ". .", "union"]  # a word with a blank; of two the first
    np.testing.assert_allclose(vectors, [[0.5, -1, 2], [1, 2, 3], [0.4, 5, 6]])
    with gzip.open(tmp_path / "word2vec.txt.gz", "wt") as file:
        file.write(f"\ufeff4 3\n{GLOVE}")  # as Windows begins a file
    again = read_vectors(tmp_path / "word2vec.txt.gz")
    assert again[0] == words and (again[1] == vectors).all()
    assert {vectors_width(path) for path in tmp_path.iterdir()} == {3}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"the 1 2\nof 1\n", "line 2: .*word and 2 numbers|line 2: could not convert"),
        (b"the 1 2\nof 1 two\n", "line 2: could not convert"),
        (b"the 1 nan\n", "line 1: expected a word and 2 numbers"),
        (b"3 2\nthe 1 2\n", "1 words, but its first line says 3"),
        (b"", "no word vectors"),
        (b"2 2\nthe \xff\xfe1\n", "line 2: not UTF-8 .*binary"),
        (b"the " + bytes(1 << 21), "line 1: could not convert"),
        (bytes(1 << 21), "line 1: expected a word and some numbers"),
        (b"2 99999999999999999999\nthe 1 2\n", "line 1: so many words or numbers"),
    ],
)
def test_files_that_are_none(tmp_path, content, message):
    (tmp_path / "x.txt").write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_vectors(tmp_path / "x.txt")
    with pytest.raises(UserError, match="No such file"):
        read_vectors(tmp_path / "none.txt")


@pytest.mark.parametrize("read", [read_vectors, vectors_width])
def test_files_that_do_not_end_or_begin(tmp_path, read):
    (tmp_path / "half.txt.gz").write_bytes(gzip.compress(GLOVE.encode() * 99)[:20])
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "zeros.txt").write_bytes(bytes(1 << 21))
    for name, message in (
        ("half.txt.gz", "cannot be read"),
        ("pipe.txt", "is not a file"),
        ("empty.txt", "no word vectors|some numbers"),
        ("zeros.txt", "line 1: expected a word and some numbers"),
    ):
        with pytest.raises(UserError, match=f"{name}.*{message}"):
            read(tmp_path / name)


def test_words_of_a_text():
    tokenizer = WordTokenizer(["do", "n't", "u.s.", ".", ")", "well-known", "'s", "it", "'"])
    texts = {
        "Don't (U.S.)": ["do", "n't", "[UNK]", "u.s.", ")"],
        "well-known, it's 'it'.": ["well-known", "[UNK]", "it", "'s", "'", "it", "'", "."],
        "it-well\t...": ["it", "[UNK]", "[UNK]", ".", ".", "."],
        "[CLS] [PAD]": ["[UNK]"] * 6,
        "": [],
    }
    for text, pieces in texts.items():
        assert tokenizer.tokenize(text) == pieces
        ids, spans = tokenizer.encode_with_offsets(text)
        assert ids == tokenizer.encode(text)
        assert "".join(text[a:b] for a, b in spans) == "".join(text.split())
    with pytest.raises(UserError, match="differ"):
        WordTokenizer(["a", "[SEP]"])


@pytest.fixture(scope="module")
def pair():
    """Return one pair of texts of two words each, one without a vector, and a row of padding
    behind."""
    tokenizer = WordTokenizer(["a", "b", "c"])
    batch = tokenizer(["a b", "x"], ["c x c", "a b a"], padding=8)
    rng = np.random.default_rng(0)
    table = np.concatenate([np.zeros((5, 4)), rng.normal(size=(3, 4))]).astype("float32")
    return {**batch, "vectors": table[batch["input_ids"]]}, table[5:]


def test_cbow_by_hand(pair):
    batch, (a, b, c) = pair
    model = CBOW(4, LABELS, pairs=True, classifier_width=6, seed=0)
    found = ops.convert_to_numpy(model(batch)["logits"])
    hidden, head = (
        [ops.convert_to_numpy(w) for w in x.weights] for x in (model.hidden, model.head)
    )
    for row, (u, v) in enumerate([((a + b) / 2, c), (0 * a, (a + b + a) / 3)]):
        x = np.concatenate([u, v, abs(u - v), u * v])
        x = np.tanh(x @ hidden[0] + hidden[1]) @ head[0] + head[1]
        np.testing.assert_allclose(found[row], x, rtol=1e-4, atol=1e-5)


def test_bilstm_reads_words_of_its_own_text_and_its_like(pair):
    batch, _ = pair
    model = BiLSTMAttention(4, 6, LABELS, pairs=True, classifier_width=6, seed=0)
    before = ops.convert_to_numpy(model(batch)["logits"])
    # Numbers at padding, at marks of the row and at the end change nothing.
    ids = batch["input_ids"]
    other = {**batch, "vectors": np.where(np.isin(ids, [0, 2, 3])[..., None], 7, batch["vectors"])}
    np.testing.assert_allclose(model(other)["logits"], before, atol=1e-6)
    longer = {n: np.pad(x, [(0, 0), (0, 3), (0, 0)][: x.ndim]) for n, x in batch.items()}
    np.testing.assert_allclose(model(longer)["logits"], before, atol=1e-5)
    # A word has the mean of the other text's words beside it, weighted by how alike they are.
    words, in_text = (
        np.random.default_rng(0).normal(size=(2, 3, 4)),
        np.array([[1, 1, 0], [0, 1, 1]]),
    )
    found = ops.convert_to_numpy(model._alike(words.astype("float32"), in_text[::-1] > 0))
    for text in (0, 1):
        others = words[1 - text][in_text[1 - text] > 0]
        expected = softmax(words[text] @ others.T, axis=-1) @ others
        np.testing.assert_allclose(found[text], expected, rtol=1e-4, atol=1e-5)


def test_elmos_states_are_read_in_place_of_vectors(pair):
    batch, _ = pair
    elmo = ElmoConfig(projection=2, num_hidden_layers=1)  # two layers of states, 4 wide
    states = np.random.default_rng(0).normal(size=(*batch["input_ids"].shape, 2, 4))
    options = {"head": LABELS, "pairs": True, "classifier_width": 6, "seed": 0}
    reader, plain = BiLSTMAttention(0, 6, elmo=elmo, **options), BiLSTMAttention(4, 6, **options)
    found = reader({**batch, "vectors": batch["vectors"][..., :0], "states": states})["logits"]
    # Untrained weights of the layers make the mean; all else is as of vectors.
    expected = plain({**batch, "vectors": states.mean(axis=2)})["logits"]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["cbow", "bilstm"])
def test_they_learn(kind):
    tokenizer = WordTokenizer(list("abcdef"))
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdef"), 5)) for _ in range(64)]
    labels = np.array(["a" in text for text in texts], "int32")
    table = np.concatenate([np.zeros((5, 8)), rng.normal(size=(6, 8))]).astype("float32")
    batch = tokenizer(texts)
    batch = {**batch, "vectors": table[batch["input_ids"]], "label_ids": labels}
    head = {"num_labels": 2, "problem": "single_label"}
    options = {"classifier_width": 16, "seed": 0, "rate": 0.0}
    make = {"cbow": lambda: CBOW(8, head, False, **options),
            "bilstm": lambda: BiLSTMAttention(8, 16, head, False, **options)}  # fmt: skip
    model = make[kind]()
    model.compile(keras.optimizers.Adam(1e-2))
    history = model.fit(batch, labels, batch_size=32, epochs=25, shuffle=False, verbose=0).history
    assert history["accuracy"][-1] > 0.95  # in order, so that it is the same in every run
