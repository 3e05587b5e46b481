"""ULMFiT: language models of LSTMs, fine-tuned step by step."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "ulmfit",
    configs={
        "recurrent": "experiments.beyond.ulmfit.shape:AwdLstmConfig",
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
