"""Training on Keras' JAX backend against training on TensorFlow."""

import os

from tests.parity import backend_steps
from tests.parity.results import Result, check


@check("jax")
def steps_on_jax() -> list[Result]:
    """Steps of every objective and head on both backends, a process each; 200 with BERT_SLOW=1."""
    steps = 200 if os.environ.get("BERT_SLOW") == "1" else 12
    return [
        Result(
            f"loss, worst of {steps} steps of a toy model (2/32/2); {head}",
            "Keras on JAX",
            difference,
            1e-4,
        )
        for head, difference in backend_steps.compare(steps).items()
    ]
