"""Floating-point operations from shapes: of a step, of a pre-training, of a fine-tuning.

Counts are of multiplications and additions in matrix products (2 m n k each). The backward pass
counts as two forward passes; recomputation is not counted, so that it shows as a lower rate.
Element-wise work is not counted either: a measured rate contains it.
"""

from experiments.training.config import FinetuneConfig, PretrainConfig, resolve_bert


def encoder_flops(bert, sequences: int, length: int) -> float:
    """One forward pass of the encoder on [sequences, length] tokens."""
    H, I = bert.hidden_size, bert.intermediate_size
    # Query, key, value, output; feed-forward; attention scores and the values that they weight.
    per_token = 2 * (4 * H * H + 2 * H * I) + 2 * 2 * length * H
    return float(sequences) * length * per_token * bert.num_hidden_layers


def head_flops(bert, predictions: int) -> float:
    """One forward pass of the language-model head on that many positions."""
    return float(predictions) * 2 * bert.hidden_size * (bert.hidden_size + bert.vocab_size)


def bilstm_flops(bert, combination: str, width: int, tokens: int) -> float:
    """One forward pass of Table 7's two BiLSTMs: four gates in each of two directions."""
    inputs = bert.hidden_size * (4 if combination == "concat_last_four" else 1)
    half = width // 2
    return 2.0 * tokens * 2 * 4 * half * ((inputs + half) + (width + half))


def training_flops(bert, sequences: int, length: int, predictions: int = 0) -> float:
    """One training step.

    Args:
      bert: BertConfig.
      sequences: rows of the batch.
      length: tokens a row.
      predictions: positions a row that go through the language-model head; 0: no such head.
    """
    return 3 * (encoder_flops(bert, sequences, length) + head_flops(bert, sequences * predictions))


def predicted_positions(bert, left_to_right_fraction, length: int, max_predictions: int) -> int:
    """Positions a row that go through the language-model head.

    Args:
      left_to_right_fraction: of PretrainConfig.
      length: tokens a row.
      max_predictions: masked positions a row of the records.
    """
    if bert.attention_direction == "left_to_right":
        return round(left_to_right_fraction * (length - 1))
    return max_predictions


def pretrain_flops(config: PretrainConfig, max_predictions: dict[str, int] | None = None) -> float:
    """A whole pre-training. `max_predictions`: records -> predicted positions a row, if known."""
    bert = resolve_bert(config.bert)
    total = 0.0
    for phase in config.phases:
        length = phase.max_seq_length
        masked = (max_predictions or {}).get(phase.records, round(0.16 * length))
        predictions = predicted_positions(bert, config.left_to_right_fraction, length, masked)
        batch = phase.train_batch_size or config.train_batch_size
        total += training_flops(bert, batch, length, predictions) * phase.num_train_steps
    return total


def finetune_flops(config: FinetuneConfig, bert, train_examples: int, dev_examples: int) -> float:
    """Fine-tuning and evaluation, every example taken as full length (an upper bound).

    On a frozen encoder only the BiLSTMs run each epoch; the encoder runs once for all such runs.
    """
    one = encoder_flops(bert, 1, config.max_seq_length)
    if config.features:
        one = bilstm_flops(bert, config.features, config.feature_width, config.max_seq_length)
    return one * (3 * config.num_train_epochs * train_examples + dev_examples)
