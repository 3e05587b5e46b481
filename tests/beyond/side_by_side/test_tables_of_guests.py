"""Tables of systems beyond the paper, and their rows in the paper's tables."""

import dataclasses

import pytest

from experiments.beyond.elmo import recipe as elmo
from experiments.beyond.side_by_side import compared
from experiments.configs import scales, table7
from experiments.tables.planning import ablation as ablation_parts
from experiments.tables.planning import cost
from experiments.tables.planning.cost import pretraining_steps, total_flops
from experiments.tables.planning.plan import files_read, plan_table
from experiments.tables.reporting import assemble, paper
from experiments.tables.run.grid import Grid
from experiments.training.settings.config import FinetuneConfig, PretrainConfig
from experiments.training.settings.config_files import load_config
from experiments.training.settings.flops import LSTM_RATE
from experiments.training.start import initialization
from official_bert.common.errors import UserError


def test_the_family_at_equal_compute():
    ablation = load_config("family:smoke")
    made = plan_table(ablation)
    flops = {
        v.name: total_flops(pretraining_steps(v.pretrain))
        for v in ablation.variants
        if not v.random_init
    }
    equal = {name: one / flops["BERT"] for name, one in flops.items() if name != "left-to-right"}
    assert all(abs(share - 1) < 0.01 for share in equal.values()), equal
    assert len({v.pretrain.num_train_steps for v in ablation.variants}) > 3
    # Every model is asked what its head can say, and nothing else.
    rows = set(flops)
    assert {row for row, column in made.runs if column == "cloze"} == rows - {"ELECTRA"}
    pairs = {row for row, column in made.runs if column == "which first?"}
    assert pairs == {row for row, column in made.runs if column == "next sentence?"}
    assert pairs == {"BERT", "factorised tables", "shared layers", "sentence order", "ALBERT"}


@pytest.mark.slow
def test_a_row_whose_checkpoint_may_be_missing_is_left_out_by_name(data_dir, tmp_path):
    checkpoints = {"variants.0.checkpoint": "tiny-wikipedia", "variants.1.checkpoint": "none"}
    table = load_config("table7:cpu", {"data_dir": str(data_dir), **checkpoints})
    made = plan_table(table)
    assert made.left_out == {"ELMo": "left out, none is missing"}
    assert not [row for row, _ in made.runs if row == "ELMo"] and len(made.runs) == 7
    results = assemble.assemble(table, made, Grid(made.cells, tmp_path))
    assert results.rows[-1].cells["dev F1"].hole == made.left_out["ELMo"]


def test_table_7_has_a_row_of_elmo(monkeypatch, tmp_path):
    scale = dataclasses.replace(scales.get_scale("cpu"), data_dir=str(tmp_path))
    monkeypatch.setattr(table7, "get_scale", lambda name: scale)
    (tmp_path / "elmo").mkdir()
    for name in ("options.json", "weights.hdf5"):
        (tmp_path / "elmo" / name).write_text("{}")
    table = table7.get_config("cpu")
    assert table.rows[-1].finetune["features"] == "elmo"
    assert table.variant("ELMo").checkpoint == str(tmp_path / "elmo")
    assert [claim.name for claim in table.claims][-1] == "ELMo"
    assert paper.TABLES["table7"].number("ELMo", "dev F1") == 95.7


def test_what_table_1_compares_bert_with_has_its_compute():
    ablation = load_config("table1:smoke")
    trained = {v.name: v.pretrain for v in ablation.variants if v.pretrain}
    flops = {name: total_flops(pretraining_steps(config)) for name, config in trained.items()}
    assert all(abs(one / flops["tiny"] - 1) < 0.02 for one in flops.values())
    assert {"tiny", "OpenAI GPT", compared.BOTH, compared.STATES} == set(flops)
    bert, both = trained["tiny"].bert, trained["LTR and RTL, concatenated"].bert
    left_to_right = dataclasses.replace(bert, attention_direction="left_to_right")
    assert both.one_direction == left_to_right and both.hidden_size == 2 * bert.hidden_size
    assert "deeply bidirectional" in {claim.name for claim in ablation.claims}


def test_models_on_word_vectors_share_seeds_with_the_others(tmp_path):
    (tmp_path / compared.VECTORS).write_text("the 1 2\nof 3 4\n")
    scale = dataclasses.replace(scales.get_scale("smoke"), data_dir=str(tmp_path))
    column = dataclasses.replace(scale.columns["SST-2"], label="spam", seeds=(1, 2))
    empty = ablation_parts.Ablation("table1", "T", "smoke", columns=(column,))
    empty = dataclasses.replace(empty, data_dir=str(tmp_path))
    made = plan_table(compared.with_compared(empty, scale, (1, 2, 3)))
    runs = {row: [dataclasses.astuple(run.repetition)[:2] for run in made.runs[row, "spam"]]
            for row, _ in made.runs}  # fmt: skip
    learnt = [f"vectors/{kind}/{seed}" for kind in ("skip_gram", "cbow") for seed in (1, 2, 3)]
    assert [c.name for c in made.cells if c.kind == "vectors"] == learnt, "two rows share vectors"
    [cell] = [c for c in made.cells if c.name == f"finetune/spam/{compared.READ_CBOW}/2-1"]
    assert cell.config["word_vectors"] == "@vectors/cbow/2//vectors.txt"
    for row in (compared.BERT, compared.GPT, compared.READ, compared.AVERAGE, compared.READ_SAME):
        assert runs[row] == [(1, 1), (2, 1), (3, 1)]
    assert runs[compared.BOTH] == runs[compared.STATES] == [(1, 1)]
    [cell] = [c for c in made.cells if c.name == f"finetune/spam/{compared.STATES}/1-1"]
    assert [cell.config.get(name, "") for name in ("model", "elmo", "word_vectors")] == [
        *("bilstm_attention", f"@pretrain/{compared.STATES}/1//model", ""),
    ]
    vectors = tmp_path / compared.VECTORS
    assert str(vectors) in files_read(made)
    vectors.unlink()  # the same table, of which the plan leaves two rows out
    same = compared.with_compared(empty, scale, (1, 2, 3))
    assert [row.label for row in same.rows] == [row for row, _ in made.runs]
    why = f"left out, {vectors} is missing"
    assert plan_table(same).left_out == {compared.READ: why, compared.AVERAGE: why}
    (tmp_path / compared.VECTORS).write_text("the 1 2\nof 3 4\n")
    estimates = cost.estimate(made)
    one, other = (estimates[f"pretrain/{name}/1"] for name in (compared.STATES, compared.BERT))
    assert abs(one.flops / other.flops - 1) < 0.02
    rows = compared.AVERAGE, compared.READ, compared.STATES
    flops = [estimates[f"finetune/spam/{row}/1-1"].flops for row in rows]
    assert 0 == flops[0] < flops[1] < flops[2], "the mean costs nothing, ELMo most"


def test_lstms_have_a_rate_of_their_own():
    for config in (PretrainConfig(bert=elmo.TINY), FinetuneConfig(model="cbow")):
        assert initialization.of(config).rate == LSTM_RATE
    assert initialization.of(FinetuneConfig()).rate is None


def test_a_row_of_a_given_checkpoint_has_no_model_of_its_own():
    table = load_config("table5:smoke")
    given = ablation_parts.Variant("given", checkpoint="tiny-wikipedia")
    rows = (ablation_parts.Row("r", "given", {"model": "tfidf"}),)
    with pytest.raises(UserError, match="row r: `model` is for models of pre-trainings; given is"):
        dataclasses.replace(table, variants=(given,), rows=rows, claims=(), exports=())
