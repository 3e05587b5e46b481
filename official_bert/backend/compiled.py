"""Functions of a model and of arrays, compiled by Keras' backend."""

from collections.abc import Callable

import numpy as np


def compiled(model, function: Callable) -> Callable:
    """Compile a function whose results come back as numpy arrays.

    Args:
      model: the Keras model whose variables `function` reads.
      function: of a batch (dict of arrays) -> tensors in dicts, lists or tuples.
    """
    import keras

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        call = tf.function(function, reduce_retracing=True, autograph=False)
        return lambda batch: tf.nest.map_structure(lambda x: x.numpy(), call(batch))
    if keras.backend.backend() == "torch":
        import torch

        call = torch.no_grad()(function)  # no activation is kept for a gradient
        return lambda batch: keras.tree.map_structure(keras.ops.convert_to_numpy, call(batch))
    import jax

    call = jitted([*model.variables, *getattr(model, "read_only", ())], function)
    return lambda batch: jax.tree.map(np.asarray, call(batch))


def jitted(variables, function: Callable, donated: tuple[int, ...] = ()) -> Callable:
    """Compile a function by JAX; the variables that it reads are arguments, not constants.

    Args:
      variables: Keras variables.
      function: of arrays, in dicts, lists or tuples.
      donated: places of the arguments whose memory the result may have.
    """
    import jax
    import keras

    def call(values, *arguments):
        with keras.StatelessScope(list(zip(variables, values, strict=True))):
            return function(*arguments)

    program = jax.jit(call, donate_argnums=tuple(1 + place for place in donated))
    return lambda *arguments: program([variable.value for variable in variables], *arguments)


def few_sizes(size: int) -> int:
    """Return the next of 1, 2, 3, 4, 6, 8, 12, 16, 24, ...: JAX compiles for each size.

    >>> [few_sizes(size) for size in (1, 5, 7, 16, 17, 100, 130, 400)]
    [1, 6, 8, 16, 24, 128, 192, 512]
    """
    octave = 1 << (size - 1).bit_length()
    between = octave * 3 // 4
    return between if octave > 2 and between >= size else octave
