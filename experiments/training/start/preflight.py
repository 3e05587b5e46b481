"""Checks of a pre-training before TensorFlow is loaded or anything downloaded.

They check files, options, lengths and vocabularies. An error comes within a second or two and names
the flag that mends it. The data that they read is handed on, so that nothing is read twice.
`finetuning_preflight` does the same for a fine-tuning.
"""

import os

from data_prep.jobs import vocabularies
from data_prep.records import open_records
from experiments.training.folder import inputs, shared_prefix
from experiments.training.settings.options import changes
from experiments.training.start import initialization
from official_bert.checkpoints import model_folder
from official_bert.checkpoints.finding import resolve
from official_bert.common.errors import UserError
from official_bert.objectives import check_direction, fills_masks
from official_bert.tokenization import find_vocabulary, load_tokenizer
from official_bert.tokenization.reference import Rules

# Fields of a `BertConfig` in which a model may differ from the weights that it begins with.
_MAY_DIFFER = {
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range"),
    *("gelu_form", "layer_norm_eps", "pad_token_id"),
}


def refuse(config, names, options, what):
    """Raise UserError where a configuration sets one of the fields `names`, or where there are any
    `options`: `what` does not support them."""
    given = [name for name in names if getattr(config, name)]
    for name in [*given, *(next(iter(changes(one))) for one in options)]:
        raise UserError(f"--config.{name} is not for {what}; leave it out")


def pretraining(config):
    """Return the records of each phase of a PretrainConfig, opened.

    Returns: (ModelSource, [(records, held-out records or None)], Inputs).
    Raises:
      UserError: vocabulary, checkpoint or records are missing, or do not fit together.
    """
    source = initialization.of(config)
    source.check_pretraining(config)
    if config.init_from:
        bert, tokenizer = peek(config.init_from, "init_from")
        if bert:
            bert = compatible(config, bert, tokenizer)
    else:
        bert, tokenizer = new_model(config)
    if bert:
        check_direction(config.objectives, bert, "--config.objectives")
    for one in config.model_options:
        one.check_pretraining(config, bert, tokenizer)
    opened = []
    for index, phase in enumerate(config.phases):
        name = f"--config.phases.{index}"
        if not phase.records:
            raise UserError(f"{name}.records is empty; give a folder of records")
        length, model = phase.max_seq_length, (bert, tokenizer)
        records, heldout = _records(phase.records, f"{name}.records", length, *model), None
        if not records.has_predictions and fills_masks({"objectives": config.objectives}):
            raise UserError(
                f"{name}.records={phase.records}: made with masked_lm_prob=0, so masked_lm has "
                "nothing to predict; make them again without it"
            )
        if place := phase.heldout_records:
            length = records.max_seq_length
            heldout = _records(place, f"{name}.heldout_records", length, *model)
        opened.append((records, heldout))
    read = inputs.pretraining_inputs(config, opened)
    if config.trunk:
        shared_prefix.check(config, read)
    return source, opened, read


def new_model(config):
    """Return (BertConfig, Tokenizer) of a pre-training that starts from random weights.

    Raises:
      UserError: there is no vocabulary, or it has another size than the model.
    """
    if not config.bert:
        raise UserError(
            "--config.init_from is empty: name the model to go on from (a folder, or a name on a "
            "hub), or a size for a new one (--config.bert=base)"
        )
    bert, path = config.bert_config, config.vocab or _vocab_beside(config.phases[0].records)
    tokenizer = _tokenizer(path, config)
    if bert.vocab_size != tokenizer.vocab_size:
        raise UserError(
            f"{path} has {tokenizer.vocab_size} entries, but bert.vocab_size is {bert.vocab_size}; "
            f"set --config.bert.vocab_size={tokenizer.vocab_size}"
        )
    return bert, tokenizer


def compatible(config, bert, tokenizer):
    """Return the BertConfig of a pre-training that goes on from a model of this shape and
    vocabulary.

    Raises:
      UserError: the configuration asks for another shape or vocabulary.
    """
    if config.vocab:
        vocab = _tokenizer(config.vocab, config).vocab
        if vocab != tokenizer.vocab:
            raise UserError(
                f"--config.vocab={config.vocab} ({len(vocab)} entries) is not the vocabulary "
                f"of {config.init_from} ({len(tokenizer.vocab)} entries); "
                "leave vocab empty, and make the records with the checkpoint's vocabulary"
            )
    if not config.bert:
        return bert
    if different := differing_sizes(config.bert_config, bert):
        raise UserError(
            f"bert does not fit --config.init_from={config.init_from}: {different}. "
            "--config.bert= (empty) takes the checkpoint's, as --config=pretrain:continue does"
        )
    return config.bert_config


def differing_sizes(wanted, found) -> str:
    """Return how the BertConfig of a model differs from the one that is wanted; "" if it fits."""
    names = (vars(wanted) | vars(found)).keys() - _MAY_DIFFER
    if wanted.attention_direction in found.language_models:  # training may change the direction
        names -= {"attention_direction"}
    return "; ".join(
        f"{name} {wanted.value(name)}, there {found.value(name)}"
        for name in sorted(names)
        if wanted.value(name) != found.value(name)
    )


def check_fit(records, source, bert, tokenizer):
    """Raise UserError unless a model can read the records.

    Args:
      records: of `open_records`.
      source: their name in messages.
      bert, tokenizer: the model's; None where they are not known.
    """
    if bert and records.max_seq_length > bert.max_position_embeddings:
        raise UserError(
            f"{source}: rows of {records.max_seq_length} tokens, but the model has positions for "
            f"{bert.max_position_embeddings}"
        )
    if tokenizer is None:
        return
    found = records.manifest.get("vocab_size")
    if found is not None and found != tokenizer.vocab_size:
        raise UserError(
            f"{source}: made with a vocabulary of {found} entries, the model's has "
            f"{tokenizer.vocab_size}; make the records again with it"
        )
    # Its copy beside the records, for two vocabularies may have equally many pieces.
    path = found and vocabularies.find_vocabulary(records.folder, required=False)
    if path and vocabularies.load_tokenizer(path).vocab != tokenizer.vocab:
        raise UserError(
            f"{source}: made with another vocabulary, {path}, than the model's; make the records "
            "again with the model's"
        )
    made = records.manifest.get("options")
    if made is not None and not isinstance(made, dict):
        raise UserError(f"{source}: options in its manifest.json must be a JSON object")
    for name, ours in tokenizer.options.items() if made else ():
        theirs = made.get(name, Rules._field_defaults[name])
        if theirs != ours:
            raise UserError(f"{source}: made with {name}={theirs}, the model has {ours}")


def _records(source, name, max_seq_length, bert, tokenizer):
    try:
        records = open_records(source, max_seq_length=max_seq_length or None)
    except UserError as error:
        raise UserError(f"{name}={source}: {error}") from None
    check_fit(records, f"{name}={source}", bert, tokenizer)
    return records


def shape(config):
    """Return (BertConfig, Tokenizer) of a FinetuneConfig, both None for a preset."""
    if config.model:
        return peek(config.model, "model")
    tokenizer = _tokenizer(config.vocab, config)
    model_folder.check_vocabulary(config.bert_config, len(tokenizer.vocab), config.vocab)
    return config.bert_config, tokenizer


def peek(path, name):
    """Return (BertConfig, Tokenizer) of the model that a field names, both None for a preset."""
    try:
        bert, tokenizer = resolve.peek(path) or (None, None)
    except UserError as error:
        raise UserError(f"--config.{name}={path}: {str(error).removeprefix(f'{path}: ')}") from None
    if bert and not tokenizer:
        raise UserError(f"--config.{name}={path}: it has no vocabulary, and training needs one")
    return bert, tokenizer


def _tokenizer(path, config):
    if not os.path.isfile(path):
        raise UserError(f"--config.vocab={path}: no such file")
    return load_tokenizer(path, config.do_lower_case)


def _vocab_beside(records):
    path = find_vocabulary(records) if records else None
    if path is None:
        raise UserError("--config.vocab is empty, and no vocabulary lies beside the records")
    return path
