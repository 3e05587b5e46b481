"""Systems that are not in BERT's paper: which names they add, and where each of these is.

`official_bert.extension` reads this list, and finds nothing where this folder is absent.
"""

from official_bert.extension import Extension

EXTENSIONS = (
    Extension(
        "albert",
        objectives={"sentence_order": "official_bert.objectives.sentence_pair:SentenceOrder"},
    ),
    Extension(
        "distil",
        objectives={
            "soft_targets": "official_bert.family.distillation:SoftTargets",
            "cosine_states": "official_bert.family.distillation:CosineStates",
            "transformer_layers": "official_bert.family.distillation:TransformerLayers",
        },
    ),
    Extension(
        "electra",
        objectives={"replaced_token": "official_bert.family.replaced_token:ReplacedToken"},
    ),
    Extension(
        "elmo",
        objectives={"adjacent_words": "official_bert.compared.adjacent_tokens:AdjacentWords"},
    ),
    Extension("seq2seq", heads={"text": "official_bert.family.seq2seq:kind_of"}),
    Extension(
        "shallow",
        configs={"shallow_concatenation": "official_bert.compared.configs:ShallowConfig"},
        objectives={"adjacent_tokens": "official_bert.compared.adjacent_tokens:AdjacentTokens"},
    ),
    Extension(
        "spanbert",
        objectives={"span_boundary": "official_bert.family.span_boundary:SpanBoundary"},
    ),
    Extension("ulmfit", configs={"recurrent": "official_bert.compared.configs:AwdLstmConfig"}),
)
