"""Several systems beyond the paper side by side: their table, their rows in the paper's tables, and
the recipes of BERT's successors as differences from BERT's."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "side_by_side",
    recipes={
        "family": "experiments.beyond.side_by_side.family:get_config",
    },
    rows={
        "table1": "experiments.beyond.side_by_side.compared:table1",
    },
)
