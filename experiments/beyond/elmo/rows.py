"""ELMo's row of Table 7: the sum of its layers, of a folder `elmo` in the data folder."""

import dataclasses
from pathlib import Path

from experiments.configs.scales import Scale
from experiments.configs.table7 import CONCAT, FEATURES, FINE_TUNED
from experiments.tables.planning.ablation import Ablation, Row, Variant
from experiments.tables.planning.claims import Claim, Comparison

ELMO, FOLDER = "ELMo", "elmo"


def table7(table: Ablation, scale: Scale) -> Ablation:
    """Return Table 7 with ELMo's row, which is left out where its folder is missing."""
    fields = table.row(next(iter(FEATURES))).finetune | {"features": "elmo"}
    folder = str(Path(scale.data_dir, FOLDER))
    claim = Claim(
        "ELMo",
        "Concatenating the last four layers, and fine-tuning, beat ELMo's features",
        "5.3",
        tuple(Comparison("dev F1", row, ELMO) for row in (CONCAT, FINE_TUNED)),
    )
    return dataclasses.replace(
        table,
        variants=(*table.variants, Variant(ELMO, checkpoint=folder, optional=True)),
        rows=(*table.rows, Row(ELMO, ELMO, fields, paper_row=ELMO)),
        claims=(*table.claims, claim),
    )
