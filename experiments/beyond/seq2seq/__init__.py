"""Sequence to sequence: texts that are written from texts."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "seq2seq",
    heads={
        "text": "experiments.beyond.seq2seq.head:TEXT",
    },
    served={
        "text": "experiments.beyond.seq2seq.served:ServedWriter",
    },
    keras={
        "Seq2Seq": "experiments.beyond.seq2seq.model:Seq2Seq",
    },
    tasks={
        "text_to_text": "experiments.beyond.seq2seq.task:TextToText",
    },
    options={
        "finetune.decoder": "experiments.beyond.seq2seq.options:Decoder",
        "export.beams": "experiments.beyond.seq2seq.head:WriterSettings",
    },
    measures={
        "bleu": "experiments.beyond.seq2seq.measures:bleu",
        "bleu_gap": "experiments.beyond.seq2seq.measures:bleu_gap",
    },
    starts={
        "nearest-source": "experiments.beyond.seq2seq.baselines:TextBaseline",
        "ibm-model-1": "experiments.beyond.seq2seq.baselines:TextBaseline",
        "opening": "experiments.beyond.seq2seq.baselines:TextBaseline",
    },
    recipes={
        "seq2seq": "experiments.beyond.seq2seq.recipe:get_config",
    },
    commands={"text_pairs": "experiments.beyond.seq2seq.text_pairs:main"},
)
