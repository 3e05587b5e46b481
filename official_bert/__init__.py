"""BERT (Devlin et al., NAACL 2019) on Keras 3: the model of section 3 of the paper.

Names are imported on first use, so that `import official_bert` needs neither Keras nor TensorFlow,
and tokenising from the command line starts at once.
"""

import importlib

from official_bert.backend.keras_registration import register_later

_HOME_OF = {
    "BertConfig": "config",
    "named_config": "config",
    "BertEncoder": "encoder",
    "BertPretrainer": "pretraining",
    "BertClassifier": "heads",
    "BertSpan": "heads",
    "BertMultipleChoice": "heads",
    "BertTagger": "heads",
    "LayerCombination": "features",
    "BertAdamW": "optimization",
    "BertLamb": "optimization",
    "SlantedTriangular": "optimization",
    "WarmupLinearDecay": "optimization",
    "BertTokenizer": "tokenization",
    "BytePairTokenizer": "tokenization",
    "SentencePieceTokenizer": "tokenization",
    "WordEndTokenizer": "tokenization",
    "load": "checkpoints.resolve",
    "save": "checkpoints.model_folder",
    "UserError": "common.errors",
}

__all__ = sorted(_HOME_OF)
__version__ = "0.1.0"


def __getattr__(name: str):
    if name not in _HOME_OF:
        raise AttributeError(f"module 'official_bert' has no attribute {name!r}")
    return getattr(importlib.import_module(f"official_bert.{_HOME_OF[name]}"), name)


def __dir__():
    return __all__


# What a `.keras` file may name.
register_later(
    [
        "BertEncoder",
        "BertPretrainer",
        "BertClassifier",
        "BertSpan",
        "BertMultipleChoice",
        "BertTagger",
        "BertAdamW",
        "BertLamb",
        "SlantedTriangular",
        "WarmupLinearDecay",
        "LayerCombination",
    ],
    __getattr__,
)
