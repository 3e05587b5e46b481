"""The same weights give the same numbers on TensorFlow, JAX and PyTorch.

Keras fixes its backend at import, so the others run in a process of their own: this file, called
as a program, computes and saves what the tests compare.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    """A pre-training model saved under the backend of this process."""
    import official_bert as ob

    config = ob.BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )
    folder = tmp_path_factory.mktemp("backends") / "model"
    ob.save(folder, ob.BertPretrainer(config, seed=1), None)
    return folder


@pytest.fixture(scope="module")
def tensorflow_results(model_folder):
    assert keras.backend.backend() == "tensorflow"
    main(model_folder, model_folder.parent / "tensorflow.npz")
    with np.load(model_folder.parent / "tensorflow.npz") as file:
        return dict(file)


@pytest.mark.parametrize("backend", ["jax", pytest.param("torch", marks=pytest.mark.parity)])
def test_backend_equals_tensorflow(backend, model_folder, tensorflow_results):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"needs the package {backend}")
    results = run_under(backend, model_folder)
    assert set(results) == set(tensorflow_results)
    for name, expected in tensorflow_results.items():
        np.testing.assert_allclose(results[name], expected, rtol=0, atol=1e-5, err_msg=name)
    moved = results["after/encoder/layer_0/output/kernel"]
    started = results["before/encoder/layer_0/output/kernel"]
    assert np.abs(moved - started).max() > 1e-4  # the step was a step


def run_under(backend: str, folder: Path) -> dict[str, np.ndarray]:
    output = folder.parent / f"{backend}.npz"
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    done = subprocess.run(
        [sys.executable, __file__, str(folder), str(output)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(output) as file:
        return dict(file)


def main(folder: str, output: str) -> None:
    import official_bert as ob

    rng = np.random.default_rng(0)
    mask = (np.arange(12) < np.array([12, 12, 9, 7])[:, None]).astype("int32")
    batch = {
        "input_ids": rng.integers(5, 40, mask.shape).astype("int32") * mask,
        "input_mask": mask,
        "segment_ids": (np.arange(12) > 5).astype("int32") * mask,
        "masked_lm_positions": np.tile(np.array([1, 3, 0], "int32"), (4, 1)),
        "masked_lm_ids": rng.integers(5, 40, (4, 3)).astype("int32"),
        "masked_lm_weights": np.tile(np.array([1, 1, 0], "float32"), (4, 1)),
        "next_sentence_labels": np.array([[0], [1], [1], [0]], "int32"),
    }
    model = ob.load(folder).model
    to_numpy = keras.ops.convert_to_numpy
    results = {f"before/{v.path}": to_numpy(v) for v in model.trainable_variables}
    # Compiled as a whole: JAX would compile each operation of its own.
    inputs = {k: batch[k] for k in ("input_ids", "input_mask", "segment_ids")}
    encoded = model.encoder.predict_on_batch(inputs)
    results["pooled"], results["sequence"] = encoded["pooled_output"], encoded["sequence_output"]
    results |= model.predict_on_batch(batch)
    model.compile(optimizer=ob.BertAdamW(1e-3))
    logs = model.fit(x=batch, batch_size=4, epochs=1, shuffle=False, verbose=0).history
    results["loss"] = np.array(logs["loss"])
    results |= {f"after/{v.path}": to_numpy(v) for v in model.trainable_variables}
    np.savez(output, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
