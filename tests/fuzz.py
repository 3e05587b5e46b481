"""Feeds every loader and the server with damaged and made-up input, for as long as one likes.

    python -m tests.fuzz --minutes=10        # all targets in turn; --target=huggingface for one

Each target is a function of hypothesis's `data`. It may refuse its input with a UserError (the
server: with a status below 500) and must do nothing else: another exception is a finding, which
hypothesis makes small and prints. `tests/test_fuzz.py` runs every target for a second or so.
"""

import argparse
import contextlib
import functools
import json
import logging
import os
import shutil
import sys
import tempfile
import time
import types
import warnings
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import hypothesis
import numpy as np
from hypothesis import strategies as st

from official_bert.errors import UserError

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcde"]
_NAMES = st.sampled_from(
    ["head", "labels", "num_labels", "hidden_size", "vocab_size", "shards", "file", "model",
     "vocab", "instances", "inputs", "signature_name", "text", "b64", "checksums", "id2label"]
)  # fmt: skip
_NUMBERS = st.one_of(
    st.integers(-3, 300),
    st.integers(),
    st.floats(),
    st.sampled_from([2**31, 2**32 + 5, 2**63, 10**400]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, st.text(max_size=8), _NAMES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(_NAMES, st.text(max_size=4)), inner, max_size=4),
    ),
    max_leaves=12,
)


def mutated(data, content: bytes, is_json: bool) -> bytes:
    """`content` with some bytes changed, or, of JSON, with some value replaced."""
    if is_json and data.draw(st.booleans()):
        value = json.loads(content)
        for _ in range(data.draw(st.integers(1, 3))):
            value = _replaced(data, value)
        return json.dumps(value).encode("utf-8", "surrogatepass")
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(0, len(changed) - 1)))
        match data.draw(st.sampled_from(["flip", "write", "cut", "remove", "repeat", "nest"])):
            case "flip" if changed:
                changed[place] ^= 1 << data.draw(st.integers(0, 7))
            case "write":
                new = data.draw(st.binary(min_size=1, max_size=8))
                changed[place : place + len(new)] = new
            case "cut":
                del changed[place:]
            case "remove":
                del changed[place : place + data.draw(st.integers(1, 64))]
            case "repeat":
                changed[place:place] = changed[place : place + data.draw(st.integers(1, 64))]
            case "nest":
                changed[place:place] = b"[" * data.draw(st.sampled_from([1, 60, 300, 990, 5000]))
    return bytes(changed)


def _replaced(data, value):
    """The JSON value with one value in it, or itself, replaced."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 9)):
        key = data.draw(st.sampled_from(sorted(value)))
        if not data.draw(st.integers(0, 5)):
            return {k: v for k, v in value.items() if k != key}
        return value | {key: _replaced(data, value[key])}
    if isinstance(value, list) and value and data.draw(st.integers(0, 9)):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], _replaced(data, value[place]), *value[place + 1 :]]
    return data.draw(VALUES)


@contextlib.contextmanager
def _damaged_copy(data, folder: Path, names: list[str] | None = None):
    """A copy of a folder in which one file is changed, and its name."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(folder, copy)
        files = sorted(str(p.relative_to(copy)) for p in copy.rglob("*") if p.is_file())
        name = data.draw(st.sampled_from(names or files))
        path = copy / name
        path.write_bytes(mutated(data, path.read_bytes(), name.endswith(".json")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield copy, name


@functools.cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="fuzz-"))


@functools.cache
def _model():
    import official_bert as ob

    config = ob.BertConfig(
        vocab_size=10, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=12, max_position_embeddings=8,
    )  # fmt: skip
    return ob.BertClassifier(ob.BertEncoder(config, seed=1), 2), ob.BertTokenizer(VOCAB)


@functools.cache
def _saved(kind: str) -> Path:
    """A folder of every kind that is fine."""
    from official_bert.checkpoints import model_folder
    from official_bert.checkpoints.resolve import EXPORTERS

    model, tokenizer = _model()
    save = EXPORTERS.get(kind, model_folder.save)
    save(_folder() / kind, model, tokenizer, {"labels": ["x", "y"]})
    return _folder() / kind


def _weights(loaded) -> list[bytes]:
    return [np.asarray(variable).tobytes() for variable in loaded.model.weights]


def model_folder(data):
    import official_bert as ob

    folder = _saved("model_folder")
    has_checksums = data.draw(st.booleans())
    with _damaged_copy(data, folder) as (copy, name):
        if not has_checksums and name != "model.json":
            fields = json.loads((copy / "model.json").read_text())
            fields.pop("checksums")
            (copy / "model.json").write_text(json.dumps(fields))
        with contextlib.suppress(UserError):
            loaded = ob.load(copy)
            assert np.isfinite(np.frombuffer(b"".join(_weights(loaded)), "f4")).all()
            if has_checksums:
                assert _weights(loaded) == _weights(ob.load(folder))


def huggingface(data):
    from official_bert.checkpoints import huggingface

    names = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    with _damaged_copy(data, _saved("huggingface"), names) as (copy, name):
        if name == "tokenizer.json":
            (copy / "vocab.txt").unlink()
        with contextlib.suppress(UserError):
            huggingface.import_huggingface(copy)


def google(data):
    from official_bert.checkpoints import google

    with _damaged_copy(data, _saved("google")) as (copy, _), contextlib.suppress(UserError):
        google.import_google(copy)


def keras_hub(data):
    from official_bert.checkpoints import keras_hub

    with _damaged_copy(data, _saved("keras_hub")) as (copy, _), contextlib.suppress(UserError):
        keras_hub.import_keras_hub(copy)


def checkpoint(data):
    from experiments.training.checkpointing import Checkpoints

    folder = _folder() / "checkpoints"
    if not folder.exists():
        for step in (1, 2):
            arrays = {"a": np.arange(40.0) + step, "b/c": np.full((3, 5), step, "f4")}
            Checkpoints(folder).save(step, arrays, {"note": step})
    names = [
        f"step-0000000{step}/{name}" for step in (1, 2) for name in ("arrays.npz", "state.json")
    ]
    with _damaged_copy(data, folder, names) as (copy, name):
        arrays, state = Checkpoints(copy).load_newest()
        step = state["step"]
        assert step == 2 or "step-00000002" in name
        assert arrays["a"].tolist() == (np.arange(40.0) + step).tolist() and state["note"] == step


def records(data):
    from data_prep.create_pretraining_data import create
    from data_prep.pretraining.record_checks import find_fault
    from data_prep.records import open_records

    folder = _folder() / "records"
    if not folder.exists():
        (_folder() / "a.txt").write_text("\n\n".join(["a b c\nd e a b\nc c a"] * 6) + "\n")
        (_folder() / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
        options = {"max_seq_length": 16, "max_predictions_per_seq": 2, "dupe_factor": 1}
        options |= {"compression": "GZIP", "num_shards": 2, "num_workers": 1, "progress": False}
        create(str(_folder() / "a.txt"), str(_folder() / "vocab.txt"), str(folder), **options)
    with _damaged_copy(data, folder) as (copy, name), contextlib.suppress(UserError):
        if data.draw(st.booleans()) and name != "manifest.json":
            (copy / "manifest.json").unlink()
        find_fault(open_records(str(copy)))


def vocabulary(data):
    from official_bert.tokenization import BertTokenizer

    path = _folder() / "changed.txt"
    path.write_bytes(mutated(data, "\n".join(VOCAB).encode(), is_json=False))
    with contextlib.suppress(UserError):
        BertTokenizer(path).encode(data.draw(st.text(max_size=20)))


def configuration(data):
    from official_bert.config import BertConfig
    from official_bert.json_files import parse_json

    content = json.dumps(BertConfig(hidden_size=12).to_dict()).encode()
    with contextlib.suppress(UserError):
        BertConfig.from_dict(parse_json(mutated(data, content, is_json=True), "here"))


@functools.cache
def _client():
    import tensorflow as tf

    from official_bert.serving.rest import Limits, create_app

    def signature(**inputs):
        output = {"scores": tf.TensorSpec([None, 2])}
        return types.SimpleNamespace(
            structured_input_signature=((), inputs), structured_outputs=output
        )

    class Model:
        path, description = Path("model"), {}
        signatures = {
            "serving_default": signature(text=tf.TensorSpec([None], "string")),
            "token_ids": signature(
                input_ids=tf.TensorSpec([None, None], "int32"),
                input_mask=tf.TensorSpec([None, None], "int32"),
            ),
        }

        def __call__(self, name, **inputs):
            rows = len(next(iter(inputs.values())))
            return {"scores": np.zeros((rows, 2), "f4")}

    return create_app(Model(), "m", "page", Limits(request_bytes=20_000, texts=8)).test_client()


def server(data):
    requests = [
        {"instances": ["a", "b"]},
        {"inputs": {"text": ["a"]}},
        {"instances": [{"b64": "YQ=="}]},
        {"signature_name": "token_ids", "inputs": {"input_ids": [[1]], "input_mask": [[1]]}},
        {"signature_name": "token_ids", "instances": [{"input_ids": [1], "input_mask": [1]}]},
    ]
    content = json.dumps(data.draw(st.sampled_from(requests))).encode()
    header = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)
    headers = data.draw(
        st.dictionaries(st.sampled_from(["Host", "Origin", "Content-Type"]), header)
    )
    path = data.draw(st.sampled_from(["/v1/models/m:predict"] * 8 + ["/", "/metrics", "/x"]))
    answer = _client().open(
        path,
        method=data.draw(st.sampled_from(["POST"] * 8 + ["GET", "PUT"])),
        data=mutated(data, content, is_json=True),
        headers=headers,
    )
    assert answer.status_code < 500, answer.get_data()


TARGETS = [model_folder, huggingface, google, keras_hub, checkpoint, records, vocabulary,
           configuration, server]  # fmt: skip


def run(target, examples: int, derandomize: bool = False) -> int:
    """Runs a target on so many inputs; returns their number, raises what it finds."""
    count = 0

    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=derandomize,
        # To make a finding small takes minutes; in the tests its stack trace will do.
        phases=[hypothesis.Phase.generate] + [hypothesis.Phase.shrink] * (not derandomize),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.data())
    def check(data):
        nonlocal count
        count += 1
        target(data)

    check()
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="how long; default 1")
    parser.add_argument("--target", choices=[target.__name__ for target in TARGETS])
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    targets = [t for t in TARGETS if options.target in (None, t.__name__)]
    end, counts = time.monotonic() + 60 * options.minutes, dict.fromkeys(targets, 0)
    try:
        while time.monotonic() < end:
            target = min(targets, key=_seconds.__getitem__)
            began = time.monotonic()
            counts[target] += run(target, 20)
            _seconds[target] += time.monotonic() - began
    finally:
        for target, count in counts.items():
            print(f"{target.__name__:<14} {count:>8,} inputs", file=sys.stderr)
        shutil.rmtree(_folder(), ignore_errors=True)
    return 0


_seconds = dict.fromkeys(TARGETS, 0.0)


if __name__ == "__main__":
    sys.exit(main())
