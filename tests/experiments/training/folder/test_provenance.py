"""The stamp of the code, and what a run notes of the code and machine that trained it."""

import io
import itertools
import shutil
import tokenize

import pytest

from experiments.training.folder import provenance

LAYOUT = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@pytest.fixture
def source(tmp_path):
    """Return a copy of what the stamp is of."""
    for name in ("official_bert", "data_prep", "experiments"):
        ignored = shutil.ignore_patterns("__pycache__", "results", "sample", "models", "*.h5")
        shutil.copytree(provenance._ROOT / name, tmp_path / name, ignore=ignored)
    return tmp_path


def stamp_after(source, name, old, new):
    path = source / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    provenance.code_stamp.cache_clear()
    stamp = provenance.code_stamp(source)
    path.write_text(text)
    return stamp


def test_the_stamp_is_of_what_can_change_a_number(source):
    before = provenance.code_stamp(source)
    changes = [
        ("official_bert/optimization.py", "beta_1=0.9", "beta_1=0.8"),
        ("data_prep/pretraining/masking.py", "import", "import math\nimport"),
        ("experiments/training/step/loop.py", "_SECONDS_PER_CALL = 1.0", "_SECONDS_PER_CALL = 2.0"),
    ]
    for change in changes:
        assert stamp_after(source, *change) != before, change
    (source / "official_bert" / "new.py").write_text("x = 1\n")
    provenance.code_stamp.cache_clear()
    assert provenance.code_stamp(source) != before
    (source / "official_bert" / "new.py").unlink()
    others = [
        ("official_bert/optimization.py", '"""', '"""Other words. '),
        ("official_bert/optimization.py", "import ", "# a comment\n\nimport "),
        ("experiments/training/folder/progress.py", "import json", "import json, math"),
        ("experiments/ablate.py", "import json", "import json, math"),
    ]
    for change in others:
        assert stamp_after(source, *change) == before, change


def test_only_comments_and_docstrings_are_left_out():
    text = '''"""Of a module,
of two lines."""
x = "# no comment"  # a comment


def f():
    """Of a function."""
    # another
    return """kept
    as it is"""
'''
    assert provenance._code_of(text) == (
        'x = "# no comment"\ndef f():\n    return """kept\n    as it is"""'
    )


def test_no_code_is_left_out_with_them():
    for path in provenance._sources(provenance._ROOT):
        text = path.read_text(encoding="utf-8")
        found = [t for t in tokens(provenance._code_of(text)) if t.type != tokenize.NL]
        kept, at = [t.string for t in found], 0
        for token, following in itertools.pairwise(tokens(text)):
            if token.type in (tokenize.NL, tokenize.COMMENT):
                continue
            if at < len(kept) and token.string == kept[at]:
                at += 1
            elif token.type == tokenize.STRING:
                assert following.type == tokenize.NEWLINE and token.string.strip("rR")[:3] == '"""'
            else:
                assert token.type in LAYOUT, (path, token)


def tokens(text):
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def test_sessions_of_other_code_are_kept(tmp_path, monkeypatch):
    assert provenance.sessions(tmp_path) == []
    assert provenance.note(tmp_path, seed=1) == ""
    assert provenance.note(tmp_path, seed=1) == ""
    assert len(provenance.sessions(tmp_path)) == 1
    code = provenance.code_stamp()
    monkeypatch.setattr(provenance, "code_stamp", lambda: "0123")
    packages = {"keras": "0.0"}
    monkeypatch.setattr(provenance, "_packages", lambda: packages)
    changed = provenance.note(tmp_path, seed=1)
    assert changed.startswith(f"code {code} -> 0123") and "-> 0.0" in changed
    first, second = provenance.sessions(tmp_path)
    assert (first["code"], second["code"], second["seed"]) == (code, "0123", 1)
    assert first["processor"] and first["cores"] and first["date"] and first["packages"]
