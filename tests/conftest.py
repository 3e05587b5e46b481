"""Common to all tests: quiet TensorFlow, a fixed CPU device, real data, what is beyond BERT."""

import gc
import os
from pathlib import Path

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
# What XLA compiles here runs a few times: compiling costs more than running.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
# Tracing makes many objects that stay: to look through all of them often takes 5% of the time.
gc.set_threshold(100_000, 50, 100)

# What came after BERT, what it was compared with, and what else is made of it: `-m beyond` runs
# these alone, `-m "not beyond"` all others.
BEYOND = {
    "official_bert": "test_*successors test_awd_lstm test_distillation test_elmo test_generation"
    " test_gpt test_graph_codes test_sentence_vectors test_seq2seq test_shallow_concatenation"
    " test_successor_models test_tokenization_byte_pair test_tokenization_foreign"
    " test_tokenization_sentence_piece test_tokenization_word_ends test_video_pretrainer"
    " test_word_vectors",
}


def pytest_collection_modifyitems(items):
    beyond = set()
    for package, names in BEYOND.items():
        for name in names.split():
            found = set((Path(__file__).parent / package).glob(f"{name}.py"))
            if not found:
                raise pytest.UsageError(f"tests/conftest.py: BEYOND: there is no {package}/{name}")
            beyond |= found
    for item in items:
        if item.path in beyond or Path(__file__).parent / "beyond" in item.path.parents:
            item.add_marker("beyond")


@pytest.fixture(scope="session", autouse=True)
def own_feature_cache(tmp_path_factory):
    """The user's own would be filled, and what another suite wrote there would be found."""
    os.environ["OFFICIAL_BERT_CACHE"] = str(tmp_path_factory.mktemp("features"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real corpora and benchmarks; tests that need it skip without it."""
    folder = os.environ.get("BERT_DATA_DIR", "")
    if not folder:
        pytest.skip("needs real data: set BERT_DATA_DIR to its folder")
    if not Path(folder).is_dir():
        pytest.fail(f"BERT_DATA_DIR={folder} is not a folder")
    return Path(folder)
