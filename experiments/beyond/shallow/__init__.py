"""The shallow concatenation of two directions that section 5.1 argues against."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "shallow",
    configs={
        "shallow_concatenation": "experiments.beyond.shallow.shape:ShallowConfig",
    },
    objectives={
        "adjacent_tokens": "experiments.beyond.shallow.objective:AdjacentTokens",
    },
    flops={
        "adjacent_tokens": "experiments.beyond.shallow.costs:both_directions",
    },
)
