"""Word vectors, and GLUE's baselines that read them."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "words",
    heads={
        "cbow": "experiments.beyond.words.kept:CBOW_HEAD",
        "bilstm_attention": "experiments.beyond.words.kept:BILSTM_HEAD",
    },
    options={
        "finetune.word_vectors": "experiments.beyond.words.options:WordOptions",
        "finetune.elmo": "experiments.beyond.words.options:WordOptions",
    },
    starts={
        "cbow": "experiments.beyond.words.start:WordVectors",
        "bilstm_attention": "experiments.beyond.words.start:WordVectors",
    },
    cells={
        "vectors": "experiments.beyond.words.cells:learn_vectors",
    },
    recipes={
        "cbow": "experiments.beyond.words.recipe:cbow",
        "bilstm_attention": "experiments.beyond.words.recipe:bilstm_attention",
    },
    commands={"word2vec": "experiments.beyond.words.word2vec:main"},
)
