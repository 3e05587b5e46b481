"""Pre-trains BERT on records of data_prep.create_pretraining_data (section 3.1, appendix A.2).

    python -m experiments.pretrain --config=pretrain:mini --config.phases.0.records=DIR \\
        --workdir=runs/mini

leaves in the work folder: results.json (loss, perplexity, accuracies on held-out records),
metrics.jsonl, TensorBoard events, checkpoints/, and model/, a model folder. Ctrl-C and SIGTERM save
before they stop. The same command goes on where a run stopped, even after a kill, and ends at the
weights of a run that never stopped.
--config.num_decay_steps=1000 keeps the rate up until the last 1,000 steps. Runs of several lengths
then share the steps before the decay: a run with num_decay_steps=0 is the --config.trunk of the
others. --config.init_from=MODEL goes on from a trained model, for example on the text of one's own
domain.
"""

import time

from absl import flags

from data_prep.jobs import commands
from experiments.training.runs import pretrain as run
from experiments.training.settings.config import PretrainConfig
from experiments.training.settings.config_flags import config_from_flags, define_flags


def main(_):
    began = time.perf_counter()
    config = config_from_flags(PretrainConfig)
    commands.required("workdir")
    results = run(config, flags.FLAGS.workdir, overwrite=flags.FLAGS.overwrite, began=began)
    print(summary(results))


def summary(results):
    """Return the results of a run as a few lines of text."""
    lines = [
        f"{results.steps} steps, {results.examples} sequences, {results.tokens} tokens, "
        f"{results.seconds:.0f} s"
    ]
    lines += [f"  held-out {name:<24} {value:.4f}" for name, value in results.heldout.items()]
    for name, beside in results.more.items():
        if isinstance(beside, dict) and "students_flops" in beside:
            own, theirs = beside["students_flops"] / 1e12, beside["flops"] / 1e12
            lines.append(f"  work: {own:.3g} TFLOP of the student, {theirs:.3g} of its {name}")
    lines.append(f"  model: {results.model}")
    return "\n".join(lines)


if __name__ == "__main__":
    define_flags(run)
    commands.run(main)
