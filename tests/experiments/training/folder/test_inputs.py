"""A run belongs to the data it read: other data is refused, moved data is not."""

import dataclasses
import json
import shutil

import majority
import pytest
import tiny_runs

from experiments.training import runs
from experiments.training.pretraining import pretrain_run
from experiments.training.settings.config import FinetuneConfig, Phase
from official_bert.common.errors import UserError

OTHER_DATA = r"run holds a run on other data: "


@pytest.fixture
def tuned(tmp_path):
    """Return a function that runs or asks a finished fine-tuning, and the folder of its data."""
    folder = tmp_path / "data"
    folder.mkdir()
    tiny_runs.write_labelled_texts(folder)
    config = FinetuneConfig("text_classification", str(folder), model=majority.NAME)

    def run(data_dir=folder, workdir=tmp_path / "run", overwrite=False, **fields):
        changed = dataclasses.replace(config, data_dir=str(data_dir), **fields)
        return runs.finetune(changed, workdir, progress=False, overwrite=overwrite)

    with majority.registered():
        yield run, folder


def test_a_finished_run_whose_data_changed_is_refused(tuned, tmp_path):
    run, data = tuned
    before = run()
    assert run() == before
    train, dev = ((data / f"{name}.tsv").read_text() for name in ("train", "dev"))
    (data / "dev.tsv").write_text(dev.replace("\tanimal", "\tother", 1))
    with pytest.raises(UserError, match=OTHER_DATA + rf"dev \({data}\) has changed\. Put back"):
        run()
    (data / "train.tsv").write_text("\n".join(train.splitlines()[:49]) + "\n")
    with pytest.raises(UserError, match=rf"train \({data}\) has changed; dev \({data}\) has"):
        run()
    (data / "train.tsv").write_text(train)
    (data / "dev.tsv").write_text(dev)
    assert run() == before
    (data / "train.tsv").write_text("\n".join(train.splitlines()[:49]) + "\n")
    assert run(overwrite=True).train_examples == 48


def test_moved_data_and_a_moved_run_are_the_same(tuned, tmp_path):
    run, data = tuned
    before = run()
    moved = data.rename(tmp_path / "elsewhere")
    (tmp_path / "run").rename(tmp_path / "moved run")
    after = run(moved, tmp_path / "moved run")
    assert after.dev == before.dev
    assert after.predictions_file.startswith(str(tmp_path / "moved run"))
    (moved / "dev.tsv").write_text((moved / "dev.tsv").read_text() + "one more\tother\n")
    with pytest.raises(UserError, match=rf"dev: {data} -> {tmp_path / 'copy'}, which holds"):
        run(shutil.copytree(moved, tmp_path / "copy"), tmp_path / "moved run")


def test_what_a_finished_run_left_has_to_be_there(tuned, tmp_path):
    run, _ = tuned
    run()
    (tmp_path / "run" / "predictions" / "dev" / "predictions.tsv").unlink()
    with pytest.raises(UserError, match=r"run is finished, but .*predictions.tsv: missing; put it"):
        run()


@pytest.mark.parametrize(
    "file, change, message",
    [
        ("results.json", {"predictions_file": 3}, "predictions_file: expected a text"),
        ("results.json", {"files": []}, "files: expected a JSON object"),
        ("results.json", {"files": {"report": None}}, "files: report: expected a text"),
        ("config.json", {"inputs": []}, "inputs: expected a JSON object"),
        ("config.json", {"inputs": {"dev": 3}}, "inputs: dev: expected a JSON object"),
        ("config.json", {"inputs": {"dev": {"place": ""}}}, "inputs: dev: digest is missing"),
    ],
)
def test_a_finished_run_that_was_changed_by_hand_is_refused(tuned, tmp_path, file, change, message):
    run, _ = tuned
    run()
    path = tmp_path / "run" / file
    values = json.loads(path.read_text()) | change
    del values["checksum"]
    path.write_text(json.dumps(values))
    with pytest.raises(UserError, match=f"run/{file}: {message}"):
        run()


def test_a_finished_run_is_not_taken_for_one_that_left_more(tuned):
    run, data = tuned
    shutil.copy(data / "dev.tsv", data / "test.tsv")
    run()
    for _ in range(2):  # the refused call leaves no trace
        with pytest.raises(UserError, match=r"finished, but ran without --config.predict_test=T"):
            run(predict_test=True)
    before = run(overwrite=True, predict_test=True)
    assert "test predictions" in before.files and run() == before
    (data / "test.tsv").write_text((data / "train.tsv").read_text())
    with pytest.raises(UserError, match=OTHER_DATA + r"test \(.*\) has changed"):
        run(predict_test=True)


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """(folder with the records of a pre-training, its configuration); it ran in `run` there."""
    folder = tmp_path_factory.mktemp("inputs")
    shutil.copytree(data / "short", folder / "short")
    shutil.copy(data / "vocab.txt", folder / "vocab.txt")
    phases = (Phase(str(folder / "short"), 16, 4, str(folder / "short")),)
    config = tiny_runs.pretrain_config(folder, phases=phases)
    runs.pretrain(config, folder / "run", progress=False)
    return folder, config


def changed(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return text


def test_other_records_vocabulary_or_held_out_text_are_refused(trained, data, tmp_path):
    folder, config = trained
    runs.pretrain(config, folder / "run", progress=False)
    text = changed(folder / "vocab.txt", "\ncat\n", "\ncat \n")
    with pytest.raises(UserError, match=OTHER_DATA + r"vocab \(.*vocab.txt\) has changed\. Put"):
        runs.pretrain(config, folder / "run", progress=False)
    (folder / "vocab.txt").write_text(text)
    other = tiny_runs.make_records(tmp_path, seed=1)
    for field in ("records", "heldout_records"):
        phase = dataclasses.replace(config.phases[0], **{field: str(other / "short")})
        with pytest.raises(UserError, match=OTHER_DATA + rf"phases.0.{field}: .* -> .*something"):
            runs.pretrain(
                dataclasses.replace(config, phases=(phase,)), folder / "run", progress=False
            )


def test_a_finished_run_without_its_model_is_said(trained, tmp_path):
    folder, config = trained
    for name, message in (("model", "model: missing"), ("model/vocab.txt", "vocab.txt: missing")):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(folder / "run", tmp_path / "run")
        gone = tmp_path / "run" / name
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
        with pytest.raises(UserError, match=rf"run is finished, but .*{message}.*; put it"):
            runs.pretrain(config, tmp_path / "run", progress=False)


def test_data_that_changes_while_it_is_read_gives_no_results(trained, tmp_path, monkeypatch):
    folder, config = trained
    measure, kept = pretrain_run.Evaluator._measure, []

    def measure_and_change(evaluator, step):
        kept.append(changed(folder / "vocab.txt", "\ncat\n", "\nmouse\n"))
        return measure(evaluator, step)

    with monkeypatch.context() as patch:
        patch.setattr(pretrain_run.Evaluator, "_measure", measure_and_change)
        with pytest.raises(UserError, match=r"while the run was reading, vocab .* has changed"):
            runs.pretrain(config, tmp_path / "run", progress=False)
    assert not (tmp_path / "run" / "results.json").exists()
    (folder / "vocab.txt").write_text(kept[0])
    assert runs.pretrain(config, tmp_path / "run", progress=False).steps == 4


def test_an_interrupted_run_goes_on_with_the_same_held_out_records_only(trained, data, tmp_path):
    folder, config = trained
    shutil.copytree(folder / "run", tmp_path / "run")
    (tmp_path / "run" / "results.json").unlink()
    other = tiny_runs.make_records(tmp_path, seed=2)
    phase = dataclasses.replace(config.phases[0], heldout_records=str(other / "short"))
    with pytest.raises(UserError, match=OTHER_DATA + r"phases.0.heldout_records"):
        runs.pretrain(
            dataclasses.replace(config, phases=(phase,)), tmp_path / "run", progress=False
        )
    assert runs.pretrain(config, tmp_path / "run", progress=False).steps == 4
