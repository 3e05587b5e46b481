"""ELMo: states of LSTMs that read words by their letters."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "elmo",
    configs={"filters": "experiments.beyond.elmo.shape:ElmoConfig"},
    objectives={
        "adjacent_words": "experiments.beyond.elmo.objective:AdjacentWords",
    },
    flops={
        "adjacent_words": "experiments.beyond.shallow.costs:both_directions",
    },
    starts={
        "*weights.hdf5": "experiments.beyond.elmo.start:Elmo",
        "ElmoConfig": "experiments.beyond.elmo.start:Elmo",
    },
    recipes={
        "elmo": "experiments.beyond.elmo.recipe:get_config",
    },
    rows={
        "table7": "experiments.beyond.elmo.rows:table7",
    },
)
