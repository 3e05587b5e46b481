"""OpenAI GPT."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "gpt",
    members={
        "openai-gpt": "experiments.beyond.gpt.names:MEMBER",
        "gpt2": "experiments.beyond.gpt.gpt2_names:MEMBER",
    },
    tokenizers={"word_end_byte_pair": "experiments.beyond.gpt.word_ends:WordEndTokenizer"},
    graphs={"word_end_byte_pair": "experiments.beyond.gpt.in_graph:InGraphWordEnds"},
    verbs={
        "generate": "experiments.beyond.common.generation:generate",
    },
    commands={"perplexity": "experiments.beyond.gpt.perplexity:main"},
    options={
        "finetune.lm_loss_weight": "experiments.beyond.gpt.options:GptOptions",
        "finetune.draw_special_tokens": "experiments.beyond.gpt.options:GptOptions",
    },
    recipes={
        "gpt": "experiments.beyond.gpt.recipe:get_config",
        "gpt2": "experiments.beyond.side_by_side.successors:gpt2",
    },
    rows={
        "figure5+gpt": "experiments.beyond.side_by_side.compared:gpt_curve",
    },
)
