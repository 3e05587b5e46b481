"""Table 4, SWAG (section 4.4), scored on dev.

    BERT_DATA_DIR=DIR python -m experiments.ablate --config=experiments/configs/table4.py:cpu \\
        --workdir=runs/table4

DIR/swag holds train.csv and val.csv; without it, DIR/hellaswag in the same format stands in.
Scales: `checkpoint_tables`. Cost: paper about a day of one GPU; gpu about 3 hours; cpu
about 15 minutes; smoke under 3 minutes.

Expected at paper scale: 81.6 for BASE, 86.6 for LARGE. HellaSwag is made to be hard for BERT: small
models stay near the 25 % of guessing.
"""

import os

from experiments.configs.checkpoint_tables import column, grid
from experiments.tables.ablation import Ablation


def get_config(scale: str = "smoke") -> Ablation:
    root = os.environ.get("BERT_DATA_DIR", "")
    folder, notes = "swag", []
    if not os.path.isdir(os.path.join(root, "swag")) and os.path.isdir(
        os.path.join(root, "hellaswag")
    ):
        folder = "hellaswag"
        notes.append("HellaSwag in place of SWAG: harder by design, scores do not compare")
    changes = {"learning_rate": 2e-5, "train_batch_size": 16}
    columns = (column("dev", "swag", "accuracy", folder, paper_column="dev", **changes),)
    return grid(scale, "table4", "SWAG", columns, notes)
