"""Word vectors learnt from text: what they know of a made language, their file, the command."""

import random

import numpy as np
import pytest
from in_process import call

from experiments.beyond.words import word2vec
from experiments.beyond.words.vectors import read_vectors, vectors_width
from official_bert.common.errors import UserError

pytest.importorskip("gensim")
ROLES = {"king": "crown he", "queen": "crown she", "man": "field he", "woman": "field she"}
SMALL = {"vector_size": 12, "sample": 0.1, "epochs": 3}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Return sentences of a person and of words that tell the rank and the sex; capitals in
    between."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    draw = random.Random(0)
    with path.open("w") as file:
        for _ in range(4000):
            person, marks = draw.choice(list(ROLES.items()))
            words = [f"{word}{draw.randrange(3)}" for word in marks.split()] + [person.title()]
            file.write(" ".join(draw.sample(words, 3)) + ".\n")
    return path


@pytest.mark.parametrize("kind", word2vec.KINDS)
def test_analogies_of_a_made_language(text, kind):
    words, vectors = word2vec.learn(str(text), kind, **SMALL)
    assert {*ROLES, "he0", "crown2", "."} <= set(words), "in lower case, marks apart"
    of = dict(zip(words, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), strict=True))
    asked = of["king"] - of["man"] + of["woman"]
    assert max(ROLES.keys() - {"king", "man", "woman"} | {"he0", "she0", "crown0", "field0"},
               key=lambda word: asked @ of[word]) == "queen"  # fmt: skip
    again = word2vec.learn(str(text), kind, **SMALL)
    np.testing.assert_array_equal(again[1], vectors)
    assert (word2vec.learn(str(text), kind, seed=2, **SMALL)[1] != vectors).any()


def test_the_file_is_one_of_word_vectors(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
    word2vec.write(tmp_path / "vectors.txt", ["a", "b", "né"], vectors)
    words, found = read_vectors(tmp_path / "vectors.txt")
    assert words == ["a", "b", "né"] and vectors_width(tmp_path / "vectors.txt") == 4
    np.testing.assert_allclose(found, vectors, rtol=1e-5)


def test_command(text, tmp_path, capsys):
    output = tmp_path / "vectors.txt"
    assert call(word2vec, f"--input={text}", f"--output={output}") == 0
    assert "17 words, 100 numbers each" in capsys.readouterr().out and vectors_width(output) == 100
    before = output.read_bytes()
    assert call(word2vec, f"--input={text}", f"--output={output}") == 2
    assert "exists already; choose another name" in capsys.readouterr().err
    assert output.read_bytes() == before


def test_what_is_no_text_for_it(tmp_path):
    (tmp_path / "few.txt").write_text("one two three\n")
    with pytest.raises(UserError, match=r"no word is there 5 times \(1 files\)"):
        word2vec.learn(str(tmp_path / "few.txt"))
