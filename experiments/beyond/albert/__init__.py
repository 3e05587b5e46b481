"""ALBERT: narrow tables, shared layers, the order of segments."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "albert",
    members={"albert": "experiments.beyond.albert.names:ALBERT"},
    objectives={
        "sentence_order": "experiments.beyond.albert.objective:SentenceOrder",
    },
    cells={
        "pairs": "experiments.beyond.albert.pairs:cell",
    },
    recipes={
        "albert": "experiments.beyond.side_by_side.successors:albert",
    },
)
