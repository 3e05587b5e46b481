"""Tests of guests on JAX, collected as those of tests/without_tensorflow."""

from tests.without_tensorflow.conftest import collect_ignore_glob as collect_ignore_glob
