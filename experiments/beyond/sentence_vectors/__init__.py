"""Sentence vectors: a BERT that is trained so that its vectors of texts can be compared."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "sentence_vectors",
    heads={
        "sentence_vectors": "experiments.beyond.sentence_vectors.model:HEAD",
    },
    keras={
        "SentenceEncoder": "experiments.beyond.sentence_vectors.model:SentenceEncoder",
    },
    tasks={
        "sentence_vectors": "experiments.beyond.sentence_vectors.task:SentenceVectorsTask",
    },
    options={
        "finetune.pooling": "experiments.beyond.sentence_vectors.options:SentenceOptions",
        "finetune.temperature": "experiments.beyond.sentence_vectors.options:SentenceOptions",
    },
    recipes={
        "sentence_vectors": "experiments.beyond.sentence_vectors.recipe:get_config",
    },
    commands={"compare_texts": "experiments.beyond.sentence_vectors.compare_texts:main"},
)
