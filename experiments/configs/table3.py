"""Table 3, SQuAD 2.0 (section 4.3), scored on dev.

    BERT_DATA_DIR=DIR python -m experiments.ablate --config=experiments/configs/table3.py:cpu \\
        --workdir=runs/table3

DIR/squad_v2.0 holds train-v2.0.json and dev-v2.0.json; where it holds the two parts of dev instead,
part 1 is for training and part 2 for scoring. Scales: `checkpoint_tables`. Cost: paper
about a day and a half of one GPU; gpu about 3 hours; cpu about 15 minutes; smoke under 3 minutes.

Expected at paper scale: EM 78.7 and F1 81.9 for LARGE. Scores are those of the best threshold for
"no answer" on dev, as in the paper.
"""

import os

from experiments.configs.checkpoint_tables import column, grid
from experiments.tables.ablation import Ablation

_FOLDER = os.path.join(os.environ.get("BERT_DATA_DIR", ""), "squad_v2.0")
_PARTS = ("dev-v2.0-part1.json", "dev-v2.0-part2-rebuilt.json")


def get_config(scale: str = "smoke") -> Ablation:
    options = {"doc_stride": 128 if scale in ("paper", "gpu") else 64}
    notes = []
    if os.path.exists(os.path.join(_FOLDER, _PARTS[0])):
        options |= {"train_file": _PARTS[0], "dev_file": _PARTS[1]}
        notes.append("trained on one part of the official dev set and scored on the other")
    shared = {"length": 384, "num_train_epochs": 2.0, "task_options": options}
    if scale in ("paper", "gpu"):
        shared["train_batch_size"] = 48
    columns = (
        column(
            "dev EM",
            "squad_v2.0",
            "best_exact_match",
            "squad_v2.0",
            paper_column="dev EM",
            **shared,
        ),
        column("dev F1", "squad_v2.0", "best_f1", "squad_v2.0", paper_column="dev F1", **shared),
    )
    return grid(scale, "table3", "SQuAD 2.0", columns, notes)
