"""BERT, and every Transformer of its shape, as what a run starts from."""

from experiments.training import start_checks, starts
from experiments.training.flops import finetune_flops
from official_bert.common import commands


class BertStart(starts.Start):
    """A model folder, an imported checkpoint, a preset, or random weights."""

    def asked(self, config):
        return True

    def of_pretraining(self, config):
        from experiments.training import starting_point

        return starting_point.of_pretraining(config)

    def check_finetuning(self, config, task):
        return start_checks.shape(config)

    def of_finetuning(self, config, task, examples):
        from experiments.training import starting_point

        return starting_point.of_finetuning(config)

    def finetune(self, config, folder, progress, task, examples):
        commands.import_tensorflow()
        from experiments.training import finetune_run

        return finetune_run.run(config, folder, progress, task, examples)

    def planned_flops(self, config, bert, train_examples, dev_examples):
        return finetune_flops(config, bert, train_examples, dev_examples)
