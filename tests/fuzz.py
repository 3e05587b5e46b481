"""Feeds every loader and the server with damaged and made-up input, for as long as one likes.

    python -m tests.fuzz --minutes=10        # all targets in turn; --target=huggingface for one

Each target is a function of hypothesis's `data`. It may refuse its input with a UserError (the
server: with a status below 500) and must do nothing else: another exception is a finding, which
hypothesis makes small and prints. Half of the files with checksums have a single bit flipped: what
is read of them is what was written, or they are refused. `tests/test_fuzz.py` runs every target for
a second or so.
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
from collections import Counter
from pathlib import Path
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import hypothesis
import numpy as np
from hypothesis import strategies as st

from official_bert.common.errors import UserError
from tests import damage, tiny_inputs

_refused = 0
_NAMES = st.sampled_from(
    ["head", "labels", "num_labels", "hidden_size", "vocab_size", "shards", "file", "model",
     "vocab", "instances", "inputs", "signature_name", "text", "b64", "checksums", "id2label",
     "\ud800", "a\udfff"]
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


def flipped(data, content: bytes, is_json: bool = False) -> bytes:
    """`content` with one bit changed."""
    place = data.draw(st.integers(0, len(content) - 1))
    return damage.flipped(content, place, data.draw(st.integers(0, 7)))


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


_CHANGES = st.sampled_from([mutated, flipped])


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
def _damaged_copy(data, folder: Path, names=None, drop=None, change=mutated):
    """A copy of a folder in which one file is changed, and its name.

    Args:
      names: the files that may be changed; None for all.
      change: `mutated` or `flipped`.
      drop: a JSON file and its field of checksums, to be left out: a stranger's are right.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(folder, copy)
        if drop:
            fields = json.loads((copy / drop[0]).read_text())
            del fields[drop[1]]
            (copy / drop[0]).write_text(json.dumps(fields))
        files = sorted(str(p.relative_to(copy)) for p in copy.rglob("*") if p.is_file())
        name = data.draw(st.sampled_from(names or files))
        path = copy / name
        path.write_bytes(change(data, path.read_bytes(), name.endswith(".json")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield copy, name


def _weights(loaded) -> list[bytes]:
    return [np.asarray(variable).tobytes() for variable in loaded.model.weights]


def model_folder(data):
    import official_bert as ob

    folder = tiny_inputs.model("model_folder")
    drop = data.draw(st.sampled_from([None, ("model.json", "checksums")]))
    change = mutated if drop else data.draw(_CHANGES)
    with (
        _damaged_copy(data, folder, None, drop, change) as (copy, name),
        _refusing(name if change is flipped else ""),
    ):
        loaded = ob.load(copy)
        assert np.isfinite(np.frombuffer(b"".join(_weights(loaded)), "f4")).all()
        if not drop:
            assert _weights(loaded) == _weights(ob.load(folder))


def huggingface(data):
    from official_bert.checkpoints import huggingface

    change = data.draw(_CHANGES)
    names = ["model.safetensors"]
    names += ["config.json", "tokenizer.json", "tokenizer_config.json"] * (change is mutated)
    folder = tiny_inputs.model("huggingface")
    with _damaged_copy(data, folder, names, change=change) as (copy, name):
        if name == "tokenizer.json":
            (copy / "vocab.txt").unlink()
        with _refusing():
            loaded = huggingface.import_huggingface(copy)
            if change is flipped:
                assert _weights(loaded) == _weights(huggingface.import_huggingface(folder))


def foreign_folder(data):
    from official_bert.checkpoints.resolve import IMPORTERS

    kind = data.draw(st.sampled_from(["google", "keras_hub"]))
    with _damaged_copy(data, tiny_inputs.model(kind)) as (copy, _), _refusing():
        IMPORTERS[kind](copy)


def checkpoint(data):
    from experiments.training.checkpointing import Checkpoints

    names = [
        f"step-0000000{step}/{name}" for step in (1, 2) for name in ("arrays.npz", "state.json")
    ]
    change = data.draw(_CHANGES)
    with _damaged_copy(data, tiny_inputs.checkpoints(), names, change=change) as (copy, name):
        with mock.patch.object(logging, "warning") as warned:
            arrays, state = Checkpoints(copy).load_newest()
        step = state["step"]
        assert step == 2 or ("step-00000002" in name and warned.called)
        expected = tiny_inputs.checkpoint_arrays(step)
        assert state == {"step": step, "note": step} and arrays.keys() == expected.keys()
        assert all(arrays[name].tobytes() == expected[name].tobytes() for name in expected)


def records(data):
    from data_prep.pretraining.numpy_batches import find_fault
    from data_prep.records import explained, open_records, pretraining_dataset

    kind = data.draw(st.sampled_from([("GZIP",), ("",), ("", True)]))
    drop = data.draw(st.sampled_from([None, ("manifest.json", "checksum")]))
    change, folder = data.draw(_CHANGES), tiny_inputs.records(*kind)
    with _damaged_copy(data, folder, None, drop, change) as (copy, name), _refusing():
        same = change is flipped and name.startswith("examples-")
        if name != "manifest.json" and not data.draw(st.integers(0, 3)):
            (copy / "manifest.json").unlink()
            same = False
        opened = open_records(str(copy))
        find_fault(opened)
        assert not same or _rows(opened) == _rows(open_records(str(folder)))
        if not data.draw(st.integers(0, 7)):  # takes longer
            with explained(opened):
                list(pretraining_dataset(opened, 4, drop_remainder=False))


def _rows(opened) -> list[dict]:
    from data_prep.records import numpy_batches

    found = numpy_batches(opened, 4, shuffle=False, drop_remainder=False)
    return [{name: values.tolist() for name, values in batch.items()} for batch in found]


def task_files(data):
    from data_prep.tasks import get_task, look
    from official_bert.tokenization import BertTokenizer

    name = data.draw(st.sampled_from(sorted(tiny_inputs.TASK_FILES)))
    task, content = tiny_inputs.TASK_FILES[name]
    path = tiny_inputs.folder() / "tasks" / name.replace(".", "-") / Path(name).name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(mutated(data, content.encode(), name.endswith(".json")))
    with _refusing():
        task = get_task(task, str(path.parent))
        for example in task.examples("train"):
            task.features(example, BertTokenizer(tiny_inputs.VOCAB), 16)
    format = data.draw(st.sampled_from(["", *look.FORMATS]))
    with _refusing():
        for rows, _ in task.inputs(str(path), format).rows:
            assert all(isinstance(row, dict) for row in rows)


def task_folders(data):
    from data_prep.tasks import get_task

    name = data.draw(st.sampled_from(sorted(tiny_inputs.TASK_FOLDERS)))
    with _damaged_copy(data, tiny_inputs.task_folder(name)) as (copy, _), _refusing():
        task = get_task(name, str(copy))
        for split in ("train", "dev"):
            examples = task.examples(split)
        assert isinstance(task.head.get("labels", []), list)
        if examples and name == "visits":
            task.baseline(task.examples("train"), examples)


def corpora(data):
    from data_prep.corpus.sources import Reading
    from data_prep.sentences import split_file

    layout = data.draw(st.sampled_from(sorted(tiny_inputs.CORPORA)))
    path = tiny_inputs.folder() / f"{layout}.txt"
    path.write_bytes(mutated(data, tiny_inputs.CORPORA[layout].encode(), is_json=False))
    with _refusing():
        split_file(str(path), tiny_inputs.folder() / "sentences.txt", Reading(layout))


def arrays(data):
    from data_prep.jobs import array_files

    path = tiny_inputs.folder() / "changed.npz"
    change, source = data.draw(_CHANGES), tiny_inputs.arrays(data.draw(st.booleans()))
    path.write_bytes(change(data, source.read_bytes(), False))
    whole = array_files.read(source)
    with _refusing():
        found = array_files.read(path)
        assert change is mutated or all(
            found[name].tobytes() == whole[name].tobytes() for name in whole
        )


def vocabulary(data):
    from official_bert.tokenization import load_tokenizer

    with _damaged_copy(data, tiny_inputs.vocabularies()) as (copy, name), _refusing():
        path = copy / ("vocab.json" if name == "merges.txt" else name)
        tokenizer = load_tokenizer(path)
        text = data.draw(st.text(max_size=20))
        assert all(0 <= index < len(tokenizer.vocab) for index in tokenizer.encode(text))


def configuration(data):
    from official_bert.common.json_files import parse_json
    from official_bert.config import BertConfig

    content = json.dumps(BertConfig(hidden_size=12).to_dict()).encode()
    with _refusing():
        BertConfig.from_dict(parse_json(mutated(data, content, is_json=True), "here"))


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
    path = data.draw(st.sampled_from(["/v1/models/m:predict"] * 8 + ["/", "/explain", "/x"]))
    answer = _client().open(
        path,
        method=data.draw(st.sampled_from(["POST"] * 8 + ["GET", "PUT"])),
        data=mutated(data, content, is_json=True),
        headers=headers,
    )
    assert answer.status_code < 500, answer.get_data()


TARGETS = [model_folder, huggingface, foreign_folder, checkpoint, records, task_files, task_folders,
           corpora, arrays, vocabulary, configuration, server]  # fmt: skip


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


@contextlib.contextmanager
def _refusing(name: str = ""):
    """Around what may refuse its input, by `name`; counts how often it does."""
    global _refused
    try:
        yield
    except UserError as error:
        assert name in str(error)
        _refused += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="how long; default 1")
    parser.add_argument("--target", choices=[target.__name__ for target in TARGETS])
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    targets = [t for t in TARGETS if options.target in (None, t.__name__)]
    counts = {target.__name__: Counter() for target in targets}
    end = time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        # Each gets the same time; hypothesis begins each run with the simplest inputs.
        target = min(targets, key=lambda target: counts[target.__name__]["seconds"])
        own, began, refused = counts[target.__name__], time.monotonic(), _refused
        own["inputs"] += run(target, 100)
        own["refused"] += _refused - refused
        own["seconds"] += time.monotonic() - began
    print("| target | inputs | refused | seconds |\n|---|---|---|---|")
    for name, count in counts.items():
        print(f"| {name} | {count['inputs']} | {count['refused']} | {count['seconds']:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
