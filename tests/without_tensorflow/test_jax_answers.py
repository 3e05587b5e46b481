"""Texts are answered on JAX, where there is no TensorFlow."""

import pytest

import official_bert
from official_bert import BertClassifier, BertMultipleChoice, BertSpan, BertTagger
from official_bert.checkpoints import model_folder


@pytest.mark.parametrize(
    ("make", "asked", "fields"),
    [
        (lambda e: BertClassifier(e, 2, seed=1), ("the river",), {"label", "probabilities"}),
        (lambda e: BertTagger(e, 2, seed=1), ("the U.N. is here",), {"words"}),
        (
            lambda e: BertSpan(e, seed=1),
            ("where is it?", "it is in the north of France."),
            {"answer", "start", "end", "probability"},
        ),
        (lambda e: BertMultipleChoice(e, seed=1), ("a", ["b", "c"]), {"choice", "probabilities"}),
    ],
)
def test_every_head(make, asked, fields, tmp_path):
    base = official_bert.load("tiny-wikipedia")
    settings = {"labels": ["no", "yes"]}
    model_folder.save(tmp_path / "m", make(base.encoder), base.tokenizer, settings)
    answer = official_bert.load(tmp_path / "m").predict(*asked)
    assert set(answer) == fields
    if "words" in fields:
        assert [word["word"] for word in answer["words"]] == ["the", "U.N.", "is", "here"]
    if "answer" in fields:
        assert answer["answer"] == asked[1][answer["start"] : answer["end"]] != ""
    assert base.embed("the river").shape == (base.config.hidden_size,)
