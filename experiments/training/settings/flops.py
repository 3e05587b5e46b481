"""Floating-point operations from shapes: of a step, of a pre-training, of a fine-tuning.

Counts are of multiplications and additions in matrix products (2 m n k each). The backward pass
counts as two forward passes; recomputation is not counted, so that it shows as a lower rate.
Element-wise work is not counted either: a measured rate contains it.
"""

from experiments.training.settings.config import FinetuneConfig, PretrainConfig, resolve_bert
from official_bert.objectives import parts


def head_flops(bert, predictions: int) -> float:
    """One forward pass of the language-model head on that many positions."""
    return bert.head_flops(predictions)


def bilstm_flops(bert, combination: str, width: int, tokens: int) -> float:
    """One forward pass of Table 7's two BiLSTMs."""
    inputs = bert.hidden_size * (4 if combination == "concat_last_four" else 1)
    return lstm_flops([inputs, width], width, tokens)


def lstm_flops(inputs: list[int], width: int, tokens: int) -> float:
    """One forward pass of BiLSTMs that read so many numbers a token and write `width`: four gates
    in each of two directions."""
    half = width // 2
    return 2.0 * tokens * sum(2 * 4 * half * (read + half) for read in inputs)


def training_flops(bert, sequences: int, length: int, predictions: int = 0) -> float:
    """One training step.

    Args:
      bert: BertConfig.
      sequences: rows of the batch.
      length: tokens a row.
      predictions: positions a row that go through the language-model head; 0: no such head.
    """
    return 3 * (bert.encoder_flops(sequences, length) + head_flops(bert, sequences * predictions))


def predicted_positions(written, length: int, masked: int) -> int:
    """Positions a row of which an objective asks the language-model head.

    Args:
      written: the objective, as `official_bert.objectives` writes it.
      length: tokens a row.
      masked: masked positions a row of the records.
    """
    name, options = parts(written)
    if name in ("next_token", "adjacent_tokens", "adjacent_words"):
        directions = 1 if name == "next_token" else 2
        return directions * round(options.get("fraction", 1.0) * (length - 1))
    return masked if name == "masked_lm" else 0


def _boundary_flops(bert, written, sequences: int, masked: int) -> float:
    """One forward pass of SpanBERT's head: a wider dense layer, then a language-model head."""
    name, options = parts(written)
    if name != "span_boundary":
        return 0.0
    wide = 2 * bert.hidden_size * (2 * bert.hidden_size + options.get("position_size", 200))
    return sequences * masked * wide + head_flops(bert, sequences * masked)


def _generator_flops(bert, written, sequences: int, length: int, masked: int) -> float:
    """One forward pass of ELECTRA's generator and of the encoder's scores of all tokens."""
    name, options = parts(written)
    if name != "replaced_token":
        return 0.0
    generator = bert.narrower(options.get("generator", 0.25))
    scores = sequences * length * 2 * bert.hidden_size * (bert.hidden_size + 1)
    pieces = head_flops(generator, sequences * masked)
    return generator.encoder_flops(sequences, length) + pieces + scores


def _teacher_head(written, length: int, masked: int) -> int:
    """Positions a row of which "soft_targets" asks both language-model heads."""
    name, options = parts(written)
    if name != "soft_targets":
        return 0
    return length if options.get("every_token", True) else masked


def teacher_step_flops(teacher, objectives, sequences: int, length: int, masked: int) -> float:
    """What a teacher (a BertConfig) does in one step: a forward pass, never a backward one.

    Args: see `pretraining_step_flops`.
    """
    positions = sum(_teacher_head(written, length, masked) for written in objectives)
    return teacher.encoder_flops(sequences, length) + head_flops(teacher, sequences * positions)


def pretraining_step_flops(bert, objectives, sequences: int, length: int, masked: int) -> float:
    """One pre-training step, without what a teacher does.

    Args:
      objectives: as they are written.
      masked: masked positions a row of the records.
    """
    predictions = sum(
        predicted_positions(written, length, masked) + _teacher_head(written, length, masked)
        for written in objectives
    )
    beside = sum(
        _generator_flops(bert, written, sequences, length, masked)
        + _boundary_flops(bert, written, sequences, masked)
        for written in objectives
    )
    return training_flops(bert, sequences, length, predictions) + 3 * beside


def pretrain_flops(
    config: PretrainConfig, max_predictions: dict[str, int] | None = None, teacher=None
) -> float:
    """A whole pre-training, or with `teacher`, a BertConfig, what that one does in it.

    Args:
      max_predictions: records -> predicted positions a row, if known.
    """
    bert = resolve_bert(config.bert)
    step_flops = teacher_step_flops if teacher else pretraining_step_flops
    total = 0.0
    for phase in config.phases:
        length = phase.max_seq_length
        masked = (max_predictions or {}).get(phase.records, round(0.16 * length))
        batch = phase.train_batch_size or config.train_batch_size
        step = step_flops(teacher or bert, config.objectives, batch, length, masked)
        total += step * phase.num_train_steps
    return total


def written_flops(bert, sequences: int, length: int) -> float:
    """One forward pass of encoder and decoder, its cross attention counted as two thirds of a
    block's four products, on sources and targets of that length; of GRUs, an estimate."""
    cross = sequences * length * bert.num_hidden_layers * 2 * 4 * bert.hidden_size**2
    return 2 * bert.encoder_flops(sequences, length) + cross + head_flops(bert, sequences * length)


def tuned_flops(config: FinetuneConfig, bert, rows: int, length: int) -> float:
    """One forward pass of what is fine-tuned on [rows, length] tokens.

    On a frozen encoder only the BiLSTMs run each epoch; the encoder runs once for all such runs.
    """
    if config.task == "text_to_text":
        return written_flops(bert, rows, length)
    if config.features:
        return bilstm_flops(bert, config.features, config.feature_width, rows * length)
    return bert.encoder_flops(rows, length)


def finetune_flops(config: FinetuneConfig, bert, train_examples: int, dev_examples: int) -> float:
    """Fine-tuning and evaluation, every example taken as full length (an upper bound)."""
    one = tuned_flops(config, bert, 1, config.max_seq_length)
    return one * (3 * config.num_train_epochs * train_examples + dev_examples)
