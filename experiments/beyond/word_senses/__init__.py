"""Word senses: GlossBERT on WordNet."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "word_senses",
    tasks={
        "word_senses": "experiments.beyond.word_senses.task:WordSenses",
    },
    recipes={
        "word_senses": "experiments.beyond.word_senses.recipe:get_config",
    },
)
