"""The paper alone: its runs load no guest. `tests.core_alone` imports its modules without them."""

import re
import subprocess
import sys

from tests import core_alone

# Imports of runs of the paper when they begin (`runs`), on TensorFlow.
_RUNS = (
    "experiments.pretrain, experiments.training.pretraining.pretrain_run",
    "experiments.finetune, experiments.training.finetuning.finetune_run",
    "experiments.ablate, experiments.configs.table5, experiments.tables.run.cells",
)


def test_runs_of_the_paper_load_no_guest():
    code = f"import sys, {', '.join(_RUNS)}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=core_alone.ROOT,
                         capture_output=True, text=True, check=True)  # fmt: skip
    loaded = [name for name in run.stdout.split() if name.startswith("experiments.beyond.")]
    # A guest's folder says which names it adds; what these stand for is deeper.
    assert not [name for name in loaded if not re.fullmatch(r"experiments\.beyond\.\w+", name)]
