"""The variables of a model by their paths, and as arrays: for files and for other models."""

import numpy as np


def array(weights) -> np.ndarray:
    """Return weights as a float32 array; a numpy array is returned as it is."""
    from keras import ops

    if isinstance(weights, np.ndarray):
        return weights
    return ops.convert_to_numpy(ops.cast(weights, "float32"))


def query_key_value(attention) -> tuple[np.ndarray, np.ndarray]:
    """Return kernel [H, 3 H] and bias [3 H] of one product for queries, keys and values.

    The query's part includes the factor of the attention scores.
    """
    layers = [
        (attention.query, attention.head_width**-0.5),
        (attention.key, 1),
        (attention.value, 1),
    ]
    kernels = [array(layer.kernel) * scale for layer, scale in layers]
    biases = [array(layer.bias) * scale for layer, scale in layers]
    return np.concatenate(kernels, axis=1), np.concatenate(biases)


def named_variables(model) -> dict:
    """Return the Keras variables of a model by their path below the encoder or the model."""
    encoder = getattr(model, "encoder", model)
    named = {_below(encoder, variable): variable for variable in encoder.weights}
    if encoder is not model:
        inner = {id(variable) for variable in encoder.weights}
        named |= {_below(model, v): v for v in model.weights if id(v) not in inner}
    return named


def named_arrays(model) -> dict[str, np.ndarray]:
    """Return copies of a model's variables, float32, by the names of `named_variables`."""
    return {name: array(variable) for name, variable in named_variables(model).items()}


def _below(owner, variable) -> str:
    # "encoder/layer_0/..." -> "layer_0/...", also where the model was made inside a name scope.
    return f"/{variable.path}".split(f"/{owner.name}/", 1)[-1].removeprefix("/")
