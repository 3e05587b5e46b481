"""Runs with a teacher, from pre-training to a fine-tuned student, on made-up texts."""

import json
import shutil

import pytest
import tiny_runs

from data_prep.records import open_records
from experiments import evaluate, finetune, pretrain
from experiments.beyond.distil.distillation import taught
from experiments.beyond.distil.teachers import Teacher
from experiments.configs.columns import HELDOUT_LOSS
from experiments.tables.planning.ablation import Ablation, Corpus, RecordSpec, Row, Text, Variant
from experiments.tables.planning.cost import estimate
from experiments.tables.planning.plan import plan_table
from experiments.tables.run.grid import Grid
from experiments.training.folder.checkpointing import Checkpoints
from experiments.training.pretraining import heldout, pretrain_run
from experiments.training.settings.config import FinetuneConfig, Phase
from experiments.training.settings.options import replaced
from experiments.training.start import finetuning_preflight, preflight
from experiments.training.step import evaluation
from official_bert import BertPretrainer
from official_bert.checkpoints import model_folder
from official_bert.common.errors import UserError

DISTILBERT = ({"name": "masked_lm", "weight": 2.0}, "soft_targets", "cosine_states")
STUDENT = tiny_runs.bert(type_vocab_size=0, pooler_activation="none")


@pytest.fixture(scope="module")
def teacher(data, tmp_path_factory):
    """Return the model folder of a two-layer teacher."""
    workdir = tmp_path_factory.mktemp("teacher")
    config = tiny_runs.short_config(data, bert=tiny_runs.bert(num_hidden_layers=2))
    return pretrain.run(config, workdir, progress=False).model


def students_config(data, teacher, **fields):
    values = {"bert": STUDENT, "objectives": DISTILBERT, "teacher": teacher}
    return tiny_runs.short_config(data, **{**values, "teacher_layers": "even", **fields})


@pytest.fixture(scope="module")
def student(data, teacher, tmp_path_factory):
    """Return (work folder, results) of a run without interruption."""
    workdir = tmp_path_factory.mktemp("student")
    return workdir, pretrain.run(students_config(data, teacher), workdir, progress=False)


def test_what_a_student_leaves(student, teacher, data):
    workdir, results = student
    held = results.heldout
    assert list(held)[:2] == ["masked_lm_loss", "masked_lm_perplexity"]
    assert {"soft_target_loss", "teacher_agreement", "cosine_loss"} <= set(held)
    loaded = model_folder.load(workdir / "model")
    assert [one.to_spec() for one in loaded.model.objectives] == [DISTILBERT[0]]
    arrays, _ = Checkpoints(workdir / "checkpoints").load(8)
    total = sum(array.size for name, array in arrays.items() if "adamw" not in name)
    assert results.parameters <= total < results.parameters + 20  # and means, no teacher
    bert, rows = model_folder.load(teacher).config, 8 * 8
    tokens = rows * tiny_runs.LENGTH
    expected = bert.encoder_flops(rows, tiny_runs.LENGTH) + bert.head_flops(tokens)
    assert results.more["teacher"]["flops"] == expected
    measured = evaluate.run(str(workdir / "model"), str(data / "records"), max_examples=16)
    assert set(measured) == {"examples", "masked_lm_loss", "masked_lm_perplexity",
                             "masked_lm_accuracy"}  # fmt: skip


def test_a_run_that_died_goes_on_to_the_same_bits(data, teacher, student, tmp_path, monkeypatch):
    take = pretrain_run.PretrainingBatches.take

    def dying(batches, trainer, step, count):
        if step >= 5:
            raise RuntimeError("power failure")
        return take(batches, trainer, step, count)

    config = students_config(data, teacher)
    monkeypatch.setattr(pretrain_run.PretrainingBatches, "take", dying)
    with pytest.raises(RuntimeError, match="power failure"):
        pretrain.run(config, tmp_path, progress=False)
    monkeypatch.undo()
    assert Checkpoints(tmp_path / "checkpoints").steps() == [4]
    assert pretrain.run(config, tmp_path, progress=False).heldout == student[1].heldout
    runs = [Checkpoints(path / "checkpoints").load(8)[0] for path in (tmp_path, student[0])]
    for name, array in runs[0].items():
        assert array.tobytes() == runs[1][name].tobytes(), name


@pytest.mark.slow
def test_another_teacher_is_another_step(data, teacher, student, tmp_path):
    """A program that was compiled for one teacher is not used with the next: the held-out cosine is
    that with the run's own teacher, computed once more without any of it."""
    known = model_folder.load(teacher)
    other = BertPretrainer(known.config, seed=9)
    model_folder.save(tmp_path / "other", other, known.tokenizer)
    config = students_config(data, str(tmp_path / "other"))
    results = pretrain.run(config, tmp_path / "run", progress=False)
    assert results.more["teacher"]["digest"] != student[1].more["teacher"]["digest"]
    encoder = model_folder.load(tmp_path / "run" / "model").encoder
    model = BertPretrainer(encoder, taught(["cosine_states"], Teacher(other)))
    found = heldout.measure(
        lambda batches: evaluation.means(evaluation.terms(model, batch) for batch in batches),
        model.objectives,
        open_records(data / "records"),
        16,
        config.max_heldout_examples,
    )
    assert found["cosine_loss"] == pytest.approx(results.heldout["cosine_loss"], rel=1e-4)


def test_tinybert_leaves_an_encoder(data, teacher, tmp_path):
    narrow = tiny_runs.bert(hidden_size=8)
    config = tiny_runs.short_config(
        data, 4, bert=narrow, objectives=("transformer_layers",), teacher=teacher
    )
    results = pretrain.run(config, tmp_path, progress=False)
    assert list(results.heldout) == ["attention_loss", "states_loss"]
    loaded = model_folder.load(tmp_path / "model")
    assert loaded.head == "none" and loaded.config == narrow


def test_fine_tuning_with_a_teacher(teacher, student, tmp_path):
    texts = tiny_runs.write_labelled_texts(tmp_path)
    config = FinetuneConfig(
        task="text_classification", data_dir=str(texts), model=teacher, max_seq_length=16,
        train_batch_size=16, learning_rate=1e-2, num_train_epochs=2.0, dropout=0.0,
    )  # fmt: skip
    taught = finetune.run(config, tmp_path / "teacher", progress=False).files["model"]
    pupil = str(student[0] / "model")
    config = replaced(config, model=pupil, teacher=taught, teacher_weight=1.0)
    results = finetune.run(config, tmp_path / "student", progress=False)
    assert results.more["teacher"]["flops"] > 0 and results.dev["accuracy"] > 0.5
    lines = [json.loads(x) for x in (tmp_path / "student" / "metrics.jsonl").open()]
    assert any("soft_loss" in line for line in lines)
    loaded = model_folder.load(results.files["model"])
    assert loaded.head == "classification" and loaded.config.type_vocab_size == 0
    with pytest.raises(UserError, match="must be fine-tuned for this task first: the model has"):
        finetuning_preflight.finetuning(replaced(config, teacher=teacher))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"teacher": ""}, "objective soft_targets: there is no teacher; give a model with"),
        ({"objectives": ("masked_lm",)}, "no objective learns from it; add soft_targets"),
        ({"teacher_layers": "0,5"}, "teacher_layers=0,5: 0,5 names 2 layers; the student needs 1"),
        ({"bert": tiny_runs.bert(hidden_size=8)}, "cosine_states: hidden_size is 8 in the student"),
        ({"bert": tiny_runs.bert(vocab_size=12), "vocab": "short"},
         "its vocabulary .39 entries. is not the student's .12 entries.; a student reads what"),
        ({"bert": "", "init_from": "the teacher"}, "with init_from or with teacher_layers"),
        ({"teacher": "nowhere/model"}, "--config.teacher=nowhere/model: no such folder"),
    ],
)  # fmt: skip
def test_teachers_that_do_not_fit(data, teacher, tmp_path, fields, message):
    values = {"teacher": teacher, **fields}
    if "vocab" in fields:
        values["vocab"] = str(tmp_path / "vocab.txt")
        pieces = [*tiny_runs.SPECIAL, *tiny_runs.WORDS[:7]]
        (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    if "init_from" in fields:
        values["init_from"] = teacher
    with pytest.raises(UserError, match=message):
        preflight.pretraining(students_config(data, **values))


def test_cells_know_their_teachers(data, teacher, tmp_path):
    """By its files, wherever they lie; or, of a teacher of the same table, by its cell's key."""

    def table(place, learning_rate=1e-2):
        fields = {"phases": (Phase("r", tiny_runs.LENGTH, 8),), "vocab": ""}
        base = tiny_runs.short_config(data, **fields, learning_rate=learning_rate)
        student = students_config(data, place, **fields, teacher_layers="")
        return Ablation(
            name="t", title="a table", scale="smoke",
            records=(RecordSpec(name="r", max_seq_length=tiny_runs.LENGTH),),
            variants=(Variant("bert", base), Variant("student", student)),
            columns=(HELDOUT_LOSS,), rows=(Row("student", "student"),),
            corpus=Corpus((Text((str(data / "text.txt"),)),), 0.1, vocab=str(data / "vocab.txt")),
        )  # fmt: skip

    def key(*arguments):
        return Grid(plan_table(table(*arguments)).cells, tmp_path).key("pretrain/student/1")

    copied = tmp_path / "copy"
    shutil.copytree(teacher, copied)
    assert key(teacher) == key(str(copied))
    with open(copied / "model.json", "a") as file:
        file.write("\n")
    assert key(teacher) != key(str(copied))
    assert key("@bert") == key("@bert") != key("@bert", 2e-2)
    found = plan_table(table("@bert"))
    estimates = estimate(found)
    works = [estimates[f"pretrain/{name}/1"].beside_flops for name in ("bert", "student")]
    assert works[0] == 0 < works[1]
    with pytest.raises(
        UserError, match="teacher @nobody: no variant nobody is pre-trained with seed 1"
    ):
        plan_table(table("@nobody"))
