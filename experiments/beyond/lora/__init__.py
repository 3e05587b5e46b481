"""LoRA: low-rank updates of a frozen encoder (Hu et al. 2021)."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "lora",
    options={
        "finetune.lora_rank": "experiments.beyond.lora.options:LoraOptions",
        "finetune.lora_alpha": "experiments.beyond.lora.options:LoraOptions",
    },
    commands={"adapter": "experiments.beyond.lora.adapter:main"},
)
