"""The variables of a model by their paths: names for files and for other models."""


def named_variables(model) -> dict:
    """The Keras variables of a model by their path below the encoder or the model."""
    encoder = getattr(model, "encoder", model)
    named = {_below(encoder, variable): variable for variable in encoder.weights}
    if encoder is not model:
        inner = {id(variable) for variable in encoder.weights}
        named |= {_below(model, v): v for v in model.weights if id(v) not in inner}
    return named


def _below(owner, variable) -> str:
    # "encoder/layer_0/..." -> "layer_0/...", also where the model was made inside a name scope.
    return variable.path.split(f"{owner.name}/", 1)[-1]
