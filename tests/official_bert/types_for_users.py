"""The public API as a type checker shows it to users; `make lint` checks it, nothing runs it."""

from typing import Any, assert_type

import numpy as np

import official_bert
from official_bert.predict import Model


def answers() -> None:
    model = official_bert.load("google-bert/bert-base-uncased", revision="main")
    assert_type(model, Model)
    assert_type(model.config, official_bert.BertConfig)
    assert_type(model.fill_mask("a [MASK]"), dict[str, Any])
    assert_type(model.fill_mask(["a [MASK]"]), list[dict[str, Any]])
    assert_type(model.predict("a"), dict[str, Any])
    assert_type(model.predict(["a"], ["b"], batch_size=1), list[dict[str, Any]])
    assert_type(model.embed("a", pooling="cls", layer=2), np.ndarray)
    official_bert.load("tiny-wikipedia").predict(1)  # type: ignore[call-overload]


def models() -> None:
    config = official_bert.named_config("tiny", vocab_size=100)
    assert_type(config, official_bert.BertConfig)
    assert_type(config.hidden_size, int)
    encoder = official_bert.BertEncoder(config, seed=1)
    official_bert.BertClassifier(encoder, 2)
    official_bert.BertPretrainer(config)
    official_bert.BertEncoder("base")  # type: ignore[arg-type]
    official_bert.BertConfig(hidden="768")  # type: ignore[call-arg]
    print(official_bert.bert_base)  # type: ignore[attr-defined]


def texts() -> None:
    tokenizer = official_bert.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    assert_type(tokenizer(["a"], max_length=8), dict[str, np.ndarray])
    assert_type(tokenizer.tokenize("a"), list[str])
    tokenizer(["a"], max_length="8")  # type: ignore[arg-type]


def errors() -> None:
    try:
        official_bert.load("a", remat=True)
    except official_bert.UserError as error:
        assert_type(error, official_bert.UserError)
