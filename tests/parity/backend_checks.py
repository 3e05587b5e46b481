"""Keras' JAX and PyTorch backends against TensorFlow."""

import tempfile

from tests.parity import backend_steps
from tests.parity.results import Result, check, some


@check("jax")
def steps_on_jax() -> list[Result]:
    """Take steps of objectives and heads on both backends, which drop the same places."""
    steps = some(20, 200)
    heads = some(("pretraining", "classification", "span"), backend_steps.HEADS)
    return [
        Result(
            f"loss, worst of {steps} steps of a toy model (2/32/2); {head}",
            "Keras on JAX",
            difference,
            1e-4,
        )
        for head, difference in backend_steps.compare(steps, heads).items()
    ]


@check("jax", "torch", slow=True)
def fit_on_backends() -> list[Result]:
    """Load a saved pre-training model on each backend: its outputs, and a step of `fit`."""
    import official_bert as ob

    results = []
    with tempfile.TemporaryDirectory() as folder:
        ob.save(f"{folder}/m", backend_steps.build("pretraining"), None)
        ours = backend_steps.made("fit", f"{folder}/m")
        for backend, against in (("jax", "Keras on JAX"), ("torch", "Keras on PyTorch")):
            apart, moved = backend_steps.compare_fit(ours, backend, f"{folder}/m")
            what = "weights, outputs, loss, and weights after a step of fit; toy model (2/32/2)"
            least = f"the most that this step of {against} moved a weight"
            results += [
                Result(what, against, max(apart.values()), 1e-5),
                Result(least, "no learning", moved, 1e-4, True),
            ]
    return results
