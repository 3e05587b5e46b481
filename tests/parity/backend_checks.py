"""Keras' JAX and PyTorch backends against TensorFlow."""

import tempfile

from tests.parity import backend_steps
from tests.parity.results import Result, Results, check, some


@check("jax")
def steps_on_jax() -> Results:
    """Take steps of objectives and heads on both backends, which drop the same places."""
    steps = some(20, 200)
    heads = some(("pretraining", "classification", "span"), backend_steps.HEADS)
    apart = backend_steps.compare(steps, heads)
    what = f"loss, worst of {steps} steps of a toy model (2/32/2)"
    yield from (Result(f"{what}; {head}", "Keras on JAX", apart[head], 1e-4) for head in apart)


@check("jax", "torch", slow=True)
def fit_on_backends() -> Results:
    """Load a saved pre-training model on each backend: its outputs, and a step of `fit`."""
    import official_bert as ob

    with tempfile.TemporaryDirectory() as folder:
        ob.save(f"{folder}/m", backend_steps.build("pretraining"), None)
        ours = backend_steps.made("fit", f"{folder}/m")
        for backend, against in (("jax", "Keras on JAX"), ("torch", "Keras on PyTorch")):
            apart, moved = backend_steps.compare_fit(ours, backend, f"{folder}/m")
            what = "weights, outputs, loss, and weights after a step of fit; toy model (2/32/2)"
            least = f"the most that this step of {against} moved a weight"
            yield Result(what, against, max(apart.values()), 1e-5)
            yield Result(least, "no learning", moved, 1e-4, True)
