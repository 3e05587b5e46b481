"""The models that come with the package."""

import json
import os
import shutil
from pathlib import Path

import pytest

import official_bert
from experiments.configs import series
from experiments.training.folder.inputs import checkpoint_digest
from official_bert import objectives
from official_bert.checkpoints import embedded, model_settings
from official_bert.checkpoints.finding import resolve
from official_bert.common.errors import UserError
from official_bert.export import exports

NAME = "tiny-wikipedia"
RESULTS = Path(__file__).parents[2] / "experiments" / "results" / "table5" / "night"


@pytest.fixture(scope="module")
def loaded():
    return official_bert.load(NAME)


def test_it_fills_masks(loaded):
    album, daughter = loaded.fill_mask(
        ["the band released their first [MASK] in 1998.", "she is the [MASK] of the king."]
    )
    assert album["text"] == "the band released their first album in 1998."
    assert daughter["text"] == "she is the daughter of the king."


@pytest.mark.parametrize("name", embedded.names())
def test_each_is_small_and_has_a_card(name):
    folder = embedded.find(name)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 8e6
    card = (folder / "README.md").read_text("utf-8")
    assert f"\n# {name}\n" in card and "Licence" in card and "held-out loss" in card
    loaded = official_bert.load(name)
    assert loaded.config.hidden_size == 128 and loaded.head == "pretraining"


def test_rows_of_a_series_differ_in_their_objectives_alone():
    written = {}
    for row in (series.BERT, series.NO_NSP, series.LTR):
        first, *others = series.checkpoints(row)
        settings = model_settings.read_settings(first)
        written[row] = [objectives.parse_spec(one)[0] for one in settings["objectives"]]
        for other in filter(os.path.exists, others):
            assert model_settings.read_settings(other)["objectives"] == settings["objectives"]
    assert list(written.values()) == [["masked_lm", "next_sentence"], ["masked_lm"], ["next_token"]]
    vocabularies = {(embedded.find(series.checkpoints(row)[0]) / "vocab.txt").read_text("utf-8")
                    for row in written}  # fmt: skip
    assert len(vocabularies) == 1


def test_it_is_a_model_wherever_one_is_named():
    assert resolve.format_of(NAME) == "model_folder"
    config, tokenizer = resolve.peek(NAME)
    assert config.vocab_size == len(tokenizer.vocab) == 8192
    assert checkpoint_digest(NAME) != NAME
    assert exports.peek(NAME)[0].head == "pretraining"


def test_its_card_does_not_decide_a_result(tmp_path):
    copied = shutil.copytree(embedded.find(NAME), tmp_path / NAME)
    (copied / "README.md").write_text("another card")
    assert checkpoint_digest(str(copied)) == checkpoint_digest(NAME)
    (copied / "bert_config.json").write_text("{}")
    assert checkpoint_digest(str(copied)) != checkpoint_digest(NAME)


def test_a_folder_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAME).mkdir()
    assert embedded.find(NAME) == Path(NAME)
    assert embedded.find("a/tiny-wikipedia") == Path("a/tiny-wikipedia")
    with pytest.raises(UserError, match="no model in this folder"):
        resolve.format_of(NAME)


def test_it_is_a_row_of_the_committed_table(loaded):
    """The card's scores are those of the report."""
    card = (embedded.find(NAME) / "README.md").read_text("utf-8")
    rows = {row["label"]: row for row in json.loads((RESULTS / "results.json").read_text())["rows"]}
    for row in ("BERT", "random initialisation"):
        for column in ("QNLI", "QQP", "SQuAD", "entities", "chunks"):
            assert f"{rows[row]['cells'][column]['mean']:.1f}" in card
