"""Words weighted by their rarity and a linear classifier."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "tfidf",
    heads={"tfidf": "experiments.beyond.tfidf.start:HEAD"},
    starts={
        "tfidf": "experiments.beyond.tfidf.start:Tfidf",
    },
    recipes={
        "tfidf": "experiments.beyond.tfidf.recipe:tfidf",
    },
)
