"""The flags that a function's parameters become."""

import pytest
from absl import flags

from data_prep.jobs import command_flags
from official_bert.common.errors import UserError


def prepare(inputs, output: str, least_words: int = 2, share: float | None = None, kind: str = "a",
            num_workers: int = 1, invalid_utf8: str = "error", apart: bool = True,
            progress: bool = False, **more):  # fmt: skip
    """Prepare.

    Args:
      output: the folder.
      least_words: of a text.
      share, kind: of what is kept.
      num_workers, invalid_utf8, apart: as elsewhere.
    """


@pytest.fixture
def defined(monkeypatch):
    known = set(flags.FLAGS)
    monkeypatch.setattr(command_flags, "available_cores", lambda: 7)
    choices = {"kind": ("a", "b"), "invalid_utf8": ("error", "replace")}
    command_flags.define(prepare, ("apart",), least={"least_words": 1}, **choices)
    yield set(flags.FLAGS) - known
    for name in set(flags.FLAGS) - known:
        delattr(flags.FLAGS, name)


def test_a_parameter_becomes_a_flag(defined):
    assert defined == {"output", "least_words", "share", "kind", "num_workers", "invalid_utf8"}
    found = {name: (flags.FLAGS[name].default, flags.FLAGS[name].flag_type()) for name in defined}
    assert found == {
        "output": (None, "string"), "least_words": (2, "int"), "share": (None, "float"),
        "kind": ("a", "string enum"), "num_workers": (7, "int"),
        "invalid_utf8": ("error", "string enum"),
    }  # fmt: skip
    assert flags.FLAGS["share"].help == "of what is kept."
    assert flags.FLAGS["least_words"] in flags.FLAGS.get_key_flags_for_module(__name__)


def test_values_are_checked_and_found(defined):
    with pytest.raises(flags.IllegalFlagValueError, match="output"):
        flags.FLAGS(["command"], known_only=True)
    flags.FLAGS(["command", "--output=x", "--least_words=1", "--share=0.5", "--kind=b"])
    assert command_flags.values(prepare) == {
        "output": "x", "least_words": 1, "share": 0.5, "kind": "b", "num_workers": 7,
        "invalid_utf8": "error",
    }  # fmt: skip
    flags.FLAGS(["command", "--output="])
    with pytest.raises(UserError, match="--output is missing: the folder; see --help"):
        command_flags.values(prepare)
    for wrong in ("--least_words=0", "--num_workers=0", "--kind=c", "--invalid_utf8=x"):
        with pytest.raises(flags.IllegalFlagValueError):
            flags.FLAGS(["command", "--output=x", wrong])
    flags.FLAGS.unparse_flags()


def test_options_that_no_docstring_describes_are_options(defined, monkeypatch):
    """Docstrings are absent under python -OO."""
    monkeypatch.setattr(command_flags, "arguments", lambda docstring: {})

    def more(apart: bool = True):
        pass

    command_flags.define(more)
    assert flags.FLAGS["apart"].default is True
    delattr(flags.FLAGS, "apart")
