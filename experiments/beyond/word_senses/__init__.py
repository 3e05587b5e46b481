"""Word senses: GlossBERT on WordNet."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "word_senses",
    tasks={
        "word_senses": "experiments.beyond.word_senses.task:WordSenses",
    },
    starts={
        "lesk": "experiments.beyond.word_senses.lesk:Lesk",
    },
    recipes={
        "word_senses": "experiments.beyond.word_senses.recipe:get_config",
    },
)
