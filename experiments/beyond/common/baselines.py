"""Starts of baselines that are not networks of tokens."""

from experiments.training.finetuning.one_shot_models import OneShotModel

UNSAVED = "it was run with --config.save_model=false or with an ELMo, and left scores alone"


class WithoutNetwork(OneShotModel):
    """A rule, counts or a linear model: without a seed, it is run once and counts no FLOPs."""

    repeats = False

    def planned_work(self, config, bert, train_examples, dev_examples):
        return []
