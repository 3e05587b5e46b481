"""Scores that a fine-tuning leaves: of a test file, and the one that keeps its weights."""

import json
import shutil

import pytest
import tiny_runs

from experiments import finetune
from experiments.training.runs import finetune as run
from official_bert.common.errors import UserError


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tiny_runs.write_labelled_texts(tmp_path_factory.mktemp("texts"))
    shutil.copy(folder / "dev.tsv", folder / "asked.tsv")
    return folder


def _config(texts, data, **fields):
    vocab = str(data / "vocab.txt")
    return tiny_runs.finetune_config(texts, vocab=vocab, num_train_epochs=1.0, **fields)


def test_a_test_file_gives_a_score_and_the_best_weights_are_those_of_the_score_asked_for(
    texts, data, tmp_path
):
    options = {"test_file": "asked.tsv"}
    config = _config(
        texts, data, task_options=options, eval_every=4, keep_best=True, best_metric="macro_f1"
    )
    results = run(config, tmp_path / "run", progress=False)
    assert results.test == pytest.approx(results.dev)  # the same rows
    assert results.best_by == "macro_f1"
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    found = {line["step"]: line["dev/macro_f1"] for line in lines if "dev/macro_f1" in line}
    assert len(found) == 3 and found[results.best_step] == max(found.values())
    for told in (finetune.summary(results), (tmp_path / "run" / "report.md").read_text()):
        assert "test: macro_f1" in told.replace("macro\\_f1", "macro_f1")
        assert f"weights: those of step {results.best_step}, the best by macro" in told
        assert "--config.best" in told


def test_a_test_file_that_is_named_has_to_be_there(texts, data, tmp_path):
    config = _config(texts, data, task_options={"test_file": "nowhere.tsv"})
    with pytest.raises(UserError, match="no file for test: looked for nowhere.tsv"):
        run(config, tmp_path / "run", progress=False)
    config = _config(texts, data, best_metric="bleu", eval_every=4, keep_best=True)
    with pytest.raises(UserError, match="best_metric='bleu'; it is one of accuracy, macro_f1"):
        run(config, tmp_path / "run", progress=False)
