"""Table 2, SQuAD 1.1 (section 4.2), scored on dev.

    BERT_DATA_DIR=DIR python -m experiments.ablate --config=experiments/configs/table2.py:cpu \\
        --workdir=runs/table2

DIR/squad_v1.1 holds train-v1.1.json and dev-v1.1.json. Scales: `checkpoint_tables`.
Cost: paper about a day of one GPU (5 seeds of two models); gpu about 3 hours; cpu about 15 minutes;
smoke under 3 minutes.

Expected at paper scale: EM 80.8 and F1 88.5 for BASE, 84.1 and 90.9 for LARGE.
"""

import os

from experiments.configs.checkpoint_tables import column, grid
from experiments.tables.ablation import Ablation

_FOLDER = os.path.join(os.environ.get("BERT_DATA_DIR", ""), "squad_v1.1")
_SUBSET = "train-v1.1-subset.json,train-v1.1-extra.json"


def get_config(scale: str = "smoke") -> Ablation:
    official = not os.path.exists(os.path.join(_FOLDER, _SUBSET.split(",")[0]))
    options = {"doc_stride": 128 if scale in ("paper", "gpu") else 64}
    notes = []
    if not official:
        options["train_file"] = _SUBSET
        notes.append("15,412 of SQuAD's 87,599 training questions, 10,565 of 10,570 dev questions")
    shared = {"length": 384, "task_options": options}
    columns = (
        column(
            "dev EM", "squad_v1.1", "exact_match", "squad_v1.1", paper_column="dev EM", **shared
        ),
        column("dev F1", "squad_v1.1", "f1", "squad_v1.1", paper_column="dev F1", **shared),
    )
    return grid(scale, "table2", "SQuAD 1.1", columns, notes)
