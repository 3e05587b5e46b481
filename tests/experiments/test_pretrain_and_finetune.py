"""Pre-training, evaluation, fine-tuning and prediction from end to end on made-up texts."""

import dataclasses
import functools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny_runs
from in_process import call
from tiny_runs import finetune_config

from data_prep.jobs import checked_json
from data_prep.jobs.locks import LOCK_FILE
from experiments import evaluate, finetune, predict, pretrain
from experiments.training import search
from experiments.training.folder.dataclass_json import to_json
from experiments.training.settings.config import Phase
from experiments.training.settings.config_files import load_config
from experiments.training.settings.config_values import override
from experiments.training.start.initial_state import BertSource
from official_bert import BertClassifier, BertEncoder, BertTokenizer
from official_bert.checkpoints import model_folder
from official_bert.common.errors import UserError


@pytest.fixture(scope="module")
def pretrained(data, tmp_path_factory):
    """Return (work folder, results) of a pre-training run."""
    workdir = tmp_path_factory.mktemp("pretrained")
    config = tiny_runs.pretrain_config(data, snapshots=(10,), output_bias="unigram")
    return workdir, pretrain.run(config, workdir, progress=False)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return tiny_runs.write_labelled_texts(tmp_path_factory.mktemp("texts"))


def test_pretraining_leaves_the_runs_folder(pretrained):
    workdir, results = pretrained
    found = {path.name for path in workdir.glob("[!.]*")}
    files = {"config.json", "versions.json", "metrics.jsonl", "results.json"}
    assert found == files | {"events", "checkpoints", "snapshots", "model"}
    kept = to_json(results) | {"model": "model"}
    assert checked_json.read(workdir / "results.json") == kept
    assert results.steps == 24 and results.examples == 24 * 8
    assert results.tokens == (16 * 16 + 8 * 24) * 8
    heldout = results.heldout
    assert heldout["masked_lm_perplexity"] == pytest.approx(np.exp(heldout["masked_lm_loss"]))
    assert 0.5 <= heldout["next_sentence_majority"] <= 1
    loaded = model_folder.load(workdir / "model")
    assert loaded.head == "pretraining" and loaded.tokenizer.vocab[-1] == tiny_runs.WORDS[-1]
    snapshot = model_folder.load(workdir / "snapshots" / "step-00000010")
    assert not np.array_equal(snapshot.model.get_weights()[0], loaded.model.get_weights()[0])
    lines = [json.loads(line) for line in (workdir / "metrics.jsonl").open()]
    logged = next(line for line in lines if line["step"] == 15)
    assert {"loss", "masked_lm_loss", "gradient_norm", "learning_rate"} < set(logged)
    assert logged["flops_per_second"] > 0
    assert lines[0]["seconds_to_first_step"] > 0
    versions = json.loads((workdir / "versions.json").read_text())
    assert versions["packages"]["keras"] and versions["seed"] == 12345


def test_events_hold_the_scalars(pretrained):
    import tensorflow as tf

    workdir, _ = pretrained
    (path,) = (workdir / "events").glob("[!.]*")
    seen = {}
    for record in tf.data.TFRecordDataset(str(path)):
        event = tf.compat.v1.Event.FromString(record.numpy())
        for value in event.summary.value:
            assert value.metadata.plugin_data.plugin_name == "scalars"
            seen.setdefault(value.tag, {})[event.step] = float(tf.make_ndarray(value.tensor))
    lines = map(json.loads, (workdir / "metrics.jsonl").open())
    logged = {line["step"]: line["loss"] for line in lines if "loss" in line}
    assert seen["loss"] == pytest.approx(logged, rel=1e-6)


def test_a_finished_run_is_not_run_again(pretrained, data):
    workdir, results = pretrained

    def times():
        files = (path for path in workdir.rglob("*") if path.is_file())
        return {p: p.stat().st_mtime_ns for p in files if p.name not in ("config.json", LOCK_FILE)}

    before = times()
    config = tiny_runs.pretrain_config(
        data, snapshots=(10,), output_bias="unigram", log_every=3, save_every=9
    )
    assert pretrain.run(config, workdir, progress=False) == results
    assert times() == before
    with pytest.raises(UserError, match="learning_rate: 0.01 -> 0.02"):
        pretrain.run(dataclasses.replace(config, learning_rate=0.02), workdir, progress=False)


def test_evaluate_measures_what_training_measured(pretrained, data, capsys):
    workdir, results = pretrained
    arguments = (str(workdir / "model"), str(data / "records"))
    metrics = evaluate.run(*arguments, batch_size=8, max_examples=32)
    for name, value in results.heldout.items():
        assert metrics[name] == pytest.approx(value, rel=1e-5)
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("reads ") and "4/4" in said[-1]
    few, many = (evaluate.run(*arguments, batch_size=n) for n in (50, 512))
    assert few == pytest.approx(many, rel=1e-5)


@pytest.mark.parametrize(
    "flags, message",
    [
        (("--data=x", "--precision=mixed_bfloat16"), "--precision is for --records"),
        (("--records=x", "--split=test"), "--split is for --data"),
    ],
)
def test_evaluate_refuses_what_it_would_not_use(flags, message, capsys):
    assert call(evaluate, "--model=m", *flags) == 2
    assert f"{message}; leave it out" in capsys.readouterr().err


def test_continued_pretraining_starts_from_the_checkpoint(pretrained, data, tmp_path):
    workdir, results = pretrained
    config = tiny_runs.pretrain_config(
        data, init_from=str(workdir / "model"), bert="", learning_rate=1e-12
    )
    continued = pretrain.run(config, tmp_path / "run", progress=False)
    assert continued.heldout == pytest.approx(results.heldout, rel=1e-4)
    assert pretrain.run(config, tmp_path / "run", progress=False) == continued  # finished: as it is
    with pytest.raises(UserError, match="hidden_size 12, there 16"):
        wider = dataclasses.replace(config, bert=tiny_runs.bert(hidden_size=12))
        pretrain.run(wider, tmp_path / "wider", progress=False)
    with pytest.raises(UserError, match="is not the vocabulary of"):
        vocab = tmp_path / "vocab.txt"
        vocab.write_text("\n".join([*tiny_runs.SPECIAL, "x", *tiny_runs.WORDS]))
        pretrain.run(dataclasses.replace(config, vocab=str(vocab)), tmp_path / "v", progress=False)


def test_continuing_needs_nothing_but_a_checkpoint_and_records(data, tmp_path, capsys):
    """From a checkpoint whose only head is a classifier's."""
    tokenizer = BertTokenizer(data / "vocab.txt")
    encoder = BertEncoder(tiny_runs.bert(), seed=1)
    model_folder.save(tmp_path / "model", BertClassifier(encoder, 2), tokenizer)
    fields = {
        "init_from": str(tmp_path / "model"),
        "phases.0.records": str(data / "records"),
        "phases.0.heldout_records": str(data / "records"),
        "phases.0.num_train_steps": 20,
        "train_batch_size": 8,
        "max_heldout_examples": 16,
        "log_every": 1,
        "precision": "float32",  # as the other runs here: compiled once
    }
    config = override(load_config("pretrain:continue"), fields)
    results = pretrain.run(config, tmp_path / "run")
    assert results.steps == 20 and results.tokens == 20 * 8 * tiny_runs.LENGTH
    said = capsys.readouterr().err
    assert "model has no masked-LM and no next-sentence head; new ones" in said
    assert "losses of about 12" in said
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    rates = {line["step"]: line["learning_rate"] for line in lines if "learning_rate" in line}
    assert max(rates, key=rates.get) in (2, 3) and rates[1] < rates[2]  # a tenth warms up
    loaded = model_folder.load(tmp_path / "run" / "model")
    assert loaded.config == encoder.config and loaded.head == "pretraining"
    assert loaded.settings["max_seq_length"] == tiny_runs.LENGTH
    again = override(config, {"init_from": results.model, "phases.0.num_train_steps": 1})
    pretrain.run(again, tmp_path / "again")
    assert f"heads: loaded from {results.model}" in capsys.readouterr().err


def test_loss_that_explodes_stops_the_run(data, tmp_path):
    config = tiny_runs.pretrain_config(data, learning_rate=1e30, clip_norm=0.0, save_every=1)
    with pytest.raises(FloatingPointError, match=r"step \d+: the loss is"):
        pretrain.run(config, tmp_path, progress=False)
    with np.load(sorted((tmp_path / "checkpoints").glob("step-*"))[-1] / "arrays.npz") as arrays:
        assert all(np.isfinite(arrays[name]).all() for name in arrays.files)


@pytest.fixture(scope="module")
def finetuned(texts, pretrained, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("finetuned")
    config = finetune_config(texts, pretrained[0] / "model", eval_every=10, keep_best=True)
    return config, workdir, finetune.run(config, workdir, progress=False)


def test_finetuning_learns_and_leaves_its_files(finetuned):
    _, workdir, results = finetuned
    assert results.main_metric == "accuracy"
    assert results.dev["accuracy"] > results.baseline["accuracy"] + 0.1
    assert (results.steps, results.train_examples, results.dev_examples) == (60, 160, 43)
    kept = checked_json.read(workdir / "results.json")
    assert kept["files"]["model"] == "model" and results.files["model"] == str(workdir / "model")
    assert kept["dev"] == results.dev
    lines = Path(results.predictions_file).read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 43
    analysis = json.loads((workdir / "analysis.json").read_text())
    assert "confusion" in analysis and "mistakes" in analysis
    report = (workdir / "report.md").read_text(encoding="utf-8")
    counts = " | ".join(map(str, analysis["confusion"]["counts"][0]))
    assert f"| animal | {counts} |" in report and "| other | " in report
    assert f"| accuracy | {results.dev['accuracy']:.4f} |" in report
    for mistake in analysis["mistakes"]:
        assert mistake["text"] in report
    assert not (workdir / "checkpoints").exists()


def test_the_best_evaluation_is_kept(finetuned):
    _, workdir, results = finetuned
    lines = [json.loads(line) for line in (workdir / "metrics.jsonl").open()]
    scores = {line["step"]: line["dev/accuracy"] for line in lines if "dev/accuracy" in line}
    assert set(scores) == {10, 20, 30, 40, 50, 60}
    assert results.dev["accuracy"] == max(scores.values())
    assert results.best_step == min(s for s, v in scores.items() if v == max(scores.values()))


def test_runs_of_one_process_do_not_touch_each_other(finetuned, texts, tmp_path):
    config, _, results = finetuned
    other = dataclasses.replace(config, seed=3, learning_rate=1e-3)
    finetune.run(other, tmp_path / "other", progress=False)
    again = finetune.run(config, tmp_path / "again", progress=False)
    assert again.dev == results.dev and again.best_step == results.best_step
    first, second = (tiny_runs.logged(run, "loss") for run in (finetuned[1], tmp_path / "again"))
    assert first == second


def test_finetuning_goes_on_from_a_head_that_fits(finetuned, texts, tmp_path, capsys):
    _, workdir, results = finetuned
    fields = {"learning_rate": 1e-12, "num_train_epochs": 0.1, "seed": 9, "freeze": "embeddings"}
    fields |= {"class_weights": "balanced", "eval_every": 50}
    config = finetune_config(texts, workdir / "model", **fields)
    again = finetune.run(config, tmp_path / "again", progress=True)
    assert again.dev == results.dev
    assert again.head == f"head: loaded from {workdir / 'model'}"
    told = capsys.readouterr().err
    assert again.head in told
    assert f"eval_every=50 is more than this run's {again.steps} steps" in told


def test_predictions_keep_order_and_empty_lines(finetuned, tmp_path):
    _, workdir, _ = finetuned
    lines = ["the cat sees one house", "", "two red river", "cat " * 40, "a cat", ""]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    model = str(workdir / "model")
    counts = predict.run(
        model, str(tmp_path / "in.txt"), str(tmp_path / "out.tsv"), batch_size=2, progress=False
    )
    assert counts == {"lines": 6, "empty": 2, "truncated": 1}
    header, *rows = (tmp_path / "out.tsv").read_text().splitlines()
    assert header == "text\tlabel\tprobability_animal\tprobability_other"
    assert len(rows) == 6 and rows[1] == rows[5] == ""
    assert [row.split("\t")[0] for row in rows] == lines
    labels = [row and row.split("\t")[1] for row in rows]
    assert labels[0] == labels[4] == "animal" and labels[2] == "other"
    objects = [json.dumps({"text": line}) if line else "" for line in lines]
    (tmp_path / "in.jsonl").write_text("\n".join(objects) + "\n", encoding="utf-8")
    predict.run(model, str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl"), progress=False)
    answers = [json.loads(line) for line in (tmp_path / "out.jsonl").open()]
    assert [answer.get("label", "") for answer in answers] == labels
    for row, answer in zip(rows, answers, strict=True):
        if row:
            shown = [float(x) for x in row.split("\t")[2:]]
            assert shown == pytest.approx(answer["probabilities"], abs=1e-5)
    with pytest.raises(UserError, match="out.jsonl exists already; .* pass --overwrite"):
        predict.run(model, str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl"), progress=False)


def test_search_makes_one_table_and_continues(texts, data, tmp_path, capsys):
    config = finetune_config(
        texts, vocab=str(data / "vocab.txt"), num_train_epochs=1.0, save_model=False
    )
    cut = "task_options.truncation"
    grid = search.parse(f"learning_rate=1e-2,1e-9;seed=1,2;{cut}=tail", config)
    assert grid == {"learning_rate": [1e-2, 1e-9], "seed": [1, 2], cut: ["tail"]}
    table = search.run(config, tmp_path, grid, progress=False)
    assert [row["fields"] for row in table["rows"]][0] == table["best"]["fields"]
    assert {tuple(row["runs"]) for row in table["rows"]} == {("1", "2")}
    means = [row["mean"] for row in table["rows"]]
    assert means == sorted(means, reverse=True)
    results = tmp_path / f"learning_rate=0.01_seed=1_{cut}=tail" / "results.json"
    made = json.loads(results.with_name("config.json").read_text())
    assert made["task_options"]["truncation"] == table["best"]["fields"][cut] == "tail"
    before = results.stat().st_mtime_ns
    (tmp_path / f"learning_rate=0.01_seed=2_{cut}=tail" / "results.json").unlink()
    assert search.run(config, tmp_path, grid, progress=False) == table
    assert results.stat().st_mtime_ns == before
    with pytest.raises(UserError, match="unknown field"):
        search.parse("rate=1,2", config)
    with pytest.raises(UserError, match="--search: seed is there twice"):
        search.parse("seed=1; seed = 2", config)
    with pytest.raises(UserError, match="--search: learning_rate: 5e-05 is there twice"):
        search.parse("learning_rate=5e-5,0.00005", config)


def test_a_test_file_is_read_before_the_training_and_its_absence_told(texts, data, tmp_path):
    folder = tmp_path / "data"
    shutil.copytree(texts, folder)
    config = finetune_config(
        folder, vocab=str(data / "vocab.txt"), num_train_epochs=0.1, predict_test=True
    )
    results = finetune.run(config, tmp_path / "without", progress=False)
    assert "test: no predictions, no file for test" in finetune.summary(results)
    assert "test: no predictions" in (tmp_path / "without" / "report.md").read_text()
    (folder / "test.tsv").write_bytes(b"text\na cat\n\xff\n")
    with pytest.raises(UserError, match="test.tsv"):
        finetune.run(config, tmp_path / "broken", progress=False)
    assert not (tmp_path / "broken" / "metrics.jsonl").exists()
    (folder / "test.tsv").write_text("text\na cat\na dog\n")
    results = finetune.run(config, tmp_path / "with", progress=False)
    written = Path(results.files["test predictions"]).read_text().splitlines()
    assert len(written) == 1 + 2


def test_random_weights_are_those_that_a_pretraining_begins_with(texts, data, tmp_path):
    # At this rate only zeros move, by as little.
    phases = (Phase(str(data / "short"), 16, 1),)
    still = tiny_runs.pretrain_config(data, seed=3, learning_rate=1e-30, phases=phases)
    pretrain.run(still, tmp_path, progress=False)
    start = functools.partial(BertSource().finetuning_start, task=None, examples={})
    begun = start(finetune_config(texts, tmp_path / "model")).weights
    config = finetune_config(texts, vocab=str(data / "vocab.txt"), initial_seed=3)
    weights = start(config).weights
    assert all(np.abs(a - b).max() < 1e-20 for a, b in zip(weights, begun, strict=True))
    other = start(dataclasses.replace(config, initial_seed=4)).weights
    assert (weights[0] != other[0]).any()


def test_evaluation_on_a_task_gives_the_scores_of_training(finetuned, texts, tmp_path, capsys):
    _, workdir, results = finetuned
    model = str(workdir / "model")
    scores, report = evaluate.on_task(model, str(texts), output=str(tmp_path / "scores"))
    assert scores == pytest.approx(results.dev)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"reads {texts} for {model}"  # before anything is read
    assert f"{results.dev_examples}/{results.dev_examples}" in said[-1]
    assert "## Confusion matrix" in report and "animal" in report
    assert {path.name for path in (tmp_path / "scores").glob("[!.]*")} == {
        "scores.json", "analysis.json", "report.md", "predictions.tsv",
    }  # fmt: skip
    assert json.loads((tmp_path / "scores" / "scores.json").read_text()) == scores
    of_file, _ = evaluate.on_task(model, str(texts / "dev.tsv"), split="test", max_examples=20)
    assert 0 <= of_file["accuracy"] <= 1
    with pytest.raises(UserError, match="elsewhere: no such file or folder"):
        evaluate.on_task(model, str(tmp_path / "elsewhere"))
    with pytest.raises(UserError, match="--split=train needs a folder"):
        evaluate.on_task(model, str(texts / "dev.tsv"), split="train")


def test_evaluate_refuses_a_fine_tuned_model(finetuned, data):
    with pytest.raises(UserError, match="no masked-LM head"):
        evaluate.run(str(finetuned[1] / "model"), str(data / "records"))
