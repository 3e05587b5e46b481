"""The head that writes a text, found by its name; needs no Keras until a model is built."""

import dataclasses
from pathlib import Path
from typing import Any

from official_bert.common.errors import UserError, check_choice
from official_bert.common.json_files import field, shorten
from official_bert.export.settings import ServingSettings
from official_bert.extension import load

# Writers of texts: Transformers, and GRUs that they are compared with.
DECODERS = ("separate", "shared", "prefix")
RNN_DECODERS = ("rnn", "rnn_attention")
_MOST = {"longest": 1 << 16, "beams": 1 << 8}


def check_writing(where: str = "", **given: float) -> None:
    """Check `longest`, `beams` and `length_penalty` of what writes, or some of them.

    Args:
      where: what the message begins with.
      **given: whole numbers, the last a number.

    Raises:
      UserError: one is beyond what a search can do.
    """
    for name, value in given.items():
        if name in _MOST and not 1 <= value <= _MOST[name]:
            told = f"a whole number from 1 to {_MOST[name]:,}"
        elif name not in _MOST and not abs(value) <= 1e6:
            told = "a number from -1,000,000 to 1,000,000"
        else:
            continue
        raise UserError(f"{where}{name} must be {told}, not {shorten(value)}")


@dataclasses.dataclass(frozen=True)
class WriterSettings(ServingSettings):
    """Settings of an export that writes texts.

    Attributes:
      beams: texts that are followed at a time; 1 is the greedy text.
      length_penalty: above 0 longer texts become likelier.
    """

    beams: int = 1
    length_penalty: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        check_writing(beams=self.beams, length_penalty=self.length_penalty)


class TextHead:
    """The answers of a text head to the core's questions.

    Attributes:
      exports: what its models can be exported as, the default first.
      settings: the class of the settings of an export.
    """

    exports = ("text",)
    settings = WriterSettings

    def class_of(self, description: dict[str, Any]) -> type:
        """Return the class that a description with its "decoder" asks for."""
        rnn = description["decoder"] in RNN_DECODERS
        name = "rnn:RNNSeq2Seq" if rnn else "model:Seq2Seq"
        return load(f"experiments.beyond.seq2seq.{name}")

    def check(self, settings: dict[str, Any], path: Path) -> None:
        """Check the fields of a `model.json`.

        Raises:
          UserError: one is missing or impossible.
        """
        check_choice("decoder", settings.get("decoder"), (*DECODERS, *RNN_DECODERS), str(path))
        kinds = {"longest": int, "beams": int, "length_penalty": (int, float)}
        check_writing(f"{path}: ", **{n: field(settings, n, of, path) for n, of in kinds.items()})

    def check_export(self, settings, format: str, source: str) -> None:
        """Check the `ServingSettings` of an export.

        Raises:
          UserError: the format or the precision has no place for what writes.
        """
        if format != "saved_model":
            raise UserError(
                f"{source} writes texts, which files of token ids do not; a SavedModel does"
            )
        if settings.precision != "float32":
            raise UserError(
                f"precision={settings.precision!r}: what writes texts is served in float32"
            )

    def answers(self, model) -> tuple:
        """Return (key, function of a batch, function of a tokeniser and the outputs) of a model,
        `predict.Model` asks the first two and gives the answers of the last."""
        return ("write", model.beams, model.length_penalty), model, decode_outputs


def decode_outputs(tokenizer, outputs: list[dict]) -> list[dict]:
    """Return {"output": text} of each, from its "output_ids", -1 behind the end."""
    entries = tokenizer.vocab_size  # a padded table has rows that are no words
    rows = ([int(i) for i in output["output_ids"] if 0 <= i < entries] for output in outputs)
    return [{"output": tokenizer.decode(row)} for row in rows]


TEXT = TextHead()
