"""The paper alone: its modules without the guests' folder, its runs without a guest."""

import re
import subprocess
import sys

import pytest

from tests import core_alone

# Imports of a run of the paper when it begins (`runs`), on TensorFlow.
_RUNS = {
    "pretrain": "experiments.pretrain experiments.training.pretraining.pretrain_run",
    "finetune": "experiments.finetune experiments.training.finetuning.finetune_run",
    "ablate": "experiments.ablate experiments.configs.table5 experiments.tables.run.cells",
}


def test_every_module_is_imported_without_the_guests(tmp_path):
    root = core_alone.copy(tmp_path, core_alone.BEYOND)
    assert len(core_alone.modules(root)) > 200
    assert core_alone.import_all(root) == ""


@pytest.mark.parametrize("command", _RUNS)
def test_a_run_of_the_paper_loads_no_guest(command):
    code = f"import sys, {', '.join(_RUNS[command].split())}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=core_alone.ROOT,
                         capture_output=True, text=True, check=True)  # fmt: skip
    loaded = [name for name in run.stdout.split() if name.startswith("experiments.beyond.")]
    # A guest's folder says which names it adds; what these stand for is deeper.
    assert not [name for name in loaded if not re.fullmatch(r"experiments\.beyond\.\w+", name)]
