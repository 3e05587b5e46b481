"""The rows that Table 1 sets beside BERT: words, word vectors, GLUE's BiLSTM on them and on ELMo's
states, OpenAI GPT, and the shallow concatenation of two directions.

They are added to table1 at the scales cpu and smoke. ELMo, GPT, the concatenation and their BERT
are pre-trained here, on the same text, with as many matrix operations (docs/compared.md); word
vectors are learnt from that text, and given at cpu. Where their file or gensim is missing the
report says so in place of the scores.
"""

import dataclasses
from pathlib import Path

from experiments.beyond.elmo import recipe as elmo
from experiments.beyond.gpt import recipe as gpt
from experiments.beyond.shallow.shape import ShallowConfig
from experiments.beyond.side_by_side.family import of_equal_compute
from experiments.beyond.tfidf.start import NAME as TFIDF
from experiments.beyond.words import recipe as word_baselines
from experiments.beyond.words.start import BILSTM, CBOW
from experiments.configs.scales import Scale
from experiments.tables.planning.ablation import Ablation, Row, Variant
from experiments.tables.planning.claims import Claim, each
from experiments.training.settings.config import FinetuneConfig, PretrainConfig
from experiments.training.settings.options import value_of

VECTORS = "glove.6B.50d.txt"  # in the data folder
BERT, GPT = "BERT, same text as GPT", "OpenAI GPT"
BOTH = "LTR and RTL, concatenated"
WORDS, AVERAGE, READ = "TF-IDF", "CBOW (GloVe)", "BiLSTM and attention (GloVe)"
STATES = "BiLSTM, ELMo and attention"
# On vectors of word2vec that are learnt from the text of the pre-trainings.
READ_SAME, READ_CBOW = "BiLSTM and attention (skip-gram)", "BiLSTM and attention (word2vec's CBOW)"
AVERAGE_SAME = "CBOW (skip-gram)"
_LABELS = {WORDS: "TF-IDF and a linear classifier"}
_GPT_FIELDS = ("lm_loss_weight", "draw_special_tokens", "bias_correction", "adam_epsilon",
               "warmup_proportion")  # fmt: skip
# What GPT's fine-tuning has of its own; rate, batch and epochs are the column's.
GPT_FINETUNE = {field: value_of(gpt.FINETUNE, field) for field in _GPT_FIELDS}


def pretraining_of_gpt(scale: Scale) -> PretrainConfig:
    """Return GPT on the text of a scale's BERT and for as many steps; it predicts as many tokens as
    the scale's left-to-right models."""
    return dataclasses.replace(gpt.gpt(scale.bert), objectives=scale.predicting("next_token"))


def gpt_curve(scale: Scale) -> tuple[str, PretrainConfig, dict]:
    """Return (name, pre-training, fields that fine-tuning changes) of GPT's curve of Figure 5."""
    return GPT, pretraining_of_gpt(scale), GPT_FINETUNE


def table1(table: Ablation, scale: Scale) -> Ablation:
    """Return Table 1 with the rows, at the scales that pre-train."""
    if scale.name == "smoke":
        return with_compared(table, scale, (1,), vectors="")
    return with_compared(table, scale, (1, 2, 3))


def with_compared(
    table: Ablation, scale: Scale, seeds: tuple[int, ...], vectors: str = VECTORS
) -> Ablation:
    """Return a table with the rows, and with what their pre-training needs.

    Args:
      table: Table 1 at `scale`.
      scale: whose text and pre-training GPT and BERT have.
      seeds: of their pre-trainings, and of the models on word vectors. Each is fine-tuned once.
      vectors: file of word vectors in the data folder; "": no rows on given ones.
    """
    base = scale.bert
    trained = {GPT: (pretraining_of_gpt(scale), seeds),
               # Once: its fine-tunings take twice as long.
               BOTH: (_side_by_side(scale), seeds[:1])}  # fmt: skip
    variants = [
        Variant(name, of_equal_compute(config, base), own)
        for name, (config, own) in trained.items()
    ]
    rows = [Row(GPT, GPT, GPT_FINETUNE, paper_row="OpenAI GPT"), Row(BOTH, BOTH)]
    same = {variant.name for variant in table.variants if variant.pretrain == base}
    bert = next((row.label for row in table.rows if row.variant in same), BERT)
    if not same:
        variants, rows = [Variant(BERT, base, seeds), *variants], [Row(BERT, BERT), *rows]
    bert_config = base.bert_config
    notes = [f"{bert}, {GPT} and each half of {BOTH}: {bert_config.num_hidden_layers} layers, "
             f"{bert_config.hidden_size} wide, equal matrix operations"]  # fmt: skip
    read = {"feature_width": bert_config.hidden_size}
    pretrain = elmo.elmo(base, elmo.SIZES.get(scale.name, elmo.TINY))
    variants.append(Variant(STATES, of_equal_compute(pretrain, base), seeds[:1]))
    fields = _fields(word_baselines.bilstm_attention("small")) | read | {"model": BILSTM}
    rows.append(Row(STATES, STATES, fields, paper_row="BiLSTM+ELMo+Attn"))
    for label, name, config, kind in (
        (READ_SAME, BILSTM, word_baselines.bilstm_attention("small"), "skip_gram"),
        (READ_CBOW, BILSTM, word_baselines.bilstm_attention("small"), "cbow"),
        (AVERAGE_SAME, CBOW, word_baselines.cbow(), "skip_gram"),
    ):
        variants.append(Variant(label, seeds=seeds, checkpoint=name, learnt=kind))
        rows.append(Row(label, label, _fields(config) | read, reference=True))
    if vectors:
        file = str(Path(scale.data_dir, vectors))
        for label, name, config in (
            (READ, BILSTM, word_baselines.bilstm_attention("small")),
            (AVERAGE, CBOW, word_baselines.cbow()),
        ):
            fields = _fields(config) | read | {"word_vectors": file}
            variants.append(Variant(label, seeds=seeds, checkpoint=name))
            rows.append(Row(label, label, fields, reference=True))
    variants.append(Variant(WORDS, checkpoint=TFIDF))
    rows.append(Row(_LABELS[WORDS], WORDS, reference=True))
    columns = tuple(column.changed(seeds=(1,)) for column in table.columns)
    labels = [column.label for column in columns]
    known = {row.label for row in rows}
    claims = [
        claim
        for claim in _claims(labels, bert)
        if {*known, bert}.issuperset(claim.comparisons[0].rows)
    ]
    return dataclasses.replace(
        table,
        corpus=scale.corpus,
        records=scale.records,
        variants=(*table.variants, *variants),
        columns=columns,
        rows=(*table.rows, *rows),
        claims=(*table.claims, *claims),
        notes=(*table.notes, *notes),
    )


def _side_by_side(scale: Scale) -> PretrainConfig:
    """Return two models of the shape of a scale's BERT, one for each direction, concatenated."""
    both = ShallowConfig.of_two(scale.bert.bert_config)
    objectives = scale.predicting("adjacent_tokens")
    return dataclasses.replace(scale.bert, bert=both, objectives=objectives)


def _fields(config: FinetuneConfig) -> dict:
    """Return the fields that a baseline's configuration changes, apart from task and model."""
    fields = ("train_batch_size", "learning_rate", "num_train_epochs",
              "weight_decay", "clip_norm", "bias_correction")  # fmt: skip
    return {field: getattr(config, field) for field in fields}


def _claims(columns: list[str], bert: str) -> tuple[Claim, ...]:
    steps = (
        ("bidirectional", "BERT beats OpenAI GPT at equal text and compute", "4.1", bert, GPT),
        (
            "deeply bidirectional",
            "BERT, which can use both left and right context at every layer, beats the "
            "concatenation of separate left-to-right and right-to-left models",
            "5.1",
            *(bert, BOTH),
        ),
        ("fine-tuned whole", "OpenAI GPT beats a BiLSTM on ELMo's states", "4.1", GPT, STATES),
        ("pre-trained", "OpenAI GPT beats a BiLSTM on word vectors", "4.1", GPT, READ),
        (
            "pre-trained, same text",
            "OpenAI GPT beats a BiLSTM on word vectors that were learnt from the same text",
            "4.1",
            *(GPT, READ_SAME),
        ),
        (
            "ELMo",
            "ELMo's states in place of word vectors beat word vectors, read by a BiLSTM",
            "4.1",
            *(STATES, READ),
        ),
        (
            "ELMo, same text",
            "ELMo's states beat word vectors that were learnt from the same text, read by a BiLSTM",
            "4.1",
            *(STATES, READ_SAME),
        ),
        ("context", "A BiLSTM with attention beats the mean of word vectors", "4.1", READ, AVERAGE),
    )
    return tuple(
        # The paper makes the first two; the others are this table's own.
        Claim(name, text, section, each(columns, better, worse), own=number >= 2)
        for number, (name, text, section, better, worse) in enumerate(steps)
    )
