"""Sizes that JAX compiles for: few, and never far above what is asked for."""

from official_bert.backend.compiled import few_sizes


def test_few_sizes_hold_what_is_asked_for():
    sizes = [few_sizes(size) for size in range(1, 513)]
    assert all(size <= few <= 1.5 * size for size, few in enumerate(sizes, 1))
    assert len(set(sizes)) == 18 and sizes == sorted(sizes)
    assert all(few_sizes(few) == few for few in sizes)
