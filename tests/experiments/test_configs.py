"""Configurations of tables: what each scale has, and how tables differ."""

import re

import pytest

from experiments.configs import scales
from experiments.training.settings import config_files
from experiments.training.settings.config_files import load_config
from official_bert.common.errors import UserError

TABLES = [f"table{i}" for i in range(1, 9)] + ["figure5"]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("scale", ["paper", "gpu", "cpu", "smoke"])
def test_every_table_has_every_scale(name, scale):
    ablation = load_config(f"{name}:{scale}")
    assert (ablation.name, ablation.scale) == (name, scale)
    assert ablation.rows and ablation.columns
    paper_rows = [row.paper_row for row in ablation.rows if row.paper_row]
    assert paper_rows or name in ("table6", "figure5")


def test_what_a_configuration_contains_depends_on_no_file_or_package_of_the_machine():
    asks = re.compile(r"exists\(|is_file\(|is_dir\(|glob\(|open\(|find_spec|import_module")
    files = list(config_files.CONFIGS.glob("*.py"))
    assert len(files) > 20
    assert not [path.name for path in files if asks.search(path.read_text())]


def test_a_table_in_a_shared_file_goes_by_the_path_of_its_own():
    named, by_path = load_config("table2:cpu"), load_config("experiments/configs/table2.py:cpu")
    assert named == by_path and named.title == "SQuAD 1.1"
    with pytest.raises(UserError, match="no such Python file elsewhere/table2.py"):
        load_config("elsewhere/table2.py:cpu")


def test_the_quickstart_is_table5_without_the_bilstm():
    quick, smoke = load_config("table5:quickstart"), load_config("table5:smoke")
    assert quick.scale == "quickstart" and [e.column for e in quick.exports] == ["SMS spam"]
    assert {r.label for r in smoke.rows} - {r.label for r in quick.rows} == {
        "LTR & No NSP + BiLSTM"
    }
    left_out = {c.name for c in smoke.claims} - {c.name for c in quick.claims}
    assert left_out == {
        *("BiLSTM, SQuAD", "BiLSTM, GLUE", "BiLSTM, far worse", "BiLSTM, tags"),
        "large drops",  # on SQuAD
    }


def test_unknown_scale_lists_the_valid_ones():
    known = "valid: paper, gpu, gpu-day, night, cpu, smoke, quickstart, checkpoints, squad"
    with pytest.raises(UserError, match=known):
        load_config("table5:huge")
    with pytest.raises(UserError, match="valid: paper, gpu, cpu, smoke$"):
        load_config("table1:huge")
    for table in ("figure5", "table8"):
        with pytest.raises(UserError, match="valid: paper, gpu, gpu-day, cpu, snli, smoke$"):
            load_config(f"{table}:night")


@pytest.mark.parametrize("name", ["table5", "table6", "table8", "figure5"])
def test_the_scales_of_one_gpu_keep_their_records_on_it(name):
    for scale in ("gpu", "gpu-day"):
        ablation = load_config(f"{name}:{scale}")
        assert all(r.dynamic_masking and not r.do_whole_word_mask for r in ablation.records)
        assert all(v.pretrain.records_on_device for v in ablation.variants)


def test_squad_with_a_control_is_table5_and_a_row_and_a_column_more():
    squad, control = load_config("table5:squad"), load_config("squad_control")
    assert [r.label for r in control.rows if r not in squad.rows] == ["No NSP + BiLSTM"]
    f1, exact = (control.column(label) for label in ("SQuAD", "SQuAD exact match"))
    assert f1.finetune == exact.finetune and f1.finetune.max_dev_examples == 0
    assert not {s for v in control.variants for s in v.seeds} & set(squad.variants[0].seeds)
    assert set(squad.claims) < set(control.claims)


def test_a_column_that_no_scale_has_is_no_column_left_out():
    smoke = scales.get_scale("smoke")
    assert [c.label for c in smoke.tasks("names", "part of speech")] == ["names"]
    with pytest.raises(UserError, match="no scale has a column SST2; the names are .*SST-2"):
        smoke.tasks("SST2", "names")
