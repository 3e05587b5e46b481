"""RoBERTa and XLM-RoBERTa."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "roberta",
    members={
        "roberta": "experiments.beyond.roberta.names:ROBERTA",
        "xlm-roberta": "experiments.beyond.roberta.names:XLM_ROBERTA",
    },
    recipes={
        "roberta": "experiments.beyond.side_by_side.successors:roberta",
    },
)
