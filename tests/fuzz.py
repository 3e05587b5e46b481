"""Feeds every reader and the server with damaged and made-up input, for as long as one likes.

    python -m tests.fuzz --minutes=10        # all targets in turn; --target=huggingface for one

Each reader of `tests.tiny_inputs` gets files in which hypothesis changed bytes, values of JSON, or
one bit, and the server gets such requests. Input may be refused with a UserError (by the server:
with a status below 500), and nothing else may happen: another exception is a finding, which
hypothesis makes small and prints. `tests/test_fuzz.py` runs every target for some tenths of a
second.
"""

import argparse
import functools
import json
import logging
import os
import sys
import time
import types
from collections import Counter
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import hypothesis
import numpy as np
from hypothesis import strategies as st

from tests import damage, tiny_inputs

_NAMES = st.sampled_from(
    ["head", "labels", "num_labels", "hidden_size", "vocab_size", "shards", "file", "model",
     "vocab", "instances", "inputs", "signature_name", "text", "b64", "checksums", "id2label",
     "\ud800", "a\udfff"]
)  # fmt: skip
_LARGE = st.sampled_from([2**31, 2**32 + 5, 2**63, 10**400])
_NUMBERS = st.one_of(st.integers(-3, 300), st.integers(), st.floats(), _LARGE)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, st.text(max_size=8), _NAMES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(_NAMES, st.text(max_size=4)), inner, max_size=4),
    ),
    max_leaves=12,
)


def flipped(data, content: bytes, is_json: bool = False) -> bytes:
    """Return `content` with one bit changed."""
    place = data.draw(st.integers(0, max(0, len(content) - 1)))
    return damage.flipped(content, place, data.draw(st.integers(0, 7)))


def mutated(data, content: bytes, is_json: bool) -> bytes:
    """Return `content` with some bytes changed, or, of JSON, with some value replaced."""
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
    """Return the JSON value with one value in it, or itself, replaced."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 9)):
        key = data.draw(st.sampled_from(sorted(value)))
        if not data.draw(st.integers(0, 5)):
            return {k: v for k, v in value.items() if k != key}
        return value | {key: _replaced(data, value[key])}
    if isinstance(value, list) and value and data.draw(st.integers(0, 9)):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], _replaced(data, value[place]), *value[place + 1 :]]
    return data.draw(VALUES)


def damaged(name: str, data) -> bool:
    """Read an input one of whose files is damaged; whether it was refused."""
    given, change = tiny_inputs.INPUTS[name], data.draw(st.sampled_from([mutated, flipped]))
    file = data.draw(st.sampled_from(given.files))
    return given.check(
        file, lambda content: change(data, content, file.endswith(".json")), change is flipped
    )


@functools.cache
def _client():
    import tensorflow as tf

    from experiments.serving.rest import create_app

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

    return create_app(Model(), "m", "page", max_bytes=20_000, max_texts=8).test_client()


def server(data) -> bool:
    requests = [
        {"instances": ["a", "b"]},
        {"inputs": {"text": ["a"]}},
        {"instances": [{"b64": "YQ=="}]},
        {"signature_name": "token_ids", "inputs": {"input_ids": [[1]], "input_mask": [[1]]}},
        {"signature_name": "token_ids", "instances": [{"input_ids": [1], "input_mask": [1]}]},
    ]
    content = json.dumps(data.draw(st.sampled_from(requests))).encode()
    header = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)
    names = st.sampled_from(["Host", "Origin", "Content-Type"])
    headers = data.draw(st.dictionaries(names, header))
    path = data.draw(st.sampled_from(["/v1/models/m:predict"] * 8 + ["/", "/explain", "/x"]))
    answer = _client().open(
        path,
        method=data.draw(st.sampled_from(["POST"] * 8 + ["GET", "PUT"])),
        data=mutated(data, content, is_json=True),
        headers=headers,
    )
    assert answer.status_code < 500, answer.get_data()
    return answer.status_code >= 400


TARGETS = {name: functools.partial(damaged, name) for name in tiny_inputs.INPUTS}
TARGETS["server"] = server


def run(name: str, examples: int, derandomize: bool = False) -> Counter:
    """Run a target on so many inputs; count them and those refused, raise what it finds."""
    counts = Counter()

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
        counts["inputs"] += 1
        counts["refused"] += TARGETS[name](data)

    check()
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="how long; default 1")
    parser.add_argument("--target", choices=TARGETS)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    counts = {name: Counter() for name in TARGETS if options.target in (None, name)}
    end = time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        # Each gets the same time; hypothesis begins each run with the simplest inputs.
        name = min(counts, key=lambda name: counts[name]["seconds"])
        began = time.monotonic()
        counts[name] += run(name, 100)
        counts[name]["seconds"] += time.monotonic() - began
    print("| target | inputs | refused | seconds |\n|---|---|---|---|")
    for name, count in counts.items():
        print(f"| {name} | {count['inputs']} | {count['refused']} | {count['seconds']:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
