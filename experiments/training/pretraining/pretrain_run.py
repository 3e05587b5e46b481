"""A pre-training run, step by step; imports Keras (`runs.pretrain` does not)."""

import time

import numpy as np

from data_prep.jobs import commands
from experiments.training.folder.run_results import PretrainingResults
from experiments.training.pretraining import expectation, heldout
from experiments.training.pretraining.pretrain_batches import PretrainingBatches
from experiments.training.settings.options import run_hooks
from experiments.training.step import device_choices, loop, session
from experiments.training.step.backend import strategies
from official_bert.common.files import remove
from official_bert.objectives import objective
from official_bert.pretraining import BertPretrainer


def run(source, config, folder, progress, records, began=None):
    """Pre-train, evaluate and save a model; return the results of `runs.pretrain`.

    Args:
      source, records: of `preflight.pretraining`.
      config: PretrainConfig.
      folder: RunFolder.
      progress: show progress on stderr.
      began: `time.perf_counter()` of when the command began; None: now."""
    started = time.perf_counter()
    strategy = strategies.strategy_of(config)
    start = source.pretraining_start(config)
    memory = strategies.memory(strategy)
    config, chosen, message = device_choices.choose_for_pretraining(
        config, start.bert, records, strategy, memory
    )
    if message and progress:
        commands.say(message)
    if config.init_from and progress:
        commands.say(start.about_heads(config))
    objectives = tuple(map(objective, config.objectives))
    hooks = run_hooks(config, start)
    batches = PretrainingBatches(config, start, strategy, records)
    if progress:
        is_new = start.weights is None
        for line in expectation.lines(batches.phases, objectives[0].name if is_new else ""):
            commands.say(line)

    def build(seed):
        of_model = objectives
        for one in hooks:
            of_model = one.objectives(of_model)
        model = BertPretrainer(start.encoder(config, seed), of_model, seed=seed)
        start.copy_heads_to(model)
        if start.weights is None and config.output_bias == "unigram":
            objectives[0].output_bias(model).assign(batches.log_frequencies())
        for one in hooks:
            one.begin(model)
        return model

    key = "pretrain", start.bert, objectives, config.remat, tuple(one.key for one in hooks)
    trainer = session.make_trainer(config, key, build, strategy, train_metrics=True, **chosen)
    trainer.set_schedule(
        config.learning_rate, config.warmup_steps, config.num_train_steps, config.decay_steps
    )
    settings = {"max_seq_length": max(opened.max_seq_length for opened, _ in records)}

    def save_model(path):
        if folder.write:
            model = trainer.model.kept()
            remove(path)  # of a process that was killed here
            start.save(path, model, settings)

    evaluator = Evaluator(trainer, config, batches)
    state, seconds_before = session.train(
        trainer,
        batches,
        _loop_events(config, batches),
        config,
        folder,
        name="pretrain",
        show=progress,
        evaluate=evaluator,
        when_reached={
            step: lambda step=step: save_model(folder.path / "snapshots" / f"step-{step:08d}")
            for step in config.snapshots
        },
        began=started if began is None else began,
    )
    metrics = evaluator.at_end(config.num_train_steps)
    save_model(folder.model)
    last = config.phases[-1]
    both_sides = start.bert.attention_direction == "bidirectional"
    results = PretrainingResults(
        steps=state.step,
        examples=state.examples,
        tokens=state.tokens,
        train_seconds=round(state.seconds, 2),
        heldout=metrics,
        baseline=heldout.unigram_baseline(
            objectives[0],
            last.records,
            last.heldout_records,
            start.bert.vocab_size,
            every_token=not both_sides,
        ),
        curve=heldout.learning_curve(folder.path / "metrics.jsonl"),
        best_step=state.best_step,
        parameters=int(sum(np.prod(v.shape) for v in trainer.model.trainable_variables)),
        records=batches.description(),
        model=str(folder.model),
        seconds=round(seconds_before + time.perf_counter() - started, 2),
    )
    for one in hooks:
        results.more |= one.pretraining_results(batches)
    return folder.finish(results)


class Evaluator:
    """Measures the current weights on held-out records; the `evaluate` of `loop.train`."""

    def __init__(self, trainer, config, batches):
        self._trainer, self._config, self._batches = trainer, config, batches
        self._last = (-1, {})

    def __call__(self, step):
        metrics = self.at_end(step)
        return metrics, -metrics[heldout.main_loss(metrics)] if metrics else None

    def at_end(self, step):
        """Return the metrics after `step` steps, on the held-out records of that step's phase."""
        if self._last[0] != step:
            self._last = (step, self._measure(step))
        return self._last[1]

    def _measure(self, step):
        phase = self._batches.phase(step - 1)
        if not phase.heldout:
            return {}
        model = self._trainer.model
        # A left-to-right model has logits at every position, about six times as many.
        limit = 64 if model.encoder.config.attention_direction == "bidirectional" else 8
        return heldout.measure(
            self._trainer.evaluate,
            model.objectives,
            phase.heldout,
            self._config.eval_batch_size or min(phase.batch_size, limit),
            self._config.max_heldout_examples,
        )


def _loop_events(config, batches):
    ends = tuple(phase.last for phase in batches.phases)
    steps_per_call = config.steps_per_loop
    if not steps_per_call and config.distribute in ("multi_worker", "tpu"):
        # All processes need the same number, so it cannot depend on the clock of each.
        steps_per_call = 10
    return loop.LoopEvents.of(
        config,
        config.num_train_steps,
        stops=(*ends, *config.snapshots),
        eval_at=ends,
        steps_per_call=steps_per_call,
    )
