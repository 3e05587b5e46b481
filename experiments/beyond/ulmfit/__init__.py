"""ULMFiT: language models of LSTMs, fine-tuned step by step."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "ulmfit",
    configs={
        "recurrent": "experiments.beyond.ulmfit.shape:AwdLstmConfig",
    },
    heads={
        "concat_pooling": "experiments.beyond.ulmfit.classifier:CONCAT_POOLING",
    },
    keras={
        "ConcatPoolingClassifier": "experiments.beyond.ulmfit.classifier:ConcatPoolingClassifier",
        "GradualUnfreezing": "experiments.beyond.ulmfit.optimizer:GradualUnfreezing",
        "SlantedTriangular": "experiments.beyond.ulmfit.optimizer:SlantedTriangular",
    },
    optimizers={
        "unfreeze_every": "experiments.beyond.ulmfit.optimizer:GradualUnfreezing",
    },
    schedules={
        "slanted_triangular": "experiments.beyond.ulmfit.optimizer:SlantedTriangular",
    },
    options={
        "finetune.concat_pooling": "experiments.beyond.ulmfit.options:UlmfitOptions",
        "finetune.unfreeze_epochs": "experiments.beyond.ulmfit.options:UlmfitOptions",
        "finetune.schedule": "experiments.beyond.ulmfit.options:UlmfitOptions",
    },
    recipes={
        "ulmfit": "experiments.beyond.ulmfit.recipe:get_config",
    },
)
