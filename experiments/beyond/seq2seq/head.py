"""The head that writes a text, as its name stands for it; needs no Keras until a model is built."""

from pathlib import Path
from typing import Any

from official_bert.common.errors import UserError, check_choice
from official_bert.common.json_files import field
from official_bert.config import DECODERS, RNN_DECODERS
from official_bert.extension import load


class TextHead:
    """The answers of a text head to the core's questions.

    Attributes:
      exports: what its models can be exported as, the default first.
    """

    exports = ("text",)

    def kind(self, description: dict[str, Any]) -> type:
        """Return the class that a description with its "decoder" asks for."""
        rnn = description["decoder"] in RNN_DECODERS
        name = "rnn:RNNSeq2Seq" if rnn else "model:Seq2Seq"
        return load(f"experiments.beyond.seq2seq.{name}")

    def check(self, settings: dict[str, Any], path: Path) -> None:
        """Check the fields of a `model.json`.

        Raises:
          UserError: one is missing or impossible.
        """
        check_choice("decoder", settings.get("decoder"), DECODERS, str(path))
        for name in ("longest", "beams"):
            if field(settings, name, int, path) < 1:
                raise UserError(
                    f"{path}: {name} must be a positive whole number, not {settings[name]}"
                )
        field(settings, "length_penalty", (int, float), path)

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
        from official_bert.export.text_answers import decode_outputs

        return ("write", model.beams, model.length_penalty), model, decode_outputs


TEXT = TextHead()
