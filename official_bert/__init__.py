"""BERT (Devlin et al., NAACL 2019) on Keras 3: the model of section 3 of the paper.

To learn how BERT works, read `config`, `layers` and `encoder` (the Transformer), then
`objectives.masked_lm`, `objectives.sentence_pair` and `pretraining` (what it learns from text),
`heads` (fine-tuning) and `optimization`; `losses` and `randomness` say how a batch may be divided.
`predict` is the top: a loaded model that answers texts. The rooms are `tokenization`, `checkpoints`
and `export`; `backend` and `common` serve all.

Names are imported on first use, so that `import official_bert` needs neither Keras nor TensorFlow,
and tokenising from the command line starts at once.
"""

import importlib
from typing import TYPE_CHECKING, Any

from official_bert import extension
from official_bert.backend.keras_registration import register_later

# The same names for type checkers, which do not run `__getattr__`.
if TYPE_CHECKING:
    from official_bert.checkpoints.model_folder import save as save
    from official_bert.common.errors import UserError as UserError
    from official_bert.config import BertConfig as BertConfig
    from official_bert.config import named_config as named_config
    from official_bert.encoder import BertEncoder as BertEncoder
    from official_bert.export.tokenizer_layer import TokenizerLayer as TokenizerLayer
    from official_bert.features import LayerCombination as LayerCombination
    from official_bert.heads import BertClassifier as BertClassifier
    from official_bert.heads import BertMultipleChoice as BertMultipleChoice
    from official_bert.heads import BertSpan as BertSpan
    from official_bert.heads import BertTagger as BertTagger
    from official_bert.optimization import BertAdamW as BertAdamW
    from official_bert.optimization import BertLamb as BertLamb
    from official_bert.optimization import WarmupLinearDecay as WarmupLinearDecay
    from official_bert.predict import Model as Model
    from official_bert.predict import load as load
    from official_bert.pretraining import BertPretrainer as BertPretrainer
    from official_bert.tokenization import BertTokenizer as BertTokenizer

_HOME_OF = {
    "BertConfig": "config",
    "named_config": "config",
    "Model": "predict",
    "load": "predict",
    "save": "checkpoints.model_folder",
    "UserError": "common.errors",
    "BertTokenizer": "tokenization",
}
# Names that a `.keras` file may hold.
_OF_KERAS = {
    "BertEncoder": "encoder",
    "BertPretrainer": "pretraining",
    "BertClassifier": "heads",
    "BertSpan": "heads",
    "BertMultipleChoice": "heads",
    "BertTagger": "heads",
    "LayerCombination": "features",
    "BertAdamW": "optimization",
    "BertLamb": "optimization",
    "WarmupLinearDecay": "optimization",
    "TokenizerLayer": "export.tokenizer_layer",
}
_HOME_OF |= _OF_KERAS

__all__ = sorted(_HOME_OF)
__version__ = "0.2.0"


def _named(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'official_bert' has no attribute {name!r}")
    return getattr(importlib.import_module(f"official_bert.{_HOME_OF[name]}"), name)


def _of_keras(name: str) -> Any:
    return _named(name) if name in _OF_KERAS else extension.find("keras", name)


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # type checkers know the names above and refuse others
    __getattr__ = _named

register_later(lambda: [*_OF_KERAS, *extension.names("keras")], _of_keras)
