"""The training step and the loop around it, on TensorFlow and on JAX.

Begin with `train_step`: the whole step on one page, and `loop`: log, evaluate, save, stop.
`trainer` and `jax_trainer` compile the step; `strategies` and `jax_strategies` divide a batch among
devices; `backend` chooses between the pairs. `session` puts all of it together for the runs of
`pretraining` and `finetuning`. `device_choices` decides how a step fits into a GPU's memory.
"""
