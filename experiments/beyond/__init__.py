"""Systems that are not in BERT's paper: which names they add, and where each of these is.

`official_bert.extension` reads this list, and finds nothing where this folder is absent.
"""

from official_bert.extension import Extension

# The fields that only successors have mark their configuration.
SUCCESSOR = "experiments.beyond.common.shape:SuccessorConfig"

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
        members={"albert": "experiments.beyond.albert.names:ALBERT"},
        objectives={"sentence_order": "experiments.beyond.albert.objective:SentenceOrder"},
    ),
    Extension(
        "distil",
        members={"distilbert": "experiments.beyond.distil.names:DISTILBERT"},
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
        members={"electra": "experiments.beyond.electra.names:ELECTRA"},
        objectives={"replaced_token": "experiments.beyond.electra.objective:ReplacedToken"},
    ),
    Extension(
        "elmo",
        objectives={"adjacent_words": "official_bert.compared.adjacent_tokens:AdjacentWords"},
    ),
    Extension(
        "gpt",
        members={
            "openai-gpt": "experiments.beyond.gpt.names:MEMBER",
            "gpt2": "experiments.beyond.gpt.gpt2_names:MEMBER",
        },
    ),
    Extension("roberta", members={"roberta": "experiments.beyond.roberta.names:ROBERTA"}),
    Extension("seq2seq", heads={"text": "official_bert.family.seq2seq:kind_of"}),
    Extension(
        "shallow",
        configs={"shallow_concatenation": "experiments.beyond.shallow.shape:ShallowConfig"},
        objectives={"adjacent_tokens": "official_bert.compared.adjacent_tokens:AdjacentTokens"},
    ),
    Extension(
        "spanbert",
        objectives={"span_boundary": "experiments.beyond.spanbert.objective:SpanBoundary"},
    ),
    Extension("ulmfit", configs={"recurrent": "experiments.beyond.ulmfit.shape:AwdLstmConfig"}),
)
