"""A fine-tuning run, step by step; imports Keras (`runs.finetune` does not).

A task is known by its protocol only (`data_prep.tasks.task`): head, examples, features,
predictions, score.
"""

import math
import time

from data_prep.jobs import commands
from experiments.training.finetuning import advice, finetune_data, finetune_report
from experiments.training.finetuning.feature_tagger import FeatureTagger
from experiments.training.folder.checkpointing import Checkpoints
from experiments.training.settings import options
from experiments.training.start import finetuning_preflight, reuse_head
from experiments.training.start.class_weights import class_weights_of
from experiments.training.start.examples import read_others
from experiments.training.step import device_choices, loop, session
from experiments.training.step.backend import strategies
from experiments.training.step.evaluation import TaskEvaluator
from official_bert.common.files import remove


def run(source, config, folder, progress, task, examples):
    """Fine-tune, evaluate and save a model; return the results of `runs.finetune`.

    Args:
      source, task, examples: of `finetuning_preflight.finetuning`.
      config: FinetuneConfig.
      folder: RunFolder.
      progress: show progress on stderr."""
    started = time.perf_counter()
    strategy = strategies.strategy_of(config)
    session.check_batch_size(config.train_batch_size, strategy, config.gradient_accumulation)
    start = source.finetuning_start(config, task, examples)
    finetuning_preflight.check_model(config, task, start.bert)
    head = _head(config, start, task)
    hooks = options.run_hooks(config, start, head)
    kept = reuse_head.sentence(config.model, reuse_head.difference(start.head, head, config.bilstm))
    if progress:
        commands.say(kept)
    # All splits are read before the training, so that a broken file is not found after it.
    others, missing = read_others(task, config, examples) if folder.write else ({}, {})
    train, dev, *others = _splits(task, start, config, progress, examples, others)

    config, batches = _batches(config, start, task, train, strategy, progress)
    num_steps = max(1, math.ceil(batches.steps_per_epoch * config.num_train_epochs))
    trainer = _trainer(config, start, head, hooks, strategy, batches.steps_per_epoch, num_steps)
    best_by = config.best_metric or task.metrics[0]

    def evaluator_of(split):
        _, multiple_of = finetune_data.padding(config)
        size = finetune_data.eval_batch_size(config)
        return TaskEvaluator(trainer, task, split, size, multiple_of, best_by)

    evaluator = evaluator_of(dev)
    state, seconds_before = _train(trainer, batches, num_steps, evaluator, config, folder, progress)
    # Thresholds are chosen on dev; the model folder's settings hold them.
    untuned, scores_untuned = evaluator.evaluate(trainer.step)
    predictions = task.tune(dev.examples, untuned)
    is_tuned = predictions is not untuned

    scores = evaluator.scores(predictions) if is_tuned else scores_untuned
    results = finetune_report.results_of(
        task,
        train.examples,
        dev.examples,
        scores,
        dev_before_tuning=scores_untuned if is_tuned else {},
        head=kept,
        steps=num_steps,
        stopped_early_after=state.step if state.step < num_steps else None,
        best_step=trainer.step,
        best_by=best_by if _keeps_best(config) else "",
        train_notes=train.notes,
        dev_notes=dev.notes,
        trained_examples=state.examples,
        trained_tokens=state.tokens,
        train_seconds=round(state.seconds, 2),
        splits_without_predictions=missing,
    )
    for one in hooks:
        results.more |= one.finetuning_results(state, config)
    if folder.write:
        analysis = finetune_report.write_dev(folder, task, dev.examples, predictions, results)
        results.advice = advice.of(config, task, results, analysis)
        _save_model(folder, config, start, task, trainer.model.kept(), hooks, results)
        for split in others:
            _score_or_predict(folder, task, split.name, evaluator_of(split), results)
        finetune_report.write_report(folder, results, analysis)
    results.seconds = round(seconds_before + time.perf_counter() - started, 2)
    results = folder.finish(results)
    if folder.write:
        Checkpoints(folder.checkpoints).remove_all()
    return results


def _head(config, start, task):
    """Return the fields of the head: the task's, those of an earlier one that go on, options'."""
    head = {**task.head_on(start.head or {}, config), "mean_pooling": config.mean_pooling}
    for one in config.model_options:
        head |= one.head()
    return head


def _batches(config, start, task, train, strategy, progress):
    """Return the configuration with sizes chosen for the device, and the training's batches."""
    weights = class_weights_of(config, task, train.features)
    batches = finetune_data.FinetuningBatches(config, start, train, weights)
    memory = None if task.whole_batches else strategies.memory(strategy)
    config, message = device_choices.choose_for_finetuning(
        config, start.bert, batches, strategy, memory
    )
    if message and progress:
        commands.say(message)
    return config, batches


def _trainer(config, start, head, hooks, strategy, steps_per_epoch, num_steps):
    """Return the trainer of the encoder with its head, its schedule set."""

    def build(seed):
        if config.features:
            model = FeatureTagger(
                start.bert, head["num_labels"], config.features, config.feature_width, seed=seed
            )
        else:
            model = start.model(config, head, seed)
        for one in hooks:
            model = one.wrap(model, start, config, head, seed)
        return model

    step = {}
    for one in config.model_options:
        step |= one.step(steps_per_epoch)
    key = _key(config, start, head, hooks)
    trainer = session.make_trainer(config, key, build, strategy, **step)
    trainer.set_schedule(config.learning_rate, int(num_steps * config.warmup_proportion), num_steps)
    return trainer


def _train(trainer, batches, num_steps, evaluator, config, folder, progress):
    """Train to the end; the trainer then has the last weights, or the best on dev where asked.

    Returns: the loop's state and the seconds of earlier processes of this run."""
    events = loop.LoopEvents.of(
        config,
        num_steps,
        eval_at=(num_steps,) if config.eval_every else (),
        steps_per_call=1 if config.distribute == "multi_worker" else 0,
        patience=config.patience,
    )
    evaluate = evaluator if config.eval_every else None
    name = f"finetune {config.task}"
    state, seconds_before = session.train(
        trainer, batches, events, config, folder, name=name, show=progress, evaluate=evaluate
    )
    if _keeps_best(config) and state.best_step not in (-1, trainer.step):
        arrays, _ = Checkpoints(folder.checkpoints).load(state.best_step)
        trainer.load_arrays(arrays)
    return state, seconds_before


def _keeps_best(config):
    return bool(config.keep_best or config.patience)


def _key(config, start, head, hooks):
    """Return a hashable key of all that decides the model except its weights (`get_trainer`)."""
    head = tuple(sorted((name, x) for name, x in head.items() if name != "labels"))
    model = config.bilstm, config.features, config.feature_width, config.remat, config.freeze
    return "finetune", start.key, head, model, tuple(one.key for one in hooks)


def _splits(task, start, config, progress, examples, others):
    """Return the `Split`s of train, of dev and of `others`, {name: examples}."""
    read = {"train": examples.get("train"), "dev": examples.get("dev"), **others}
    splits = [finetune_data.Split(task, name, start, config, x) for name, x in read.items()]
    for split in splits:
        if config.features:
            split.freeze(task, start, config, progress)
        else:
            split.complete = start.complete
    return splits


def _save_model(folder, config, start, task, model, hooks, results):
    """Save the model folder; a feature-based tagger has scores for a table, but no folder."""
    if not config.save_model or not model.has_folder:
        return
    for one in hooks:
        model = one.kept(model)
    settings = finetune_report.model_settings(config, task, results)
    remove(folder.model)  # of a process that was killed here
    start.save(folder.model, model, settings)
    results.files["model"] = str(folder.model)


def _score_or_predict(folder, task, split, evaluator, results):
    if task.is_labelled(evaluator.examples):
        predictions, scores = evaluator.evaluate(results.best_step)
        results.set_scores(split, scores)
    else:
        predictions = evaluator.predict()
    finetune_report.write_predictions(folder, task, split, predictions, results)
