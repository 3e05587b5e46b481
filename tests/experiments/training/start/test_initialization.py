"""Names, files and types choose the start of a run."""

import pytest

from experiments.training.settings.config import FinetuneConfig, PretrainConfig
from experiments.training.start import initialization
from official_bert import extension
from official_bert.extension import Extension


class Other(initialization.ModelSource):
    """A kind of start of an extension."""


@pytest.fixture
def some(monkeypatch):
    names = ("other", "*.other", "Sizes")
    one = Extension("some", starts=dict.fromkeys(names, f"{__name__}:Other"))
    monkeypatch.setattr(extension, "_manifest", lambda: (one,))
    extension.extensions.cache_clear()
    yield
    extension.extensions.cache_clear()


class Sizes:
    """A configuration that is pre-trained in the place of a BERT."""


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (PretrainConfig(), "BertSource"),
        (PretrainConfig(bert=Sizes()), "Other"),
        (FinetuneConfig(), "BertSource"),
        (FinetuneConfig(model="tiny-wikipedia"), "BertSource"),
        (FinetuneConfig(model="other"), "Other"),
    ],
)
def test_names_and_types(config, kind, some):
    assert type(initialization.of(config)).__name__ == kind


def test_folders(tmp_path, monkeypatch, some):
    def kind(model):
        return type(initialization.of(FinetuneConfig(model=model))).__name__

    monkeypatch.chdir(tmp_path)
    (tmp_path / "[model]").mkdir()
    assert kind("[model]") == "BertSource"
    (tmp_path / "[model]" / "x.other").touch()
    assert kind("[model]") == "Other"
    (tmp_path / "x.other").touch()
    assert kind("") == "BertSource"  # a name, not the working folder
