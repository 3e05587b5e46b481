"""The fields and layers that several systems beyond the paper share.

A successor's shape is a `SuccessorConfig`, which its fields mark in any `bert_config.json`.
"""

from official_bert.extension import Extension

EXTENSION = Extension(
    "common",
    configs=dict.fromkeys(
        (
            "embedding_size",
            "num_hidden_groups",
            "pooler_activation",
            "embedding_norm",
            "prediction_transform",
            "norm_first",
        ),
        "experiments.beyond.common.shape:SuccessorConfig",
    ),
)
