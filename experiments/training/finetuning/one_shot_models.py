"""Fine-tuning runs of models that no `Trainer` trains step by step."""

import time

import numpy as np

from experiments.training.finetuning import finetune_report
from experiments.training.folder.progress import Progress
from experiments.training.start import initialization
from experiments.training.start.examples import read_examples, read_others
from official_bert.common.errors import UserError
from official_bert.common.files import remove

# Options of networks that a `Trainer` trains step by step.
_STEPWISE = {"bilstm", "mean_pooling", "features", "freeze", "class_weights"}


class OneShotModel(initialization.ModelSource):
    """A kind of start with its own way to train.

    Attributes:
      head: `Task.head["head"]` of the tasks that it can learn.
      does: verb and object for messages, such as "reads videos".
    """

    head = does = ""
    leaves = (
        "it leaves scores and predictions, no model; rows to answer go into the test file of its "
        "data, which the run answers with --config.predict_test=true"
    )
    lacks = initialization.ModelSource.lacks | _STEPWISE

    def accepts(self, options):
        return type(options) in self.takes

    def learn(self, config, task, train, logged):
        """Learn from training examples.

        Args:
          config: FinetuneConfig.
          logged: function of the number of steps -> Progress.

        Returns: (function of examples -> predictions, steps). The function may have a method
          `save` of (folder, settings) that writes a model folder.
        """
        raise NotImplementedError

    def check_finetuning(self, config, task):
        if task.head["head"] != self.head:
            raise UserError(
                f"--config.model={config.model} {self.does}; {config.task} is {task.head['head']}"
            )
        return None, None

    def finetune(self, step_by_step, config, folder, progress, task, examples):
        started = time.perf_counter()
        folder.write_versions(config.seed, {})
        folder.forget_metrics_after(0)  # without checkpoints a run that died starts anew
        train, dev = (
            examples.get(split) or read_examples(task, split, config) for split in ("train", "dev")
        )
        others, missing = read_others(task, config, examples)
        answer, steps = self.learn(
            config, task, train, lambda steps: Progress(folder, 0, steps, progress)
        )
        train_seconds = time.perf_counter() - started
        predictions = answer(dev)
        results = finetune_report.results_of(
            task,
            train,
            dev,
            task.score(dev, predictions),
            head=config.model,
            steps=steps,
            train_notes=task.notes.get("train", {}),
            dev_notes=task.notes.get("dev", {}),
            train_seconds=round(train_seconds, 2),
            splits_without_predictions=missing,
        )
        analysis = finetune_report.write_dev(folder, task, dev, predictions, results)
        if config.save_model and (save := getattr(answer, "save", None)):
            remove(folder.model)  # of a process that was killed here
            save(folder.model, finetune_report.model_settings(config, task, results))
            results.files["model"] = str(folder.model)
        for split, asked in others.items():
            predictions = answer(asked)
            if task.is_labelled(asked):
                results.set_scores(split, task.score(asked, predictions))
            finetune_report.write_predictions(folder, task, split, predictions, results)
        finetune_report.write_report(folder, results, analysis)
        results.seconds = round(time.perf_counter() - started, 2)
        return folder.finish(results)


def take_steps(steps: int, take, logged, log_every: int):
    """Take training steps, and log the means of their losses every so many.

    Args:
      take: function of a step, from 1 on -> {name: loss}.
      logged: see `OneShotModel.learn`.
    """
    with logged(steps) as progress:
        losses = []  # of steps since the last log point
        for step in range(1, steps + 1):
            losses.append(take(step))
            if step % log_every == 0 or step == steps:
                names = dict.fromkeys(name for each in losses for name in each)
                means = {
                    n: float(np.mean([each[n] for each in losses if n in each])) for n in names
                }
                progress.advance(len(losses), 0, 0, 0, next(iter(means.values())))
                progress.log(step, means)
                losses = []
