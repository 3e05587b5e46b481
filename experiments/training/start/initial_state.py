"""The start of a run from a BERT or another Transformer: shape, vocabulary, and weights or none."""

import collections
import dataclasses
import functools
import glob
from pathlib import Path
from typing import Any

from data_prep.jobs import commands
from experiments.training.settings import flops
from experiments.training.start import initialization, preflight, reuse_head
from official_bert.checkpoints import model_folder
from official_bert.checkpoints.finding import resolve
from official_bert.common.checksums import state
from official_bert.common.errors import UserError
from official_bert.config import BertConfig, named_config
from official_bert.objectives import objective
from official_bert.tokenization import load_tokenizer

# The models of the last runs, so that a search does not read its own again for every cell.
_KEPT = 2
_read: collections.OrderedDict = collections.OrderedDict()


@dataclasses.dataclass(frozen=True)
class InitialState:
    """The model that a run starts from.

    Attributes:
      bert: BertConfig.
      tokenizer: a `tokenization.Tokenizer`.
      weights: the encoder's arrays; None for random ones.
      head: settings of the model's `model.json`, which describe the head of `head_weights`.
      head_weights: the arrays of the model's own head or pre-training heads, where it has them, by
        the paths of their variables.
    """

    bert: BertConfig
    tokenizer: Any
    weights: list | None = None
    head: dict | None = None
    head_weights: dict | None = None

    @property
    def key(self):
        """Return all that decides the encoder except its weights."""
        return self.bert

    def complete(self, batch):
        """Return the batch with fields beside its features; a BERT needs none."""
        return batch

    def training_flops(self, config, rows, length):
        """Count the FLOPs of one step of a FinetuneConfig."""
        return 3 * flops.tuned_flops(config, self.bert, rows, length)

    def encoder(self, config, seed, **options):
        """Return a new BertEncoder with the weights.

        Args:
          config: PretrainConfig or FinetuneConfig.
          seed: of random weights and of dropout.
          **options: of `BertEncoder`.
        """
        from official_bert.encoder import BertEncoder

        encoder = BertEncoder(self.bert, remat=config.remat, seed=seed, **options)
        if self.weights is not None:
            arrays = self.weights
            for one in config.model_options:
                arrays = one.weights(arrays, encoder, self)
            assign(encoder.trainable_variables, arrays)
        return encoder

    def model(self, config, head, seed):
        """Return the model to fine-tune.

        Args:
          config: FinetuneConfig.
          head: `Task.head`, with what options change of it.
          seed: of new weights.
        """
        from official_bert.heads import build_head

        encoder = self.encoder(config, seed)
        model = build_head(encoder, head, bilstm=config.bilstm, seed=seed)
        if config.model:
            model.begin_as(self.head_weights or {})
        self.keep_head(model, head, config.bilstm)
        if config.freeze:
            encoder.freeze(config.freeze)
        return model

    def save(self, path, model, settings):
        """Keep a pre-trained model; arguments as for `model_folder.save`."""
        model_folder.save(path, model, self.tokenizer, settings)

    def copy_heads_to(self, model):
        """Give a BertPretrainer the weights of the checkpoint's trained heads, if it had any."""
        stored = self.head_weights if self.trained else {}
        for variable in _heads_of(model):
            # A next-sentence head that was never trained is drawn anew, from this run's seed.
            is_trained = "next_sentence" in self.trained or "next_sentence" not in variable.path
            if is_trained and variable.path in stored:
                variable.assign(stored[variable.path])

    def about_heads(self, config):
        """Return the line on heads that a pre-training from a checkpoint prints at its start."""
        wanted = [_head_name(one) for one in map(objective, config.objectives) if one.kept]
        trained = [_head_name(one) for one in map(objective, self.trained)]
        missing = [name for name in wanted if name not in trained]
        if not missing:
            return f"heads: loaded from {config.init_from}"
        text = f"heads: {config.init_from} has no {' and no '.join(missing)} head; new ones are "
        text += "trained from random weights"
        if "masked-LM" in missing:
            text += " (losses of about 12 in the first steps are normal, and fall soon)"
        if "next-sentence" in missing:
            text += (
                f"; --config.objectives={self.bert.language_model} trains the language model alone"
            )
        return text

    @property
    def trained(self):
        """The checkpoint's `objectives`, as in PretrainConfig."""
        return (self.head or {}).get("objectives", ()) if self.head_weights else ()

    def keep_head(self, model, head, bilstm):
        """Copy this model's head to the model to fine-tune, if it fits the task's `head`."""
        if not reuse_head.difference(self.head, head, bilstm):
            assign(
                _heads_of(model), reuse_head.arrays(self.head, head, [*self.head_weights.values()])
            )


class BertSource(initialization.ModelSource):
    """A model folder, an imported checkpoint, a preset, or random weights."""

    def pretraining_start(self, config):
        """Return the start of a PretrainConfig.

        Raises:
          UserError: there is no vocabulary, or shape, vocabulary and checkpoint do not fit.
        """
        if config.init_from:
            found = read_model(config.init_from, "pre-training")
            bert = preflight.compatible(config, found.bert, found.tokenizer)
            return dataclasses.replace(found, bert=bert)
        return InitialState(*preflight.new_model(config))

    def check_finetuning(self, config, task):
        return preflight.shape(config)

    def finetuning_start(self, config, task, examples):
        """Return the InitialState of a FinetuneConfig, with the dropout that it asks for.

        Raises:
          UserError: the model has no vocabulary, or it does not fit the shape.
        """
        if config.model:
            found = read_model(config.model, "fine-tuning")
        else:
            tokenizer = load_tokenizer(config.vocab, config.do_lower_case)
            found = InitialState(config.bert_config, tokenizer, _initial_weights(config))
            model_folder.check_vocabulary(found.bert, len(tokenizer.vocab), config.vocab)
        if config.dropout < 0:
            return found
        names = ("hidden_dropout_prob", "attention_probs_dropout_prob")
        rates = dict.fromkeys(names, config.dropout)
        return dataclasses.replace(found, bert=dataclasses.replace(found.bert, **rates))

    def planned_bert(self, config):
        return sizes_of(config.model) if config.model else config.bert_config

    def planned_work(self, config, bert, train_examples, dev_examples):
        tuned = flops.finetune_flops(config, bert, train_examples, dev_examples)
        if not config.features:
            return [(tuned, self.rate)]
        # The frozen encoder runs once, or not at all where another run has kept its states.
        frozen = bert.encoder_flops(train_examples + dev_examples, config.max_seq_length)
        return [(frozen, self.rate), (tuned, flops.LSTM_RATE)]


def sizes_of(model: str) -> BertConfig:
    """Return the sizes of a model by its folder or name, to estimate costs.

    A preset of KerasHub is not opened: its name tells base from large."""
    return known_sizes(model) or named_config("large" if "large" in model.lower() else "base")


def known_sizes(model: str) -> BertConfig | None:
    """Return the sizes of a model that can be opened here; None of others."""
    try:
        found = _peek(model, _state(model))
    except UserError:  # the run itself will say so
        found = None
    return found[0] if found else None


@functools.lru_cache(maxsize=32)
def _peek(model, _state):
    return resolve.peek(model)


def _initial_weights(config):
    """Return the first weights of a pre-training with the seed `initial_seed`; None without that
    seed."""
    from official_bert.encoder import BertEncoder

    if config.initial_seed < 0:
        return None
    return _arrays(BertEncoder(config.bert_config, seed=config.initial_seed).trainable_variables)


def read_model(path, purpose):
    """Read a model folder, an imported checkpoint or a preset as an InitialState.

    Raises:
      UserError: it cannot be read or has no vocabulary, which `purpose` needs.
    """
    key = path, _state(path)
    if key not in _read:
        loaded = load(path)
        if loaded.tokenizer is None:
            raise UserError(f"{path} has no vocabulary; {purpose} needs one")
        if loaded.encoder is None:
            raise UserError(f"{path} has no Transformer; {purpose} needs one")
        heads = None if loaded.head == "none" else _heads_of(loaded.model)
        _read[key] = InitialState(
            loaded.config,
            loaded.tokenizer,
            _arrays(loaded.encoder.trainable_variables),
            loaded.settings,
            heads and {variable.path: variable.numpy() for variable in heads},
        )
        while len(_read) > _KEPT:
            _read.popitem(last=False)
    return _read[key]


def load(path):
    """Return a LoadedModel; print what its import left out or did not find."""
    loaded = resolve.load(path, seed=0)  # of a pooler that the file lacks
    if loaded.report and (loaded.report.left_out or loaded.report.notes):
        commands.say(loaded.report)
    return loaded


def _head_name(objective):
    """Return the name of an objective's head in messages."""
    return "masked-LM" if objective.language_model else objective.name.replace("_", "-")


def _state(path):
    """Return the state of each file of a model, or of a checkpoint's prefix; none for a preset's
    name."""
    below = glob.glob(f"{glob.escape(str(path))}{'/' if Path(path).is_dir() else ''}*")
    return tuple((file, state(file)) for file in sorted(below) if Path(file).exists())


def _heads_of(pretrainer):
    """Return the variables of a BertPretrainer that are not its encoder's."""
    encoder = {id(variable) for variable in pretrainer.encoder.trainable_variables}
    return [v for v in pretrainer.trainable_variables if id(v) not in encoder]


def _arrays(variables):
    return [variable.numpy() for variable in variables]


def assign(variables, arrays):
    """Set variables one by one."""
    for variable, value in zip(variables, arrays, strict=True):
        variable.assign(value)
