"""Systems that are not in BERT's paper: which names they add, and where each of these is.

`official_bert.extension` reads this list, and finds nothing where this folder is absent.
"""

from official_bert.extension import Extension

# The fields that only successors have mark their configuration.
SUCCESSOR = "experiments.beyond.common.config:SuccessorConfig"

EXTENSIONS = (
    Extension(
        "common",
        configs={
            "embedding_size": SUCCESSOR,
            "num_hidden_groups": SUCCESSOR,
            "pooler_activation": SUCCESSOR,
            "embedding_norm": SUCCESSOR,
            "prediction_transform": SUCCESSOR,
            "norm_first": SUCCESSOR,
        },
    ),
    Extension(
        "albert",
        objectives={"sentence_order": "official_bert.objectives.sentence_pair:SentenceOrder"},
    ),
    Extension(
        "distil",
        sizes={
            "distilbert": "experiments.beyond.distil.sizes:DISTILBERT",
            "tinybert": "experiments.beyond.distil.sizes:TINYBERT",
        },
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
        configs={"shallow_concatenation": "experiments.beyond.shallow.config:ShallowConfig"},
        objectives={"adjacent_tokens": "official_bert.compared.adjacent_tokens:AdjacentTokens"},
    ),
    Extension(
        "spanbert",
        objectives={"span_boundary": "official_bert.family.span_boundary:SpanBoundary"},
    ),
    Extension("ulmfit", configs={"recurrent": "experiments.beyond.ulmfit.config:AwdLstmConfig"}),
)
