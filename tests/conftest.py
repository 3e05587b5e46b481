"""Common to all tests: quiet TensorFlow, a fixed CPU device, real data, what is beyond BERT."""

import contextlib
import gc
import os
from pathlib import Path

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
# XLA's programs run a few times here: compiling costs more than running.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
# Tracing makes many objects that stay: to look through all of them often takes 5% of the time.
gc.set_threshold(100_000, 50, 100)
with contextlib.suppress(ImportError):  # the environments without TensorFlow have no hypothesis
    from hypothesis import settings

    # No test fails for being slow: the first example of some traces a graph.
    settings.register_profile("any_speed", deadline=None)
    settings.load_profile("any_speed")


def pytest_collection_modifyitems(items):
    """Mark what is not BERT's: `-m beyond` runs these tests alone, `-m "not beyond"` the others."""
    beyond = Path(__file__).parent / "beyond"
    for item in items:
        if beyond in item.path.parents:
            item.add_marker("beyond")


@pytest.fixture(scope="session", autouse=True)
def own_feature_cache(tmp_path_factory):
    """Use a cache of the suite's own: the user's would be filled, and another suite's files would
    be found."""
    os.environ["OFFICIAL_BERT_CACHE"] = str(tmp_path_factory.mktemp("features"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real corpora and benchmarks; tests that need it skip without it."""
    folder = os.environ.get("BERT_DATA_DIR", "")
    if not folder:
        pytest.skip("needs real data: set BERT_DATA_DIR to its folder")
    if not Path(folder).is_dir():
        pytest.fail(f"BERT_DATA_DIR={folder} is not a folder")
    return Path(folder)
