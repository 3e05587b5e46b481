"""Plans: the cells of a table, what they share, what is in their keys."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

import official_bert
from experiments import ablate
from experiments.configs import scales
from experiments.tables.judging import archives, measures
from experiments.tables.planning import ablation as ablation_parts
from experiments.tables.planning.plan import plan_table
from experiments.tables.planning.repetitions import PlannedRun, Repetition
from experiments.tables.reporting import assemble
from experiments.tables.run.cells import TRAININGS
from experiments.tables.run.grid import Cell, Grid
from experiments.training.finetuning import example_scores
from experiments.training.folder.run_results import CellResults, HeldoutResults, of_cell
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.config_files import load_config
from experiments.training.settings.config_values import changes_dict, from_dict
from experiments.training.start.initial_state import sizes_of
from official_bert.common.errors import UserError
from official_bert.common.files import write_text


def test_models_of_a_series_branch_off_one_trunk_a_seed():
    made = plan_table(load_config("series:smoke"))
    branches = {c.name: c for c in made.cells if c.kind == "pretrain" and "BERT, " in c.name}
    needed = {n: [x for x in c.needs if "pretrain" in x] for n, c in branches.items()}
    assert needed == {
        "pretrain/BERT, trunk of 8M/1": [],
        "pretrain/BERT, 8M/1": ["pretrain/BERT, trunk of 8M/1"],
        "pretrain/BERT, trunk of 33M/1": ["pretrain/BERT, trunk of 8M/1"],
        "pretrain/BERT, 33M/1": ["pretrain/BERT, trunk of 33M/1"],
    }
    ends = [c.config["phases"][-1]["num_train_steps"] for c in branches.values()]
    assert ends == [23, 30, 90, 120]
    assert [c.config["num_decay_steps"] for c in branches.values()] == [0, 7, 0, 30]
    exact = load_config("series:131m").column("SQuAD exact match")
    assert (exact.metric, exact.finetune.max_dev_examples) == ("exact_match", 0)


def test_a_column_of_another_metric_shares_the_runs():
    table = load_config("series:smoke")
    other = dataclasses.replace(table.column("SNLI"), label="again", metric="accuracy")
    made = plan_table(dataclasses.replace(table, columns=(*table.columns, other)))
    assert made.runs["BERT, 8M", "again"] == made.runs["BERT, 8M", "SNLI"]


def test_table5_rows_share_pretrainings_and_differ_in_what_the_paper_says():
    ablation = load_config("table5:smoke")
    bert, no_nsp, ltr = (ablation.variant(n).pretrain for n in ("BERT", "No NSP", "LTR & No NSP"))
    assert dataclasses.replace(bert, objectives=("masked_lm",)) == no_nsp
    assert dataclasses.replace(no_nsp, bert=ltr.bert, objectives=ltr.objectives) == ltr
    assert ltr.objectives == ({"name": "next_token", "fraction": 0.3},)
    whole = load_config("table5:paper").variant("LTR & No NSP")
    assert whole.pretrain.objectives == ("next_token",)  # all of them: one spelling
    made = plan_table(ablation)
    assert len(made.pretrains) == 3
    bilstm = [c for c in made.cells if "BiLSTM" in c.name]
    assert bilstm and all(c.config["bilstm"] for c in bilstm)
    assert all(c.needs == (made.pretrains["LTR & No NSP", 1],) for c in bilstm)


def test_a_variant_whose_objectives_do_not_fit_its_direction_is_refused():
    ablation = load_config("table5:smoke", {"variants.2.pretrain.objectives": "masked_lm"})
    with pytest.raises(UserError, match="LTR & No NSP: objectives: masked_lm is .* next_token in"):
        plan_table(ablation)


def test_random_rows_start_where_the_trained_ones_did():
    ablation = load_config("table5:smoke")
    random = dataclasses.replace(ablation.variant("random"), seeds=(1, 7))
    variants = [random if v.name == "random" else v for v in ablation.variants]
    made = plan_table(dataclasses.replace(ablation, variants=tuple(variants)))
    runs = made.runs["random initialisation", "SNLI"]
    configs = {cell.name: cell.config for cell in made.cells}
    assert [dataclasses.astuple(run.repetition)[:2] for run in runs] == [(1, 1), (7, 1)]
    assert [configs[r.cell]["initial_seed"] for r in runs] == [1, 7]
    # Restarts share order and head between rows, not between pre-trainings.
    assert [configs[r.cell]["seed"] for r in runs] == [1001, 7001]
    assert configs[made.runs["BERT", "SNLI"][0].cell]["seed"] == 1001


def test_a_variant_of_checkpoints_pretrains_nothing(tmp_path):
    ablation = load_config("table5:smoke")
    places = [str(tmp_path / name) for name in ("one", "two")]
    own = official_bert.checkpoints.embedded.find("tiny-wikipedia")
    for place in places:
        shutil.copytree(own, place)
    with open(tmp_path / "two" / "model.json", "a") as file:
        file.write("\n")  # another file
    trained = ablation.variants[0]
    same = dataclasses.replace(trained.pretrain, bert=sizes_of("tiny-wikipedia"))
    corpus = dataclasses.replace(ablation.corpus, vocab="tiny-wikipedia")

    def made(places, pretrain=same):
        given = dataclasses.replace(trained, pretrain=pretrain, seeds=(3, 8))
        given = dataclasses.replace(given, checkpoints=tuple(places))
        variants = (given, *ablation.variants[1:])
        return plan_table(dataclasses.replace(ablation, variants=variants, corpus=corpus))

    plans = [made(places), made(places[::-1])]
    (tmp_path / "one" / "README.md").write_text("a card, which changes nothing")
    plans.append(made([places[0], "tiny-wikipedia"]))
    first = {cell.name: cell for cell in plans[0].cells}
    assert "vocabulary" not in first and not any("pretrain/BERT" in name for name in first)
    assert ("BERT", 3) not in plans[0].pretrains and ("BERT", "held-out loss") not in plans[0].runs
    runs = plans[0].runs["BERT", "SNLI"] + plans[0].runs["BERT", "cloze"]
    assert [run.repetition.pretrain_seed for run in runs] == [3, 8, 3, 8]
    assert [first[run.cell].config["model"] for run in runs] == 2 * places
    keys = [Grid(one.cells, tmp_path / "cells").key for one in plans]
    for cell in (runs[0].cell, runs[2].cell):  # a checkpoint's files count
        assert keys[0](cell) != keys[1](cell) and keys[0](cell) == keys[2](cell)
    assert first["records/length 64"].config["vocab"] == str(own / "vocab.txt")
    phases = tuple(
        dataclasses.replace(same.phases[0], records="of another table", max_seq_length=0, **fields)
        for fields in ({}, {"train_batch_size": 5})
    )
    given = dataclasses.replace(trained, pretrain=dataclasses.replace(same, phases=phases))
    given = dataclasses.replace(given, seeds=(3,), checkpoints=("tiny-wikipedia",))
    table = dataclasses.replace(ablation, variants=(given, *ablation.variants[1:]))
    facts = assemble._scale_facts(table, plan_table(table), {}).models[0].pretraining
    assert (facts.batch_sizes, facts.lengths) == ([same.train_batch_size, 5], [0, 0])
    with pytest.raises(UserError, match="variant BERT: 1 checkpoints for 2 seeds"):
        made(places[:1])
    with pytest.raises(UserError, match="nowhere is missing; the package has one model a row"):
        made(["nowhere", places[0]])
    with pytest.raises(UserError, match="variant BERT: .*one is not a model of its pretrain"):
        made(places, trained.pretrain)


def test_a_cloze_column_asks_every_pretrained_model_once():
    ablation = load_config("table5:smoke")
    asked = ablation_parts.Cloze("length 64")
    columns = [
        ablation_parts.Column(metric, None, metric, question=asked)
        for metric in ("cloze_loss", "cloze_accuracy")
    ]
    made = plan_table(dataclasses.replace(ablation, columns=tuple(columns), claims=(), exports=()))
    found = [cell for cell in made.cells if cell.kind == "cloze"]
    assert {cell.name for cell in found} == {
        f"cloze/length 64/{name}/1" for name in ("BERT", "No NSP", "LTR & No NSP")
    }
    for cell in found:
        pretrained = cell.name.replace("cloze/length 64", "pretrain")
        assert set(cell.needs) == {pretrained, "records/length 64"}
    # Neither random weights nor a model with a layer that pre-training did not have.
    assert len(made.runs) == 2 * 3
    assert made.runs["BERT", "cloze_loss"] == made.runs["BERT", "cloze_accuracy"]
    with pytest.raises(UserError, match="column cloze_loss: records='length 8'; it is"):
        unknown = dataclasses.replace(columns[0], question=ablation_parts.Cloze("length 8"))
        dataclasses.replace(ablation, columns=(unknown,), claims=(), exports=())


def test_a_cloze_score_is_read_from_its_cell(tmp_path):
    cell = Cell("cloze/x/BERT/1", "cloze", {})
    column = ablation_parts.Column(
        "cloze", None, "cloze_loss", percent=False, question=ablation_parts.Cloze("x")
    )
    result = HeldoutResults(heldout={"cloze_loss": 3.0}, baseline={}, examples=64)
    planned = PlannedRun(cell.name, Repetition(1))
    assert assemble._run(column, planned, result, Grid((cell,), tmp_path)).value == 3.0


def keys(ablation, folder):
    """Return {name of a cell: its key}."""
    grid = Grid(plan_table(ablation).cells, folder)
    return {name: grid.key(name) for name in grid.cells}


def test_folds_are_cells_of_their_own_and_change_no_other_key(tmp_path):
    ablation = load_config("table5:smoke")
    folds = dataclasses.replace(ablation.column("SNLI"), label="folds", folds=2)
    more = dataclasses.replace(ablation, columns=(*ablation.columns, folds))
    assert keys(ablation, tmp_path).items() < keys(more, tmp_path).items()
    made = plan_table(more)
    names = [run.cell for run in made.runs["BERT", "folds"][:2]]
    assert names == [f"finetune/folds/BERT/1-1/fold-{i}" for i in (1, 2)]
    (second,) = (cell for cell in made.cells if cell.name == names[1])
    assert second.config["task_options"] == {"folds": 2, "fold": 2}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"metric": "macro_f1"}, "have no macro_f1 of all"),
        ({"folds": 9999}, "at most so many folds"),
    ],
)
def test_folds_that_cannot_be_scored_are_refused_before_any_training(wrong, told):
    ablation = load_config("table5:smoke")
    column = ablation.column("SNLI").changed(**{"folds": 2} | wrong)
    with pytest.raises(UserError, match=told):
        plan_table(dataclasses.replace(ablation, columns=(column,), claims=()))


def test_folds_are_scored_together(tmp_path):
    # True positives, false positives, false negatives of each example.
    parts = {"a": [[1, 0, 0], [0, 0, 1]], "b": [[1, 0, 0], [0, 1, 0], [0, 0, 0]]}
    cells = [tmp_path / name for name in parts]
    for cell in cells:
        sums = np.array(parts[cell.name], float)
        example_scores.write(cell / archives.SCORES, {"f1": ("f1", sums)})
        write_text(cell / archives.RESULTS, "{}")
    column = ablation_parts.Column("MRPC", FinetuneConfig(), "f1", folds=2)
    run = assemble._run(column, PlannedRun("b", Repetition(3, 1)), CellResults(), None, cells)
    assert run.seeds == (3, 1) and run.value == pytest.approx(100 * 2 * 2 / (2 * 2 + 1 + 1))
    whole = measures.influence("f1", np.array([*parts["a"], *parts["b"]], float))
    again = archives._influence(str(tmp_path), ["a", "b"], "f1", tmp_path)
    assert run.influence.tolist() == again.tolist() == whole.tolist()


def test_columns_of_two_metrics_share_their_run(data_dir, monkeypatch):
    monkeypatch.setenv("BERT_DATA_DIR", str(data_dir))
    ablation = load_config("table2:smoke", {"data_dir": str(data_dir)})
    made = plan_table(ablation)
    runs = [made.runs[ablation.rows[0].label, label] for label in ("dev EM", "dev F1")]
    assert runs[0] == runs[1]


def test_keys_follow_data_and_options_not_bookkeeping(tmp_path):
    ablation = load_config("table5:smoke")
    base = keys(ablation, tmp_path)
    variants = list(ablation.variants)
    watched = dataclasses.replace(variants[0].pretrain, log_every=7, save_every=3)
    variants[0] = dataclasses.replace(variants[0], pretrain=watched)
    assert keys(dataclasses.replace(ablation, variants=tuple(variants)), tmp_path) == base
    slower = dataclasses.replace(variants[0].pretrain, learning_rate=1e-5)
    variants[0] = dataclasses.replace(variants[0], pretrain=slower)
    changed = keys(dataclasses.replace(ablation, variants=tuple(variants)), tmp_path)
    different = {name for name in base if base[name] != changed[name]}
    assert "pretrain/BERT/1" in different and "finetune/SNLI/BERT/1-1" in different
    assert "pretrain/No NSP/1" not in different
    assert not any("random" in name for name in different)


def test_keys_do_not_change_where_options_are_added_with_their_defaults():
    made = plan_table(load_config("table5:smoke"))
    for cell in made.cells:
        if cell.kind in TRAININGS:
            config = from_dict(TRAININGS[cell.kind], cell.config)
            assert changes_dict(config) == cell.config and len(cell.config) < len(vars(config)) / 2
    assert made.cells[1].config["options"]["dupe_factor"] == 1
    assert "same_rate" not in made.cells[1].config["options"]


def test_keys_follow_the_content_of_a_given_vocabulary_not_its_place(tmp_path):
    ablation, found = load_config("table5:smoke"), {}
    for name, words in (("here", "a b"), ("there", "a b"), ("other", "a c")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vocab.txt").write_text("\n".join(["[UNK]", *words.split()]))
        corpus = dataclasses.replace(ablation.corpus, vocab=str(tmp_path / name / "vocab.txt"))
        found[name] = keys(dataclasses.replace(ablation, corpus=corpus), tmp_path)
    assert found["here"] == found["there"]
    differ = {cell for cell, key in found["here"].items() if key != found["other"][cell]}
    assert {"pretrain/BERT/1", "finetune/SNLI/random initialisation/1-1"} <= differ


def test_missing_data_folder_is_a_clear_error():
    ablation = dataclasses.replace(load_config("table5:cpu"), data_dir="")
    with pytest.raises(UserError, match="set BERT_DATA_DIR or --config.data_dir"):
        plan_table(ablation)


@pytest.mark.parametrize("package", ["package_of_nobody", "package_of_nobody.models", ".x"])
def test_a_checkpoint_of_a_package_that_is_missing_is_refused(package):
    table = load_config("table5:smoke")
    missing = ablation_parts.Variant("missing", checkpoint=f"package:{package}/bert")
    row = ablation_parts.Row("missing", "missing")
    changed = {"variants": (*table.variants, missing), "rows": (row,), "claims": ()}
    with pytest.raises(UserError, match=rf"no such package \(pip install {package}\)"):
        plan_table(dataclasses.replace(table, **changed, exports=()))


def test_a_column_of_a_mixture_needs_one():
    table = load_config("table5:smoke")
    column = table.column("SNLI")
    tuned = dataclasses.replace(column.finetune, data_dir="@nli//mixture")
    with pytest.raises(
        UserError, match="column SNLI: data_dir=@nli//mixture, and the table makes no nli"
    ):
        plan_table(dataclasses.replace(table, columns=(column.changed(finetune=tuned),), claims=()))


def test_fine_tuning_runs_where_pretraining_does():
    paper = scales.get_scale("paper")
    for column in paper.columns.values():
        assert column.finetune.distribute == paper.bert.distribute == "tpu"
        assert column.finetune.precision == paper.bert.precision == "mixed_bfloat16"


def test_two_runs_of_one_name_are_not_taken_for_one(tmp_path):
    table = load_config("table5:smoke")
    kept = dataclasses.replace(table.variants[0].pretrain, snapshots=(10,))
    variant = dataclasses.replace(table.variants[0], pretrain=kept)
    rows = (table.row("BERT"), ablation_parts.Row("early", "BERT", snapshot=10))
    asked = [ablation_parts.Cloze("length 64", count) for count in (0, 10)]
    columns = [
        ablation_parts.Column(str(one.max_examples), None, "cloze_loss", question=one)
        for one in asked
    ]
    parts = {"variants": (variant,), "rows": rows, "claims": (), "exports": ()}
    table = dataclasses.replace(table, **parts, columns=tuple(columns))
    runs = {key: run.cell for key, (run,) in plan_table(table).runs.items()}
    assert len(set(runs.values())) == 4
    assert runs["early", "0"] == "cloze/length 64/BERT/1/step-10"
    assert runs["BERT", "10"] == "cloze/length 64/BERT/1/10"
    column = load_config("table5:smoke").column("SNLI")
    twins = (column.changed(label="x/y"), column.changed(label="x", learning_rate=1e-3))
    rows = (
        ablation_parts.Row("BERT", "BERT"),
        ablation_parts.Row("y/BERT", "BERT", {"bilstm": True}),
    )
    twice = plan_table(dataclasses.replace(table, columns=twins, rows=rows))
    with pytest.raises(UserError, match="two cells are named finetune/x/y/BERT/1-1"):
        Grid(twice.cells, tmp_path)


@pytest.mark.parametrize(
    "checkpoint, why",
    [
        ("package:numpy/linalg", None),
        ("tiny-wikipedia", None),
        ("package:no_such/folder", "there is no such package"),
        ("package:numpy/no_such", "no_such is missing"),
        ("/no/model", "/no/model is missing"),
    ],
)
def test_an_optional_checkpoint_is_looked_for_where_it_is_read(checkpoint, why):
    table = load_config("table5:smoke")
    optional = ablation_parts.Variant("given", checkpoint=checkpoint, optional=True)
    rows = (ablation_parts.Row("given", "given"),)
    parts = {"variants": (optional,), "rows": rows, "claims": (), "exports": ()}
    told = plan_table(dataclasses.replace(table, **parts)).left_out.get("given")
    assert told is None if why is None else why in told


def test_an_export_keeps_the_model_of_a_run_that_two_columns_share():
    table = load_config("table5:smoke")
    other = table.column("SNLI").changed(label="again")
    exports = (ablation_parts.Export("BERT", "again"), ablation_parts.Export("gone", "again"))
    gone = ablation_parts.Variant("gone", checkpoint="/gone", optional=True)
    made = plan_table(dataclasses.replace(
        table, columns=(table.column("SNLI"), other), claims=(), exports=exports,
        rows=(table.row("BERT"), ablation_parts.Row("gone", "gone")),
        variants=(*table.variants, gone),
    ))  # fmt: skip
    cells = {cell.name: cell for cell in made.cells}
    (tuned,) = cells["export/again/BERT"].needs
    assert made.runs["BERT", "SNLI"] == made.runs["BERT", "again"] and len(made.exports) == 1
    assert from_dict(FinetuneConfig, cells[tuned].config).save_model


def test_a_run_without_the_columns_score_is_a_hole(tmp_path):
    table = load_config("table5:smoke")
    column = table.columns[0].changed(metric="next_sentence_loss")
    table = dataclasses.replace(table, columns=(column,), claims=(), exports=())
    made = plan_table(table)
    grid = Grid(made.cells, tmp_path)
    folder = grid.folder(made.pretrains["BERT", 1])
    results = {"heldout": {"masked_lm_loss": 5.0}, "baseline": {}, "examples": 1, "steps": 1}
    results |= {"tokens": 1, "train_seconds": 1, "curve": [], "parameters": 1}
    write_text(folder / "results.json", json.dumps(results | {"seconds": 1, "ended": 1}))
    cell = assemble.assemble(table, made, grid).row("BERT").cells[column.label]
    assert (cell.scores, cell.hole) == (None, "its runs have no next_sentence_loss")


def test_a_work_folder_belongs_to_one_table_and_scale(tmp_path):
    ablate._check_config(tmp_path, load_config("table5:smoke"))
    ablate._check_config(tmp_path, load_config("table5:smoke"))
    with pytest.raises(UserError, match='scale: "smoke" -> "quickstart"'):
        ablate._check_config(tmp_path, load_config("table5:quickstart"))


@pytest.mark.parametrize(
    "kind, values, told",
    [
        ("finetune", {"task": "t", "main_metric": "f1", "dev": {"f1": 0.5, "accuracy": 0.7},
                      "baseline": {}, "train_examples": 1, "dev_examples": 1, "steps": 1},
         ", dev f1 50.0"),
        ("cloze", {"heldout": {"cloze_loss": 4.2}, "baseline": {}, "examples": 1},
         ", held-out loss 4.200"),
        ("nli", {"train": 300, "dev": 60}, ""),  # examples
    ],
)  # fmt: skip
def test_progress_names_the_score_of_cells_that_have_one(kind, values, told):
    result = of_cell(kind, values | {"seconds": 1, "ended": 2}, "cell")
    assert ablate._headline(result) == told
