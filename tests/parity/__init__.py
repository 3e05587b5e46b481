"""Equality with independent implementations: each check is defined once, here.

`python -m tests.parity` runs all of them and writes docs/parity.md; test_parity.py runs the same
checks under pytest.
"""
