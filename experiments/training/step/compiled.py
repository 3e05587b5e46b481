"""Functions of a model and a batch, compiled by Keras' backend."""

import keras
import numpy as np


def compiled(model, function):
    """`function` compiled: what it returns comes back as numpy arrays.

    Args:
      model: the Keras model whose variables `function` reads.
      function: of a batch (dict of arrays) -> tensors in dicts, lists or tuples.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        call = tf.function(function, reduce_retracing=True, autograph=False)
        return lambda batch: tf.nest.map_structure(lambda x: x.numpy(), call(batch))
    import jax

    call = jitted(model, function)
    return lambda batch: jax.tree.map(np.asarray, call(batch))


def jitted(model, function):
    """`function` of a batch, compiled by JAX; the model's variables are arguments, no constants."""
    import jax

    variables = [*model.variables, *getattr(model, "read_only", ())]

    @jax.jit
    def call(values, batch):
        with keras.StatelessScope(list(zip(variables, values, strict=True))):
            return function(batch)

    return lambda batch: call([variable.value for variable in variables], batch)
