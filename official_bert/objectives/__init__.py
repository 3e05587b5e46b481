"""The paper's objectives of pre-training, and how objectives are written and checked.

Begin with `masked_lm` and `sentence_pair` (section 3.1); `next_token` is the model that section 5.1
compares with. `protocol` says what an objective is, `official_bert.pretraining` adds them up.

Configurations and model folders write an objective as its name, "masked_lm", or with options,
{"name": "next_token", "fraction": 0.3}. Importing this package needs neither Keras nor TensorFlow.
"""

from collections.abc import Iterable
from typing import Any

from official_bert.common.errors import UserError
from official_bert.common.json_files import fields_of
from official_bert.config import BertConfig
from official_bert.extension import check_name, find

Spec = str | dict[str, Any]
BERT = ("masked_lm", "next_sentence")  # section 3.1
OBJECTIVES = {
    "masked_lm": "official_bert.objectives.masked_lm:MaskedLM",
    "next_token": "official_bert.objectives.next_token:NextToken",
    "next_sentence": "official_bert.objectives.sentence_pair:NextSentence",
}


def parse_spec(written: Spec, source: str = "objectives") -> tuple[str, dict[str, Any]]:
    """Return (name, options) of an objective as it is written.

    Raises:
      UserError: there is no such objective. `source` starts the message.
    """
    options = dict(written) if isinstance(written, dict) else {"name": written}
    name = options.pop("name", None)
    check_name("objectives", name, OBJECTIVES, source)
    return name, options


def check_direction(written: Iterable[Spec], bert: Any, source: str = "objectives") -> None:
    """Raise UserError where an objective is the language model of the other direction.

    Other objectives check the direction when they are built.
    """
    for name in (parse_spec(one)[0] for one in written):
        if name in BertConfig.language_models.values() and name != bert.language_model:
            refuse_direction(name, bert, source)


def refuse_direction(name: str, bert: Any, source: str = "objectives") -> None:
    """Raise UserError: an objective is not for the `attention_direction` of a `BertConfig`."""
    raise UserError(
        f"{source}: {name} is not for a model whose attention_direction is "
        f"{bert.attention_direction!r}; write {bert.language_model} in its place"
    )


def fills_masks(settings: dict[str, Any]) -> bool:
    """Return whether the pre-trainer of a `model.json` has a masked-LM head on the encoder."""
    return any(parse_spec(one)[0] == "masked_lm" for one in settings["objectives"])


def objective(written):
    """Return the `protocol.Objective` that is written; an objective is returned as it is.

    Raises:
      UserError: there is no such objective, or it has no such option or value.
    """
    if not isinstance(written, str | dict):
        return written
    name, options = parse_spec(written)
    cls = find("objectives", name, OBJECTIVES)
    return cls(**fields_of(cls, options, f"objective {name}"))
