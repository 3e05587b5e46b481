"""`make reproduce` in miniature: both of its tables, cell by cell in this process."""

import dataclasses
import re
from pathlib import Path

import pytest

from data_prep.jobs.locks import exclusive
from experiments.configs.series import RANDOM
from experiments.tables.planning.ablation import Text
from experiments.tables.planning.plan import plan_table
from experiments.tables.reporting import assemble, report
from experiments.tables.run import cells
from experiments.tables.run.grid import Grid
from experiments.tables.run.pool import run_cell
from experiments.training.settings.config_files import load_config
from official_bert.config import BertConfig


def run(ablation, folder):
    """Return (results, text at the end) of a table whose cells are run here, one after the
    other."""
    planned = plan_table(ablation)
    grid = Grid(planned.cells, folder / "cells")
    for name, cell in grid.cells.items():
        at = grid.folder(name)
        at.mkdir(parents=True)
        with exclusive(at) as lock:
            status = run_cell(cells.run_cell, cell.kind, grid.resolved(name), at, lock)
        assert status.state == "finished", (name, status.reason)
    results = assemble.assemble(ablation, planned, grid, "a command")
    report.write(results, folder)
    return results, report.text(results, folder)


def small(column, **changes):
    return column.changed(max_train_examples=48, max_dev_examples=40, **changes)


BERT = BertConfig(800, 16, 1, 2, 32, max_position_embeddings=64)
NOVEL, OTHER = Text(("sample:conrad_almayer_1895",)), Text(("sample:chesterton_thursday_1908",))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Return (results, text, the model folder) of the first part."""
    folder = tmp_path_factory.mktemp("path")
    table = load_config("path")
    [variant] = table.variants
    pretrain = dataclasses.replace(
        variant.pretrain, bert=BERT, train_batch_size=32, learning_rate=1e-2,
        phases=(dataclasses.replace(variant.pretrain.phases[0], num_train_steps=60),),
        num_warmup_steps=5, max_heldout_examples=64,
    )  # fmt: skip
    table = dataclasses.replace(
        table,
        variants=(dataclasses.replace(variant, pretrain=pretrain),),
        corpus=dataclasses.replace(table.corpus, texts=(NOVEL,), vocab_size=800),
        columns=(table.columns[0], small(table.columns[1])),
    )
    results, told = run(table, folder)
    [model] = (folder / "cells").glob("pretrain-*/model")
    return results, told, str(model)


def test_the_path_ends_with_a_loss_that_fell_and_answers_to_text(path):
    results, told, _ = path
    [curve] = results.pretraining_curves
    losses = [loss for _, loss in curve.training]
    assert losses[0] > losses[-1] + 0.3
    assert len(results.exports[0]["answers"]) == 5
    assert "SavedModel: " in told and "Claims" not in told


@pytest.mark.slow
def test_the_rows_of_table_5_begin_with_their_checkpoints(path, tmp_path):
    table, model = load_config("table5:checkpoints"), path[2]
    qnli, names, cloze = table.columns
    asked = dataclasses.replace(cloze.question, max_examples=64)
    variants = [
        dataclasses.replace(
            variant,
            seeds=(1, 2),
            checkpoints=() if variant.random_init else (model, model),
            pretrain=dataclasses.replace(variant.pretrain, bert=BERT),
        )
        for variant in table.variants
    ]
    texts = (NOVEL, dataclasses.replace(OTHER, heldout=True))
    table = dataclasses.replace(
        table,
        variants=tuple(variants),
        columns=(small(qnli), small(names), dataclasses.replace(cloze, question=asked)),
        corpus=dataclasses.replace(table.corpus, texts=texts, vocab=model),
    )
    results, told = run(table, tmp_path)
    # Equal checkpoints share cells: records, two tasks from either start, two seeds.
    assert results.cells["finished"] == 1 + 2 * 2 * 2 + 3 * 2
    rows = {row.label: row.cells for row in results.rows}
    assert rows["BERT"]["QNLI"].paper == 88.4 and not rows[RANDOM]["cloze"].scores
    assert rows["BERT"]["QNLI"].scores.values == rows["No NSP"]["QNLI"].scores.values
    assert "3 pre-trainings" not in told and "2 pre-trainings, taken as checkpoints" in told
    *_, first, second, where = [line for line in told.splitlines() if line]
    assert first.startswith("Reproduced, ") and second.startswith("The others: ")
    assert where == f"Report:     {tmp_path / 'report.html'}"


def test_the_makefile_names_configurations_that_there_are():
    text = (Path(__file__).parents[2] / "Makefile").read_text()
    recipe = text[text.index("\nreproduce:") : text.index("\ntest:")]
    named = re.findall(r"--config=(\S+)", recipe)
    assert named == ["path", "table5:checkpoints", "table5:quickstart"]
    for name in named:
        assert load_config(name).scale in (name.partition(":")[2], "smoke")
    [night] = re.findall(r"report --workdir=(\S+)", recipe)
    assert (Path(__file__).parents[2] / night / "results.json").exists()
