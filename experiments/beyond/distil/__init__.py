"""Distillation: DistilBERT, TinyBERT and their teachers."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "distil",
    members={"distilbert": "experiments.beyond.distil.names:DISTILBERT"},
    sizes={
        "distilbert": "experiments.beyond.distil.sizes:DISTILBERT",
        "tinybert": "experiments.beyond.distil.sizes:TINYBERT",
    },
    objectives={
        "soft_targets": "experiments.beyond.distil.distillation:SoftTargets",
        "cosine_states": "experiments.beyond.distil.distillation:CosineStates",
        "transformer_layers": "experiments.beyond.distil.distillation:TransformerLayers",
    },
    flops={
        "soft_targets": "experiments.beyond.distil.costs:soft_targets",
    },
    options={
        "pretrain.teacher": "experiments.beyond.distil.options:PretrainTeacher",
        "pretrain.teacher_layers": "experiments.beyond.distil.options:PretrainTeacher",
        "finetune.teacher": "experiments.beyond.distil.options:FinetuneTeacher",
        "finetune.teacher_temperature": "experiments.beyond.distil.options:FinetuneTeacher",
        "finetune.teacher_weight": "experiments.beyond.distil.options:FinetuneTeacher",
    },
    recipes={
        "distil": "experiments.beyond.side_by_side.successors:distil",
        "tinybert": "experiments.beyond.side_by_side.successors:tinybert",
    },
)
