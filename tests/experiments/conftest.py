"""Records of made-up sentences, which tests only read."""

import pytest
import tiny_runs


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Return the folder of `tiny_runs.make_records`."""
    return tiny_runs.make_records(tmp_path_factory.mktemp("records"))
