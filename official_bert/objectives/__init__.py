"""Objectives of pre-training: the paper's, one file each; others are registered.

Configurations and model folders write an objective as its name, "masked_lm", or with options,
{"name": "next_token", "fraction": 0.3}. Importing this package needs neither Keras nor TensorFlow.
"""

from typing import Any

from official_bert.common.errors import UserError, check_choice
from official_bert.common.registry import NEED_TEACHER, OBJECTIVES

Written = str | dict[str, Any]


def of_bert(
    attention_direction: str, use_nsp: bool = True, left_to_right_fraction: float = 1.0
) -> tuple[Written, ...]:
    """The objectives of the models of section 5.1, as they are written.

    Args:
      attention_direction: of the `BertConfig`; left-to-right models predict the next token, shallow
        concatenations those on both sides.
      use_nsp: False for "No NSP".
      left_to_right_fraction: `fraction` of `NextToken`.
    """
    names = {"left_to_right": "next_token", "shallow_concatenation": "adjacent_tokens"}
    language_model: Written = names.get(attention_direction, "masked_lm")
    if language_model != "masked_lm" and left_to_right_fraction != 1.0:
        language_model = {"name": language_model, "fraction": left_to_right_fraction}
    return (language_model, "next_sentence") if use_nsp else (language_model,)


def parts(written: Written, source: str = "objectives") -> tuple[str, dict[str, Any]]:
    """(name, options) of an objective as it is written.

    Raises:
      UserError: there is no such objective. `source` starts the message.
    """
    options = dict(written) if isinstance(written, dict) else {"name": written}
    name = options.pop("name", None)
    check_choice("objective", name, OBJECTIVES, source)
    return name, options


def fills_masks(settings: dict[str, Any]) -> bool:
    """Whether the pre-trainer of a `model.json` has a masked-LM head that reads the encoder:
    ELECTRA's is its generator's."""
    return any(parts(one)[0] == "masked_lm" for one in settings.get("objectives") or ["masked_lm"])


def needs_teacher(written: Written) -> bool:
    """Whether an objective compares a model with a teacher (`Objective.of_teacher`)."""
    return parts(written)[0] in NEED_TEACHER


def objective(written):
    """The `protocol.Objective` of what is written; an objective is returned as it is.

    Raises:
      UserError: there is no such objective, or it has no such option.
    """
    if not isinstance(written, str | dict):
        return written
    name, options = parts(written)
    try:
        return OBJECTIVES.load(name)(**options)
    except TypeError as error:
        raise UserError(f"objective {name}: {error}") from None
