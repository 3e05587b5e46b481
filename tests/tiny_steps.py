"""Small models of every objective and head, with a batch of each: what the steps of training,
evaluation and prediction are compiled of, on any backend and for any device."""

from functools import partial

import numpy as np
import tiny_runs

from experiments.beyond.distil.distillation import Distilled, taught
from experiments.beyond.distil.teachers import Teacher
from experiments.beyond.elmo.model import ELMo
from experiments.beyond.elmo.shape import ElmoConfig
from experiments.beyond.elmo.words_of_pieces import WordsOfPieces
from experiments.beyond.gbert import model as graph_codes
from experiments.beyond.gpt.gpt2_names import GPT2
from experiments.beyond.gpt.model import AuxiliaryLanguageModel
from experiments.beyond.gpt.names import OPENAI_GPT
from experiments.beyond.video import model as video
from experiments.beyond.words.model import CBOW, BiLSTMAttention
from experiments.training.start.frozen_features import FeatureTagger
from official_bert import BertEncoder, BertTokenizer
from official_bert.config import DECODERS, RNN_DECODERS
from official_bert.heads import (
    BertClassifier,
    BertMultipleChoice,
    BertSpan,
    BertTagger,
    build_head,
)
from official_bert.pretraining import BertPretrainer

ROWS, LENGTH, PREDICTIONS, CHOICES = 8, 12, 4, 3
IDS = ("input_ids", "input_mask", "segment_ids")


def batch(*shape):
    return {name: np.ones(shape or (ROWS, LENGTH), np.int32) for name in IDS}


def records():
    made = {name: np.ones((ROWS, PREDICTIONS), np.int32) for name in (
        "masked_lm_positions", "masked_lm_ids", "span_starts", "span_ends",
    )}  # fmt: skip
    weights = {"masked_lm_weights": np.ones((ROWS, PREDICTIONS), np.float32)}
    return batch() | made | weights | {"next_sentence_labels": np.ones((ROWS, 1), np.int32)}


def pretrainer(seed, objectives, **fields):
    return BertPretrainer(tiny_runs.bert(**fields), objectives, seed=seed)


def student(seed, objectives, **fields):
    told = BertPretrainer(tiny_runs.bert(num_hidden_layers=2), ("masked_lm",), seed=1)
    return pretrainer(seed, taught(objectives, Teacher(told)), **fields)


def head(seed, kind, *arguments, bert=None, **options):
    encoder = BertEncoder(tiny_runs.bert(**(bert or {})), seed=seed)
    return kind(encoder, *arguments, seed=seed, **options)


def elmo(seed, objectives):
    pieces = [*tiny_runs.SPECIAL, ".", *tiny_runs.WORDS]
    config = ElmoConfig(
        filters=((1, 3), (2, 4)), character_width=4, lstm_width=6, projection=5, num_highways=1,
        vocab_size=len(pieces),
    )  # fmt: skip
    encoder = ELMo(config, seed=seed)
    encoder.words = WordsOfPieces(BertTokenizer(pieces))
    return BertPretrainer(encoder, objectives, seed=seed)


def with_language_model(seed):
    encoder = BertEncoder(tiny_runs.bert(**LEFT), seed=seed)
    return AuxiliaryLanguageModel(BertClassifier(encoder, 3, seed=seed), seed=seed)


def distilled(seed):
    told = head(1, BertClassifier, 3)
    return Distilled(head(seed, BertClassifier, 3), Teacher(told))


def features(seed):
    return FeatureTagger(tiny_runs.bert(), 3, "elmo", width=8, layers=1, seed=seed)


def sets(seed, kind, sizes):
    """Return a model of G-BERT's; codes 5 and 6 are below 4, and that below 3."""
    encoder = graph_codes.SetEncoder(tiny_runs.bert(), [-1, -1, -1, -1, 3, 4, 4, -1], seed=seed)
    return kind(encoder, tiny_runs.bert().hidden_size, sizes, seed)


def writer(seed, decoder):
    head = {"head": "text", "decoder": decoder, "longest": 6, "beams": 2, "length_penalty": 1.0}
    return build_head(BertEncoder(tiny_runs.bert(), seed=seed), head, seed=seed)


def with_visual_words(seed):
    return video.pretrainer(tiny_runs.bert(), np.ones((3, 16)), frozen=True, seed=seed)


def words(seed, kind, *sizes):
    return kind(*sizes, {"num_labels": 3, "problem": "single_label"}, True, seed=seed)


def ones(name, *shape, dtype=np.int32):
    return {name: np.ones(shape, dtype)}


LEFT = {"attention_direction": "left_to_right"}
FRACTION = {"name": "next_token", "fraction": 0.3}
VECTORS = batch() | ones("label_ids", ROWS) | ones("vectors", ROWS, LENGTH, 6, dtype=np.float32)
SETS = ones("diagnoses", ROWS, 4) | ones("medications", ROWS, 3)
LSTMS = {"recurrent": True, "num_attention_heads": 1}
BOTH = {"attention_direction": "shallow_concatenation"}
WRITERS = (*DECODERS, *RNN_DECODERS)
# Name -> (function of a seed that builds the model, batch, options of the step).
STEPS = {
    "BERT": (partial(pretrainer, objectives=("masked_lm", "next_sentence")), records()),
    "No NSP": (partial(pretrainer, objectives=("masked_lm",)), records()),
    "left to right": (
        partial(pretrainer, objectives=("next_token",), **LEFT), records(),
    ),
    "OpenAI GPT": (partial(pretrainer, objectives=("next_token",), **OPENAI_GPT), records()),
    "GPT-2": (partial(pretrainer, objectives=("next_token",), **GPT2), records()),
    "a third of the tokens": (
        partial(pretrainer, objectives=(FRACTION,), **LEFT), records(),
    ),
    "shallow concatenation": (
        partial(pretrainer, objectives=("adjacent_tokens",), **BOTH), records(),
    ),
    "ALBERT": (
        partial(
            pretrainer, objectives=("masked_lm", "sentence_order"), embedding_size=8,
            num_hidden_groups=1, gelu_form="tanh",
        ),
        records(), {"optimizer": "lamb"},
    ),
    "ELECTRA": (
        partial(pretrainer, objectives=("replaced_token",), pooler_activation="none"),
        records(),
    ),
    "RoBERTa": (
        partial(pretrainer, objectives=("masked_lm",), type_vocab_size=1),
        records(), {"bias_correction": True, "clip_norm": 0.0},
    ),
    "SpanBERT": (
        partial(pretrainer, objectives=("masked_lm", "span_boundary")), records(),
    ),
    "DistilBERT": (
        partial(
            student, objectives=("masked_lm", "soft_targets", "cosine_states"), type_vocab_size=0,
        ),
        records(),
    ),
    "TinyBERT": (partial(student, objectives=("transformer_layers",)), records()),
    "VideoBERT": (
        with_visual_words,
        records() | ones("alignment_labels", ROWS, 1)
        | ones("alignment_weights", ROWS, 1, dtype=np.float32),
    ),
    "ELMo": (partial(elmo, objectives=("adjacent_words",)), records()),
    "ULMFiT": (
        partial(pretrainer, objectives=("next_token",), **LSTMS), records(),
    ),
    "G-BERT, pre-training": (
        partial(sets, kind=graph_codes.VisitPretrainer, sizes={"diagnoses": 3, "medications": 2}),
        SETS | ones("diagnoses_labels", ROWS, 3) | ones("medications_labels", ROWS, 2),
    ),
    "G-BERT": (
        partial(sets, kind=graph_codes.MedicationModel, sizes=2),
        {name: np.stack([x] * 2, 1) for name, x in SETS.items()}
        | ones("labels", ROWS, 2, 2) | ones("asked", ROWS, 2),
    ),
    "classification": (
        partial(head, kind=BertClassifier, num_labels=3),
        batch() | ones("label_ids", ROWS),
    ),
    "regression": (
        partial(head, kind=BertClassifier, num_labels=1, problem="regression"),
        batch() | ones("label_ids", ROWS, dtype=np.float32),
    ),
    "several labels": (
        partial(head, kind=BertClassifier, num_labels=3, problem="multi_label"),
        batch() | ones("label_ids", ROWS, 3),
    ),
    "BiLSTM": (
        partial(head, kind=BertClassifier, num_labels=3, bilstm=True),
        batch() | ones("label_ids", ROWS),
    ),
    "ULMFiT's classifier": (
        partial(head, kind=BertClassifier, num_labels=3, concat_pooling=True, bert=LSTMS),
        batch() | ones("label_ids", ROWS),
    ),
    "span": (
        partial(head, kind=BertSpan),
        batch() | ones("start_positions", ROWS) | ones("end_positions", ROWS),
    ),
    "multiple choice": (
        partial(head, kind=BertMultipleChoice),
        batch(ROWS, CHOICES, LENGTH) | ones("label_ids", ROWS),
    ),
    "tagging": (
        partial(head, kind=BertTagger, num_labels=3),
        batch() | ones("label_ids", ROWS, LENGTH),
    ),
    "windows": (
        partial(head, kind=BertClassifier, num_labels=3, windows="mean"),
        batch(ROWS, CHOICES, LENGTH) | ones("label_ids", ROWS),
    ),
    "with a language model": (with_language_model, batch() | ones("label_ids", ROWS)),
    "distilled": (distilled, batch() | ones("label_ids", ROWS)),
    "features": (
        features,
        batch() | ones("label_ids", ROWS, LENGTH)
        | ones("features", ROWS, LENGTH, 2, 16, dtype=np.float16),
    ),
    "CBOW": (lambda seed: words(seed, CBOW, 6), VECTORS),
    "BiLSTM with attention": (lambda seed: words(seed, BiLSTMAttention, 6, 8), VECTORS),
    **{
        f"writing, {decoder}": (
            partial(writer, decoder=decoder), batch() | ones("label_ids", ROWS, 6),
        ) for decoder in WRITERS
    },
}  # fmt: skip
PLATFORMS = ("cuda", "tpu", "rocm")  # of JAX
PRECISIONS = ("float32", "mixed_bfloat16")
REPLICAS = ("BERT", "ELECTRA", "ELMo", "BiLSTM", "span", "distilled")  # of TensorFlow, side by side
CUDNN = ("BiLSTM", "features")  # where there is a GPU and no XLA


def table():
    """Markdown of docs/programs.md: which programs tests lower, and for what."""
    platforms, precisions = (", ".join(x) for x in (PLATFORMS, PRECISIONS))
    heads = ["step", f"JAX for {platforms}", "TensorFlow under XLA", "its replicas", "cuDNN"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in STEPS:
        more = ["mixed_bfloat16" * (name in some) for some in (REPLICAS, CUDNN)]
        lines.append(f"| {' | '.join([name, precisions, 'mixed_bfloat16', *more])} |")
    return "\n".join(lines)
