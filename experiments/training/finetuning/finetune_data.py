"""The data of a fine-tuning: the features of each split, and training batches."""

from data_prep.tasks.batches import TrainBatches
from data_prep.tasks.featurize import cache_key, feature_cache, featurize
from experiments.training.finetuning import frozen_features
from experiments.training.start.examples import read_examples

# Texts of similar lengths share batches: (bucket, multiple that lengths are padded to).
_FEW_LENGTHS = (32, 32)  # each length is compiled
_ANY_LENGTH = (16, 8)  # one compiled step takes all
_SENTENCES = (8, 8)  # of words, each with its own label


class Split:
    """The examples of a split and their features.

    Args:
      task: of `get_task`.
      name: "train", "dev", ...
      start: InitialState.
      config: FinetuneConfig.
      examples: the split's examples, if they were read already.

    Attributes:
      complete: function of a batch that adds the fields that are not among the features.
      key: digest of the examples and how they were read.
      notes: counts of what was cut or left out.

    Raises:
      UserError: there are no examples.
    """

    def __init__(self, task, name, start, config, examples=None):
        self.name, length = name, config.max_seq_length
        self.examples = examples or read_examples(task, name, config)
        self.features = featurize(task, self.examples, start.tokenizer, length, feature_cache())
        self.key = cache_key(task, self.examples, start.tokenizer, length)
        self.notes = {**self.features.notes, **getattr(task, "notes", {}).get(name, {})}
        self.complete = lambda batch: batch

    def freeze(self, task, start, config, progress):
        """Replace the features by vectors of the frozen encoder (Table 7)."""
        folder = frozen_features.cache_folder(
            feature_cache(),
            task.name,
            self.key,
            start.bert,
            start.weights,
            config.precision,
            config.seed,
        )
        frozen = frozen_features.open_or_compute(
            folder,
            frozen_features.layers_of(start.bert, config.features),
            lambda: start.encoder(config, config.seed, dtype=config.precision),
            self.examples,
            self.features,
            eval_batch_size(config),
            progress,
        )
        self.features, self.complete = frozen.sentences, frozen.complete


class FinetuningBatches:
    """The `batches` of `loop.train`: training batches in the order of their steps.

    Args:
      config: FinetuneConfig.
      start: InitialState or WordStart.
      split: Split to train on.
      class_weights: float32 [classes], or None.
    """

    def __init__(self, config, start, split, class_weights=None):
        self._config, self._start, self._split = config, start, split
        self._class_weights = class_weights
        self._in_order = TrainBatches(
            split.features, config.train_batch_size, config.seed, *padding(config)
        )

    def take(self, trainer, step, count):
        tables, examples, tokens, flops = [], 0, 0, 0
        for batch in self._in_order.from_step(step, step + count):
            examples += int(batch["example_weights"].sum())
            if self._class_weights is not None:
                batch["example_weights"] *= self._class_weights[batch["label_ids"]]
            tables.append(trainer.train_on(self._split.complete(batch)))
            ids = batch["input_ids"]
            tokens += ids.size
            rows, length = ids.size // ids.shape[-1], ids.shape[-1]
            flops += self._start.training_flops(self._config, rows, length)
        return trainer.read(tables), examples, tokens, flops

    @property
    def steps_per_epoch(self):
        return self._in_order.steps_per_epoch

    @property
    def rows(self):
        """The rows of a batch; an example of multiple choice has several."""
        ids = next(iter(self._in_order.from_step(0, 1)))["input_ids"]
        return ids.size // ids.shape[-1]

    def position(self, step):
        epoch, batch = divmod(step, self._in_order.steps_per_epoch)
        return {"epoch": epoch, "batch": batch}


def padding(config):
    """Return (bucket, multiple) of `TrainBatches`, both None where shapes have to be static."""
    import keras

    in_tensorflow = keras.backend.backend() == "tensorflow"
    if not config.length_buckets or config.distribute == "tpu":
        return None, None
    if config.distribute != "one_device" or config.jit_compile or not in_tensorflow:
        return _FEW_LENGTHS
    return _SENTENCES if config.features else _ANY_LENGTH


def eval_batch_size(config):
    """Return the number of rows of an evaluation batch."""
    return config.eval_batch_size or max(32, config.train_batch_size)
