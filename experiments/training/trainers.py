"""Trainers that are kept for the next run in this process.

The last one, and as many of those before it as fit: each holds a model and its optimiser, three
times the weights.
"""

import collections

from experiments.training.backend import Trainer

_KEPT_BYTES = 2 * 2**30
_trainers = collections.OrderedDict()


def get_trainer(key, build, strategy, options, precision, seed):
    """A Trainer, the one of an earlier run in this process where everything compiled is the same.

    Args:
      key: hashable; names the model that `build` makes (sizes, head).
      build, strategy, options, precision, seed: of `TrainerState`.

    Returns: the Trainer, with fresh weights, at step 0.
    """
    key = (key, options, precision, id(strategy))
    if key in _trainers:
        _trainers.move_to_end(key)
        trainer = _trainers[key]
        trainer.reset(build, seed)
        return trainer
    trainer = Trainer(build, strategy, options, precision, seed)
    _trainers[key] = trainer
    while len(_trainers) > 1 and sum(t.bytes for t in _trainers.values()) > _KEPT_BYTES:
        _trainers.popitem(last=False)
    return trainer
