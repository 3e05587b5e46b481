"""Files of earlier versions are read, and the same files are written."""

import json
import tarfile

import pytest

import official_bert as ob
from tests.goldens import formats

# Files that are written again alike; other libraries' tokenisers and KerasHub's folders are theirs.
ALIKE = {"huggingface": ("config.json", "model.safetensors"), "keras_hub": ()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("goldens")
    with tarfile.open(formats.ARCHIVE) as packed:
        packed.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def known(folder):
    return json.loads((folder / "known.json").read_text())


@pytest.mark.parametrize("name", formats.NAMES)
def test_files_are_read_and_written_as_before(folder, known, name, tmp_path):
    needs = {"keras_hub": "keras_hub", "sentence_piece": "sentencepiece"}
    for what in (name.partition("/")[0], formats.CASES[name][2]):
        if what in needs:
            pytest.importorskip(needs[what])
    found, expected = formats.described(folder, name), dict(known[name])
    if "serving" in expected:
        expected["serving"] = _without_others(expected["serving"], found["serving"])
    weights = expected.pop("weights")
    for variable, numbers in found.pop("weights").items():
        assert numbers == pytest.approx(weights.pop(variable), rel=1e-9), variable
    assert not weights and json.loads(json.dumps(found)) == expected
    if name.startswith("keras/"):
        return
    loaded = ob.load(folder / name)
    formats.put(tmp_path, name, loaded.model, loaded.tokenizer, _given(loaded.settings))
    for path in (tmp_path / name).rglob("*"):
        alike = ALIKE.get(name.partition("/")[0], (path.name,))
        if path.is_file() and path.name in alike and not path.name.startswith("."):
            old = folder / path.relative_to(tmp_path)
            assert path.read_bytes() == old.read_bytes(), path


def _without_others(expected: str, found: str) -> str:
    """Return a `serving.json` without the settings of other heads, which all had until 0.10."""
    if not (expected.startswith("{") and found.startswith("{")):
        return expected
    fields, settings = json.loads(expected), json.loads(found)["settings"]
    others = {name for name in ("beams", "length_penalty") if name not in settings}
    fields["settings"] = {n: v for n, v in fields["settings"].items() if n not in others}
    return json.dumps(fields, sort_keys=True)


def _given(settings):
    return {"labels": settings["labels"]} if "labels" in settings else {}
