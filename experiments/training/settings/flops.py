"""Floating-point operations of a step, a pre-training or a fine-tuning, from shapes.

Multiplications and additions of matrix products are counted (2 m n k each). The backward pass
counts as two forward passes. Recomputation and element-wise work are not counted: they show as a
lower measured rate.
"""

from data_prep.tasks import class_of as class_of_task
from experiments.training.settings.config import FinetuneConfig
from official_bert.extension import find, names
from official_bert.objectives import parse_spec

# FLOPs a second on two cores, where nothing was measured: of small matrix products, and of LSTMs,
# which read word by word.
RATE, LSTM_RATE = 3e10, 2e10


def bilstm_flops(bert, combination: str, width: int, tokens: int) -> float:
    """Return the FLOPs of one forward pass of Table 7's two BiLSTMs."""
    inputs = bert.hidden_size * (4 if combination == "concat_last_four" else 1)
    return lstm_flops([inputs, width], width, tokens)


def lstm_flops(inputs: list[int], width: int, tokens: int) -> float:
    """Return the FLOPs of one forward pass of stacked BiLSTMs: four gates in each direction.

    Args:
      inputs: width of each layer's input.
      width: of every output, both directions together."""
    half = width // 2
    return 2.0 * tokens * sum(2 * 4 * half * (read + half) for read in inputs)


def next_tokens(bert, options, rows: int, length: int, masked: int) -> float:
    """Return the FLOPs of a left-to-right model's scores (see `objective_flops`)."""
    return bert.head_flops(rows * round(options.get("fraction", 1.0) * (length - 1)))


_OF_OBJECTIVES = {
    "masked_lm": lambda bert, _, rows, length, masked: bert.head_flops(rows * masked),
    "next_token": next_tokens,
}


def objective_flops(bert, spec, rows: int, length: int, masked: int) -> float:
    """Return the FLOPs of one forward pass of an objective's part beside the encoder.

    Args:
      bert: BertConfig.
      spec: the objective as a name or {"name": ..., option: ...} (`official_bert.objectives`).
      rows: of the batch.
      length: tokens a row.
      masked: masked positions a row of the records.
    """
    name, options = parse_spec(spec)
    if name not in _OF_OBJECTIVES and name not in names("flops"):
        return 0.0
    return find("flops", name, _OF_OBJECTIVES)(bert, options, rows, length, masked)


def pretraining_step_flops(bert, objectives, sequences: int, length: int, masked: int) -> float:
    """Return the FLOPs of one pre-training step, without what a teacher does.

    Args:
      objectives: as in PretrainConfig.
      sequences, length, masked: as for `objective_flops`.
    """
    heads = sum(objective_flops(bert, one, sequences, length, masked) for one in objectives)
    return 3 * (bert.encoder_flops(sequences, length) + heads)


def usual_predictions(length: int) -> int:
    """Return the predicted positions of a row whose records are not known: 16 in 100, as BERT's
    records have room for 20 in 128 and 77 in 512."""
    return max(1, round(0.16 * length))


def tuned_flops(config: FinetuneConfig, bert, rows: int, length: int) -> float:
    """Return the FLOPs of one forward pass of the fine-tuned part on [rows, length] tokens.

    On a frozen encoder (`features`) these are the BiLSTMs alone.
    """
    if config.features:
        return bilstm_flops(bert, config.features, config.feature_width, rows * length)
    flops = class_of_task(config.task).forward_flops(bert, rows, length)
    if config.bilstm:
        flops += lstm_flops([bert.hidden_size], bert.hidden_size, rows * length)
    return flops


def finetune_flops(config: FinetuneConfig, bert, train_examples: int, dev_examples: int) -> float:
    """Return the FLOPs of fine-tuning and evaluation of the part that is tuned, an upper bound.

    Every example is taken at its full length, and training as not stopped early.
    """
    one = tuned_flops(config, bert, 1, config.max_seq_length)
    return one * (3 * config.num_train_epochs * train_examples + dev_examples)
