"""What a fine-tuning run does, step by step; imports TensorFlow (`finetune` is its light front).

The trainer knows a task by its protocol only (`data_prep.tasks.task`): head, examples, features,
predictions, score.
"""

import collections
import dataclasses
import math
import time
from pathlib import Path

from data_prep.tasks import get_task
from data_prep.tasks.batches import OutputCollector, TrainBatches, eval_batches, sample
from data_prep.tasks.featurize import cache_key, feature_cache, featurize
from data_prep.tasks.task import MissingFile
from experiments.training import (
    distribution,
    example_scores,
    feature_based,
    finetune_report,
    frozen_features,
    loop,
)
from experiments.training.checkpointing import Checkpoints
from experiments.training.flops import bilstm_flops, training_flops
from experiments.training.matrix_rate import peak_flops
from experiments.training.progress import Progress
from experiments.training.train_step import StepOptions
from experiments.training.trainer import get_trainer
from official_bert import heads
from official_bert.checkpoints import model_folder, resolve
from official_bert.encoder import BertEncoder
from official_bert.errors import UserError
from official_bert.files import atomic_write
from official_bert.tokenization import BertTokenizer

# Texts of like lengths share batches: (how like, padded to multiples of what), see `TrainBatches`.
_FEW_LENGTHS = (32, 32)  # each length is compiled
_ANY_LENGTH = (16, 8)  # one compiled step takes all
_SENTENCES = (8, 8)  # of words, each with its own label
# The source model of the last runs, so that a search does not read it again for every cell.
_sources = collections.OrderedDict()


@dataclasses.dataclass
class Source:
    """What fine-tuning starts from."""

    config: object  # BertConfig
    tokenizer: object
    weights: list | None  # the encoder's arrays; None for random ones


def run(config, folder, progress):
    """See `experiments.finetune.run`; `folder` is its RunFolder."""
    started = time.perf_counter()
    strategy = distribution.get_strategy(config.distribute)
    distribution.check_batch_size(config.train_batch_size, strategy, config.gradient_accumulation)
    source = load_source(config)
    bert = _with_dropout(source.config, config.dropout)
    if config.max_seq_length > bert.max_position_embeddings:
        raise UserError(
            f"max_seq_length is {config.max_seq_length}, but the model has positions for "
            f"{bert.max_position_embeddings} tokens"
        )
    task = get_task(config.task, config.data_dir, **config.task_options)
    train, dev = (
        Data(task, split, source.tokenizer, config, limit)
        for split, limit in (("train", config.max_train_examples), ("dev", config.max_dev_examples))
    )
    # Read before the training, so that a broken file is not found after it.
    others, missing = _other_splits(task, source, config) if folder.write else ({}, {})
    if config.features:
        _check_feature_based(task, config)
        for data in (train, dev, *others.values()):
            data.freeze(task, bert, source, config, progress)

    trainer = get_trainer(
        ("finetune", bert, tuple(sorted(_head_options(task.head).items())), config.bilstm,
         config.features, config.feature_width, config.remat),
        lambda seed: build_model(bert, task.head, source.weights, config, seed),
        strategy,
        StepOptions(
            weight_decay=config.weight_decay,
            beta_2=config.adam_beta_2,
            epsilon=config.adam_epsilon,
            clip_norm=config.clip_norm,
            accumulation=config.gradient_accumulation,
            jit_compile=config.jit_compile,
            fixed_shapes=config.distribute == "tpu",
        ),
        config.precision,
        config.seed,
    )  # fmt: skip
    buckets, multiple_of = _padding(config)
    batches = TrainBatches(
        train.features, config.train_batch_size, config.seed, buckets, multiple_of
    )
    feed = Feed(batches, train, _flops_counter(bert, config))
    num_steps = max(1, math.ceil(feed.batches.steps_per_epoch * config.num_train_epochs))
    trainer.set_schedule(config.learning_rate, int(num_steps * config.warmup_proportion), num_steps)
    folder.write_versions(config.seed, distribution.devices(strategy))

    evaluator = Evaluator(trainer, task, dev, config, multiple_of)
    state, here = _train(trainer, feed, evaluator, num_steps, config, folder, progress, train.key)
    if config.keep_best and state.best_step not in (-1, trainer.step):
        arrays, _ = Checkpoints(folder.checkpoints).load(state.best_step)
        trainer.load_arrays(arrays)
    dev_predictions, scores = evaluator.evaluate(trainer.step)
    # Thresholds are chosen on dev; the settings in the model folder carry them on.
    untuned = scores
    tuned = task.tune(dev.examples, dev_predictions)
    if tuned is not dev_predictions:
        dev_predictions = tuned
        scores = {k: float(v) for k, v in task.score(dev.examples, tuned).items()}

    results = {
        "task": task.name,
        "dev": scores,
        **({"dev_before_tuning": untuned} if untuned is not scores else {}),
        "main_metric": task.metrics[0],
        "baseline": task.baseline(train.examples, dev.examples),
        "steps": num_steps,
        "best_step": trainer.step,
        "train_examples": len(train.examples),
        "dev_examples": len(dev.examples),
        "train_notes": train.notes,
        "dev_notes": dev.notes,
        "trained_examples": state.examples,
        "trained_tokens": state.tokens,
        "train_seconds": round(state.seconds, 2),
        "files": {},
    }
    if folder.write:
        analysis = task.analysis(dev.examples, dev_predictions)
        _write_files(folder, task, dev, dev_predictions, analysis, trainer, source, config, results)
        if missing:
            results["splits_without_predictions"] = missing
        for split, data in others.items():
            evaluator = Evaluator(trainer, task, data, config, multiple_of)
            _score_or_predict(folder, task, split, evaluator, results)
        with atomic_write(folder.path / "report.md") as file:
            file.write(finetune_report.markdown(results, analysis))
        results["files"]["report"] = str(folder.path / "report.md")
    results["seconds"] = round(state.seconds + time.perf_counter() - started - here, 2)
    folder.write_json("results.json", results)
    if folder.write:
        Checkpoints(folder.checkpoints).remove_all()
    return results


class Data:
    """Examples of a split and their features; `complete` adds to a batch what is not in these."""

    complete = staticmethod(lambda batch: batch)

    def __init__(self, task, split, tokenizer, config, limit):
        self.examples = sample(task.examples(split), limit)
        if not self.examples:
            raise UserError(f"task {task.name} has no {split} examples in {config.data_dir}")
        self.features = featurize(
            task, self.examples, tokenizer, config.max_seq_length, feature_cache()
        )
        self.key = cache_key(task, self.examples, tokenizer, config.max_seq_length)
        self.notes = {**self.features.notes, **getattr(task, "notes", {}).get(split, {})}

    def freeze(self, task, bert, source, config, progress):
        """Replaces the features by vectors of the frozen encoder (Table 7)."""
        frozen = frozen_features.open_or_compute(
            frozen_features.cache_folder(
                feature_cache(), task.name, self.key, bert, source.weights, config.precision,
                config.seed,
            ),
            frozen_features.layers_of(bert, config.features),
            lambda: _encoder(bert, source.weights, config, config.seed, dtype=config.precision),
            self.examples,
            self.features,
            config.eval_batch_size or max(32, config.train_batch_size),
            progress,
        )  # fmt: skip
        self.features, self.complete = frozen.sentences, frozen.complete


class Feed:
    """Training batches in the order of their steps; see `loop.train`."""

    def __init__(self, batches, data, flops):
        self.batches = batches
        self._data, self._flops = data, flops

    def take(self, trainer, step, count):
        tables, examples, tokens, flops = [], 0, 0, 0
        for batch in self.batches.from_step(step, step + count):
            tables.append(trainer.train_on(self._data.complete(batch)))
            examples += int(batch["example_weights"].sum())
            ids = batch["input_ids"]
            tokens += ids.size
            flops += self._flops(ids.size // ids.shape[-1], ids.shape[-1])
        return trainer.read(tables), examples, tokens, flops

    def position(self, step):
        epoch, batch = divmod(step, self.batches.steps_per_epoch)
        return {"epoch": epoch, "batch": batch}


class Evaluator:
    """Predicts and scores the examples of a split."""

    def __init__(self, trainer, task, data, config, buckets):
        self._trainer, self._task, self._data, self._buckets = trainer, task, data, buckets
        self._batch_size = config.eval_batch_size or max(32, config.train_batch_size)
        self._last = None

    def predict(self):
        """(predictions, seconds)"""
        started = time.perf_counter()
        features = self._data.features
        collector = OutputCollector(len(features))
        for rows, batch in eval_batches(features, self._batch_size, self._buckets):
            collector.add(rows, self._trainer.predict(self._data.complete(batch)))
        predictions = self._task.predictions(self._data.examples, features, collector.outputs())
        return predictions, time.perf_counter() - started

    def evaluate(self, step):
        """(predictions, scores) with the weights of `step`."""
        if self._last is None or self._last[0] != step:
            predictions, _ = self.predict()
            scores = self._task.score(self._data.examples, predictions)
            self._last = (step, predictions, {k: float(v) for k, v in scores.items()})
        return self._last[1:]

    def __call__(self, step):
        _, scores = self.evaluate(step)
        return scores, scores[self._task.metrics[0]]


def _train(trainer, feed, evaluator, num_steps, config, folder, progress, data_key):
    """(the State at the end, how many of its seconds were spent in this process)"""
    checkpoints = Checkpoints(folder.checkpoints, config.keep_checkpoints)
    state = loop.restore(trainer, checkpoints, data_key)
    if not distribution.same_everywhere(trainer.strategy, state.step):
        raise UserError("the processes of this run see different checkpoints; share the workdir")
    folder.forget_metrics_after(state.step)
    plan = loop.Plan(
        last_step=num_steps,
        log_every=config.log_every,
        eval_every=config.eval_every,
        save_every=config.save_every,
        eval_at=(num_steps,) if config.eval_every else (),
        steps_per_call=1 if config.distribute == "multi_worker" else 0,
    )
    show = progress and folder.write
    name, peak = f"finetune {config.task}", peak_flops(trainer.strategy, config.precision)
    with Progress(folder, state.step, num_steps, show, name, peak) as shown:
        before = state.seconds
        loop.train(
            trainer,
            feed,
            plan,
            checkpoints,
            shown,
            state,
            write=folder.write,
            evaluate=evaluator if config.eval_every else None,
        )
    return state, state.seconds - before


def load_source(config):
    """The Source that `config.model` names, or random weights of the size `config.bert`."""
    if not config.model:
        tokenizer = BertTokenizer(config.vocab, do_lower_case=config.do_lower_case)
        bert = config.bert_config
        model_folder.check_vocabulary(bert, len(tokenizer.vocab), config.vocab)
        return Source(bert, tokenizer, None)
    key = (config.model, _changed(config.model))
    if key not in _sources:
        loaded = resolve.load_any(config.model)
        if loaded.tokenizer is None:
            raise UserError(f"{config.model} has no vocabulary; fine-tuning needs one")
        weights = [variable.numpy() for variable in loaded.encoder.trainable_variables]
        _sources[key] = Source(loaded.config, loaded.tokenizer, weights)
        while len(_sources) > 2:
            _sources.popitem(last=False)
    return _sources[key]


def build_model(bert, head, weights, config, seed):
    """The model that `head` asks for, on a new encoder with the given weights."""
    if config.features:
        return feature_based.FeatureTagger(
            bert, head["num_labels"], config.features, config.feature_width, seed=seed
        )
    encoder = _encoder(bert, weights, config, seed)
    options = {"bilstm": config.bilstm, "seed": seed}
    match head["head"]:
        case "classification":
            return heads.BertClassifier(encoder, head["num_labels"], head["problem"], **options)
        case "span":
            return heads.BertSpan(encoder, **options)
        case "multiple_choice":
            return heads.BertMultipleChoice(encoder, **options)
        case "tagging":
            return heads.BertTagger(encoder, head["num_labels"], **options)
    raise UserError(f'no head "{head["head"]}"')


def _encoder(bert, weights, config, seed, **options):
    encoder = BertEncoder(bert, remat=config.remat, seed=seed, **options)
    if weights is not None:
        for variable, value in zip(encoder.trainable_variables, weights, strict=True):
            variable.assign(value)
    return encoder


def _check_feature_based(task, config):
    if task.head["head"] != "tagging":
        raise UserError(
            f"features={config.features}: the feature-based approach is for tagging tasks; "
            f"{config.task} is {task.head['head']}"
        )
    if config.bilstm:
        raise UserError("bilstm is for fine-tuning; with features there are BiLSTMs anyway")


def _padding(config):
    """(bucket, multiple): see `TrainBatches`; None where shapes have to be static."""
    if not config.length_buckets or config.distribute == "tpu":
        return None, None
    if config.distribute != "one_device" or config.jit_compile:
        return _FEW_LENGTHS
    return _SENTENCES if config.features else _ANY_LENGTH


def _flops_counter(bert, config):
    """Function of (rows, length): floating-point operations of one training step."""
    if not config.features:
        return lambda rows, length: training_flops(bert, rows, length)
    return lambda rows, length: (
        3 * bilstm_flops(bert, config.features, config.feature_width, rows * length)
    )


def _write_files(folder, task, dev, predictions, analysis, trainer, source, config, results):
    paths = _write_predictions(task, folder.predictions / "dev", predictions)
    results["predictions_file"] = results["files"]["dev predictions"] = paths[0]
    example_scores.save(folder.path / "example_scores.npz", task, dev.examples, predictions)
    if analysis:
        folder.write_json("analysis.json", analysis)
        results["files"]["analysis"] = str(folder.path / "analysis.json")
    # A feature-based tagger is no head that a model folder knows; Table 7 needs its scores only.
    if config.save_model and not config.features:
        settings = {
            "labels": list(task.head.get("labels") or []),
            "max_seq_length": config.max_seq_length,
            "task": {"name": task.name, "options": task.settings()},
        }
        model_folder.save(folder.model, trainer.model, source.tokenizer, settings, overwrite=True)
        results["files"]["model"] = str(folder.model)


def _other_splits(task, source, config):
    """Data of further dev splits (MNLI mismatched), and of test splits where that is asked for.

    Returns: ({split: Data}, {split: why it is not there}); most folders do not hold every split.
    """
    found, missing = {}, {}
    for split in task.splits:
        if split in ("train", "dev") or not (config.predict_test or split.startswith("dev")):
            continue
        limit = config.max_dev_examples if split.startswith("dev") else 0
        try:
            found[split] = Data(task, split, source.tokenizer, config, limit)
        except MissingFile as error:
            missing[split] = str(error)
    return found, missing


def _score_or_predict(folder, task, split, evaluator, results):
    if split.startswith("dev"):
        predictions, results[split] = evaluator.evaluate(results["best_step"])
    else:
        predictions, _ = evaluator.predict()
    paths = _write_predictions(task, folder.predictions / split, predictions)
    results["files"][f"{split} predictions"] = paths[0]


def _write_predictions(task, folder, predictions):
    folder.mkdir(parents=True, exist_ok=True)
    return [str(path) for path in task.write(folder, predictions)]


def _head_options(head):
    return {name: head.get(name) for name in ("head", "num_labels", "problem")}


def _with_dropout(bert, rate):
    if rate < 0:
        return bert
    return dataclasses.replace(bert, hidden_dropout_prob=rate, attention_probs_dropout_prob=rate)


def _changed(path):
    """When the newest file of a model was written; 0 for a preset's name."""
    path = Path(path)
    files = [p for p in path.iterdir() if p.is_file()] if path.is_dir() else []
    return max((file.stat().st_mtime_ns for file in files), default=0)
