"""ELECTRA: replaced tokens in place of masked ones."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "electra",
    members={"electra": "experiments.beyond.electra.names:ELECTRA"},
    objectives={
        "replaced_token": "experiments.beyond.electra.objective:ReplacedToken",
    },
    flops={
        "replaced_token": "experiments.beyond.electra.costs:replaced_token",
    },
    recipes={
        "electra": "experiments.beyond.side_by_side.successors:electra",
    },
)
