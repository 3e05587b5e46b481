"""Perplexity of a text under a model that reads left to right (Radford et al. 2019, section 3.1).

    official-bert perplexity --model=runs/own/model --input=heldout.txt

A text that is longer than the model's positions is read in windows. Each begins --stride tokens
behind the one before it, and its loss is that of the tokens which no window before it predicted. So
but for the first window a token is predicted from at least (length of a window - stride) tokens. A
smaller stride gives more context and a lower perplexity, and takes more time. GPT-2 has no token
that begins a text, so the text's first token is not predicted.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from data_prep.corpus.text_files import text_lines
from data_prep.jobs import command_flags, commands
from official_bert.backend import tensorflow_start
from official_bert.common.errors import UserError


def perplexity(model, text: str, stride: int = 0, window: int = 0) -> dict[str, float]:
    """Measure how well a language model foretells a text.

    Args:
      model: a `predict.Model` that reads left to right.
      text: of two tokens at least.
      stride: tokens between the begins of two windows; 0: half of a window.
      window: tokens of a window; 0: the model's positions.

    Returns: {"perplexity", "loss" in nats a token, "bits_per_byte" of the text's UTF-8, "tokens"
      that are predicted}.

    Raises:
      UserError: the model has no language-model head or sees what comes next, the text is too
        short, or a window does not fit.
    """
    from experiments.beyond.common.generation import of_language_model, prompt
    from official_bert.backend.compiled import compiled
    from official_bert.losses import cross_entropy

    step = of_language_model(model)
    ids = np.array(prompt(model.tokenizer, text), "int32")
    positions = model.config.max_position_embeddings
    window, stride = window or positions, stride or max(1, (window or positions) // 2)
    if not 2 <= window <= positions or not 1 <= stride < window:
        raise UserError(
            f"window={window}, stride={stride}: a window has 2 to {positions} tokens, the model's "
            "positions, and a stride is shorter than a window"
        )
    if len(ids) < 2:
        raise UserError("the text has fewer than two tokens: there is none to predict")
    window = min(window, len(ids))

    def losses(batch):
        states = step.encoder(batch)["sequence_output"][:, :-1]
        scores = step.head(states, step.encoder.embeddings.word_embeddings)[..., : step.entries]
        return cross_entropy(scores, batch["input_ids"][:, 1:])

    of_window, total = compiled(model.model, losses), 0.0
    for start, new in windows(len(ids), window, stride):
        row = np.pad(ids[start : start + window], (0, max(0, start + window - len(ids))))
        real = np.arange(window) < len(ids) - start
        found = of_window({"input_ids": row[None], "input_mask": real[None].astype("int32")})[0]
        total += float(found[: real.sum() - 1][-new:].sum(dtype="float64"))
    count = len(ids) - 1
    return {
        "perplexity": math.exp(total / count),
        "loss": total / count,
        "bits_per_byte": total / math.log(2) / len(text.encode()),
        "tokens": count,
    }


def windows(tokens: int, window: int, stride: int) -> Iterator[tuple[int, int]]:
    """Yield (begin, number of the last tokens that it predicts first) of each window.

    >>> list(windows(10, 6, 3))
    [(0, 5), (3, 3), (6, 1)]
    """
    end = 1  # the first token is predicted by none
    for start in range(0, tokens, stride):
        last = min(start + window, tokens)
        yield start, last - end
        end = last
        if last == tokens:
            return


def run(model: str, input: str, stride: int = 0, window: int = 0) -> dict[str, float]:
    """Return `perplexity` of a model and a text file.

    Args:
      model: a folder of any known kind, or a name.
      input: a text file, plain or compressed; its lines are one text.
      stride: tokens between the begins of two windows; 0: half of a window.
      window: tokens of a window; 0: the model's positions.

    Raises:
      UserError: as `perplexity`, or the file or the model is none.
    """
    if not Path(input).is_file():
        raise UserError(f"--input={input}: no such file")
    text = "\n".join(text_lines(input))
    tensorflow_start.import_tensorflow()
    import official_bert

    return perplexity(official_bert.load(model), text, stride, window)


def main(_) -> None:
    print(json.dumps(run(**command_flags.values(run)), indent=2))


def _define_flags() -> None:
    command_flags.define(run, least={"stride": 0, "window": 0})


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
