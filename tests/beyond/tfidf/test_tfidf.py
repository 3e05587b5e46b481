"""TF-IDF in place of a network: every kind of problem, and the files that fine-tuning leaves."""

import json
from pathlib import Path

import numpy as np
import pytest

import official_bert
from data_prep.tasks import get_task
from experiments.beyond.tfidf import start as tfidf
from experiments.training import runs
from experiments.training.answers.predictor import Predictor
from experiments.training.settings.config import FinetuneConfig
from official_bert.checkpoints import model_folder
from official_bert.common.errors import UserError

pytest.importorskip("sklearn")

COLOURS = {"red": "warm", "orange": "warm", "blue": "cold", "green": "cold", "grey": "none"}


def rows(count=300):
    """Yield a colour in each text; two texts belong together when their colours are equal."""
    draw = np.random.default_rng(0)
    names = list(COLOURS)
    for number in range(count):
        first = names[number % 5]
        second = first if number % 2 else names[(number + 1) % 5]
        words = draw.choice(["a", "thing", "of", "this", "kind"], 4)
        yield first, second, " ".join([*words[:2], first, *words[2:]])


def table(tmp_path, problem):
    path = tmp_path / "mine.tsv"
    lines = ["text\ttext_b\tlabel" if problem == "pair" else "text\tlabel"]
    for first, second, text in rows():
        if problem == "pair":
            lines.append(f"{text}\t{second}\t{'same' if first == second else 'other'}")
        elif problem == "regression":
            lines.append(f"{text}\t{len(first)}")
        elif problem == "multi_label":
            lines.append(f"{text}\t{','.join(sorted({first, COLOURS[first]}))}")
        else:
            lines.append(f"{text}\t{COLOURS[first]}")
    path.write_text("\n".join(lines) + "\n")
    return path


def config(tmp_path, problem="single_label", **fields):
    options = {"dev_fraction": 0.2}
    if problem == "pair":
        options |= {"text_column": "text", "text_b_column": "text_b"}
    else:
        options["problem"] = problem
    return FinetuneConfig(
        task="text_classification",
        data_dir=str(table(tmp_path, problem)),
        task_options=options,
        model=tfidf.NAME,
        **fields,
    )


def check_folder(config, results):
    """Compare the answers of a run's model folder with the run's own."""
    task = get_task(config.task, config.data_dir, **config.task_options)
    examples = task.examples("dev")
    model = official_bert.load(results.files["model"])
    columns = [list(column) for column in zip(*map(task.texts, examples), strict=True)]
    found = Predictor(results.files["model"]).predict(examples)[0]
    assert task.score(examples, found) == pytest.approx(results.dev)
    for asked, answer in zip(model.predict(*columns), found, strict=True):
        if "probabilities" in asked:
            asked["probabilities"] = list(asked["probabilities"].values())
        assert asked == {name: value for name, value in answer.items() if name != "id"}
    assert (
        model.predict(*[column[0] for column in columns])
        == model.predict(*[column[:1] for column in columns])[0]
    )
    with pytest.raises(UserError, match="has no vectors of texts: use predict"):
        model.embed("a")
    with pytest.raises(UserError, match="the model reads (one text|two texts) a row"):
        model.predict(*[["a"]] * (3 - len(columns)))
    with pytest.raises(UserError, match="is not a network of tokens"):
        model_folder.peek(results.files["model"])


def test_a_folder_whose_parts_do_not_fit(tmp_path):
    results = runs.finetune(config(tmp_path), tmp_path / "run", progress=False)
    folder = Path(results.files["model"])
    settings = json.loads((folder / "model.json").read_text())
    del settings["checksums"]
    (folder / "model.json").write_text(json.dumps({**settings, "labels": ["one"]}))
    fits = pytest.raises(UserError, match="does not fit model.json and words.json beside it")
    with fits, pytest.warns(UserWarning):
        official_bert.load(folder)


@pytest.mark.parametrize(
    ("problem", "metric", "least"),
    [("single_label", "accuracy", 1.0), ("multi_label", "micro_f1", 0.9),
     ("regression", "pearson", 0.9), ("pair", "accuracy", 0.8)],
)  # fmt: skip
def test_words_that_tell_are_learnt(tmp_path, problem, metric, least):
    results = runs.finetune(config(tmp_path, problem), tmp_path / "run", progress=False)
    assert results.main_metric == metric
    assert least <= results.dev[metric] > results.baseline[metric] + 0.1
    assert results.train_examples + results.dev_examples == 300
    kept = json.loads((tmp_path / "run" / "results.json").read_text())
    assert kept["dev"] == results.dev
    for name in ("dev predictions", "report", "analysis"):
        assert (tmp_path / "run" / kept["files"][name]).is_file()
    assert (tmp_path / "run" / "example_scores.npz").is_file()
    check_folder(config(tmp_path, problem), results)
    # A finished run is not run again.
    again = runs.finetune(config(tmp_path, problem), tmp_path / "run", progress=False)
    assert again.seconds == kept["seconds"]


def test_a_class_without_examples_is_never_the_answer(tmp_path):
    path = table(tmp_path, "single_label")
    task = get_task(
        "text_classification", str(path), labels="warm,cold,none,absent", dev_fraction=0.2
    )
    answer = tfidf.learn(task, task.examples("train"))
    probabilities = np.array([p["probabilities"] for p in answer(task.examples("dev"))])
    assert probabilities.shape[1] == 4 and (probabilities[:, 3] == 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bilstm": True}, "--config.bilstm is not for --config.model=tfidf"),
        ({"freeze": "embeddings"}, "--config.freeze is not for --config.model=tfidf"),
    ],
)
def test_what_belongs_to_networks_is_refused(tmp_path, fields, message):
    with pytest.raises(UserError, match=message):
        runs.finetune(config(tmp_path, **fields), tmp_path / "run", progress=False)


def test_other_tasks_are_refused(tmp_path):
    asked = FinetuneConfig(task="squad_v1.1", data_dir=str(tmp_path), model=tfidf.NAME)
    with pytest.raises(UserError, match="tells one or two texts apart; squad_v1.1 is span"):
        runs.finetune(asked, tmp_path / "run", progress=False)
