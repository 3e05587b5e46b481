"""The options of models that write texts."""

import dataclasses

from experiments.beyond.seq2seq.head import DECODERS, RNN_DECODERS
from experiments.training.settings.options import Options
from official_bert.common.errors import UserError, check_choice


@dataclasses.dataclass(frozen=True)
class Decoder(Options):
    """The decoder that writes the text."""

    # In text_to_text: "separate" (BERT2BERT), "shared" with the encoder (BertShare), "prefix"
    # (UniLM's mask); GRUs, "rnn" or "rnn_attention", of the sizes of `bert`, with random weights.
    decoder: str = "separate"

    def __post_init__(self):
        check_choice("decoder", self.decoder, (*DECODERS, *RNN_DECODERS), "configuration")

    def check_model(self, config, task, bert):
        if task.head["head"] != "text":
            raise UserError(
                f"--config.decoder={self.decoder} is for text_to_text, not {config.task}"
            )

    def head(self):
        return {"decoder": self.decoder}
