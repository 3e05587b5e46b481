"""Small models of what is beyond the paper, with a batch of each, for `tiny_steps`."""

from functools import partial

import numpy as np
import tiny_runs
from tiny_steps import LEFT, LENGTH, ROWS, batch, head, ones, pretrainer, records

from experiments.beyond.distil.distillation import Distilled, taught
from experiments.beyond.distil.teachers import Teacher
from experiments.beyond.elmo.model import ELMo
from experiments.beyond.elmo.shape import ElmoConfig
from experiments.beyond.elmo.words_of_pieces import WordsOfPieces
from experiments.beyond.gbert import model as graph_codes
from experiments.beyond.gpt.gpt2_names import GPT2
from experiments.beyond.gpt.model import AuxiliaryLanguageModel
from experiments.beyond.gpt.names import OPENAI_GPT
from experiments.beyond.sentence_vectors.model import SentenceEncoder
from experiments.beyond.seq2seq.head import DECODERS, RNN_DECODERS
from experiments.beyond.ulmfit.classifier import ConcatPoolingClassifier
from experiments.beyond.video import model as video
from experiments.beyond.words.model import CBOW, BiLSTMAttention
from official_bert import BertEncoder, BertTokenizer
from official_bert.heads import BertClassifier, build_head
from official_bert.pretraining import BertPretrainer


def student(seed, objectives, **fields):
    told = BertPretrainer(tiny_runs.bert(num_hidden_layers=2), ("masked_lm",), seed=1)
    return pretrainer(seed, taught(objectives, Teacher(told)), **fields)


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


def sets(seed, kind, sizes):
    """Return a model of G-BERT's; codes 5 and 6 are below 4, and that below 3."""
    encoder = graph_codes.SetEncoder(tiny_runs.bert(), [-1, -1, -1, -1, 3, 4, 4, -1], seed=seed)
    return kind(encoder, tiny_runs.bert().hidden_size, sizes, seed)


def writer(seed, decoder):
    head = {"head": "text", "decoder": decoder, "longest": 6, "beams": 2, "length_penalty": 1.0}
    return build_head(BertEncoder(tiny_runs.bert(), seed=seed), head, seed=seed)


def sentences(seed, **options):
    return SentenceEncoder(BertEncoder(tiny_runs.bert(), seed=seed), seed=seed, **options)


def with_visual_words(seed):
    return video.pretrainer(tiny_runs.bert(), np.ones((3, 16)), frozen=True, seed=seed)


def words(seed, kind, *sizes):
    return kind(*sizes, {"num_labels": 3, "problem": "single_label"}, True, seed=seed)


VECTORS = batch() | ones("label_ids", ROWS) | ones("vectors", ROWS, LENGTH, 6, dtype=np.float32)
SETS = ones("diagnoses", ROWS, 4) | ones("medications", ROWS, 3)
LSTMS = {"recurrent": True, "num_attention_heads": 1}
BOTH = {"attention_direction": "shallow_concatenation"}
WRITERS = (*DECODERS, *RNN_DECODERS)
STEPS = {
    "OpenAI GPT": (partial(pretrainer, objectives=("next_token",), **OPENAI_GPT), records()),
    "GPT-2": (partial(pretrainer, objectives=("next_token",), **GPT2), records()),
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
    "ULMFiT's classifier": (
        partial(head, kind=ConcatPoolingClassifier, num_labels=3, bert=LSTMS),
        batch() | ones("label_ids", ROWS),
    ),
    "with a language model": (with_language_model, batch() | ones("label_ids", ROWS)),
    "distilled": (distilled, batch() | ones("label_ids", ROWS)),
    "sentence vectors": (sentences, {name: np.stack([x] * 2, 1) for name, x in batch().items()}),
    "CBOW": (lambda seed: words(seed, CBOW, 6), VECTORS),
    "BiLSTM with attention": (lambda seed: words(seed, BiLSTMAttention, 6, 8), VECTORS),
    **{
        f"writing, {decoder}": (
            partial(writer, decoder=decoder), batch() | ones("label_ids", ROWS, 6),
        ) for decoder in WRITERS
    },
}  # fmt: skip
REPLICAS = ("ELECTRA", "ELMo", "distilled")
