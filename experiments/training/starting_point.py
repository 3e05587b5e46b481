"""What a run starts from: a model's shape, its vocabulary, and weights or none."""

import collections
import dataclasses
import os
from pathlib import Path
from typing import Any

from experiments.training import kept_head
from official_bert.checkpoints import model_folder, resolve
from official_bert.config import BertConfig
from official_bert.encoder import BertEncoder
from official_bert.errors import UserError
from official_bert.tokenization import BertTokenizer

# What two BertConfigs must share for weights to fit.
_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "hidden_act",
)
# The models of the last runs, so that a search does not read its own again for every cell.
_KEPT = 2
_read: collections.OrderedDict = collections.OrderedDict()


@dataclasses.dataclass(frozen=True)
class StartingPoint:
    """What a run starts from.

    Attributes:
      bert: BertConfig.
      tokenizer: BertTokenizer.
      weights: the encoder's arrays; None for random ones.
      head: what kind of head `head_weights` are of: the settings of its `model.json`.
      head_weights: the arrays of the model's own head or pre-training heads, where it has them.
    """

    bert: BertConfig
    tokenizer: Any
    weights: list | None = None
    head: dict | None = None
    head_weights: list | None = None

    def encoder(self, config, seed, **options):
        """A new BertEncoder with the weights.

        Args:
          config: PretrainConfig or FinetuneConfig.
          seed: of random weights and of dropout.
          **options: of `BertEncoder`.
        """
        encoder = BertEncoder(self.bert, remat=config.remat, seed=seed, **options)
        if self.weights is not None:
            _assign(encoder.trainable_variables, self.weights)
        return encoder

    def copy_heads_to(self, model):
        """Gives a BertPretrainer the weights of the checkpoint's heads, if it had any."""
        if self.head_weights is not None and self.head["head"] == "pretraining":
            _assign(_heads_of(model), self.head_weights)

    def keep_head(self, model, head, bilstm):
        """Gives the model to fine-tune the head that this one has, if it fits the task's `head`."""
        if not kept_head.difference(self.head, head, bilstm):
            _assign(_heads_of(model), kept_head.arrays(self.head, head, self.head_weights))


def of_pretraining(config):
    """The StartingPoint of a PretrainConfig.

    Raises:
      UserError: there is no vocabulary, or shape, vocabulary and checkpoint do not fit together.
    """
    if config.init_from:
        found = _read_model(config.init_from, "pre-training")
        return dataclasses.replace(found, bert=_compatible(config, found))
    bert = config.bert_config
    path = config.vocab or _vocab_beside(config.phases[0].records)
    tokenizer = BertTokenizer(path, do_lower_case=config.do_lower_case)
    if bert.vocab_size != tokenizer.vocab_size:
        raise UserError(
            f"{path} has {tokenizer.vocab_size} entries, but bert.vocab_size is {bert.vocab_size}; "
            f"set --config.bert.vocab_size={tokenizer.vocab_size}"
        )
    return StartingPoint(bert, tokenizer)


def of_finetuning(config):
    """The StartingPoint of a FinetuneConfig, with the dropout that it asks for.

    Raises:
      UserError: the model has no vocabulary, or it does not fit the shape.
    """
    if config.model:
        found = _read_model(config.model, "fine-tuning")
    else:
        tokenizer = BertTokenizer(config.vocab, do_lower_case=config.do_lower_case)
        found = StartingPoint(config.bert_config, tokenizer, _initial_weights(config))
        model_folder.check_vocabulary(found.bert, len(tokenizer.vocab), config.vocab)
    if config.dropout < 0:
        return found
    rates = {"hidden_dropout_prob": config.dropout, "attention_probs_dropout_prob": config.dropout}
    return dataclasses.replace(found, bert=dataclasses.replace(found.bert, **rates))


def _initial_weights(config):
    """Those with which a pre-training of the seed `initial_seed` begins; None to draw others."""
    if config.initial_seed < 0:
        return None
    return _arrays(BertEncoder(config.bert_config, seed=config.initial_seed).trainable_variables)


def _read_model(path, purpose):
    key = path, _changed(path)
    if key not in _read:
        loaded = resolve.load(path)
        if loaded.tokenizer is None:
            raise UserError(f"{path} has no vocabulary; {purpose} needs one")
        heads = None if loaded.head == "none" else _heads_of(loaded.model)
        _read[key] = StartingPoint(
            loaded.config,
            loaded.tokenizer,
            _arrays(loaded.encoder.trainable_variables),
            loaded.settings,
            heads and _arrays(heads),
        )
        while len(_read) > _KEPT:
            _read.popitem(last=False)
    return _read[key]


def _changed(path):
    """When the newest file of a model was written; 0 for a preset's name."""
    path = Path(path)
    files = [p for p in path.iterdir() if p.is_file()] if path.is_dir() else []
    return max((file.stat().st_mtime_ns for file in files), default=0)


def _heads_of(pretrainer):
    """The variables of a BertPretrainer that are not its encoder's."""
    encoder = {id(variable) for variable in pretrainer.encoder.trainable_variables}
    return [v for v in pretrainer.trainable_variables if id(v) not in encoder]


def _arrays(variables):
    return [variable.numpy() for variable in variables]


def _assign(variables, arrays):
    for variable, value in zip(variables, arrays, strict=True):
        variable.assign(value)


def _vocab_beside(records):
    path = os.path.join(records, "vocab.txt")
    if not records or not os.path.exists(path):
        raise UserError("configuration: vocab is empty, and no vocab.txt lies beside the records")
    return path


def _compatible(config, found):
    """The BertConfig to continue with; UserError where the checkpoint does not fit."""
    if config.vocab:
        vocab = BertTokenizer(config.vocab, do_lower_case=config.do_lower_case).vocab
        if vocab != found.tokenizer.vocab:
            raise UserError(
                f"{config.vocab} ({len(vocab)} entries) is not the vocabulary "
                f"of {config.init_from} ({len(found.tokenizer.vocab)} entries); "
                "leave vocab empty, and make the records with the checkpoint's vocab.txt"
            )
    if not config.bert:
        return found.bert
    bert = config.bert_config
    different = [
        f"{name} {getattr(bert, name)}, there {getattr(found.bert, name)}"
        for name in _SIZES
        if getattr(bert, name) != getattr(found.bert, name)
    ]
    if different:
        raise UserError(
            f"bert does not fit init_from={config.init_from}: {'; '.join(different)}. "
            "--config.bert= (empty) takes the checkpoint's"
        )
    return bert
