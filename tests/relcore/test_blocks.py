"""Blocks of rows on all cores: each row once, the same whatever the threads, BLAS given back as it was."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from relcore.blocks import each_block
from relcore.similarity import project_directions


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize(("n_rows", "width"), [(0, 5), (1, 5), (4_000, 300), (70_000, 10), (200, 10**7)])
def test_each_row_is_in_one_block(n_rows, width):
    counts = np.zeros(n_rows, dtype=int)
    each_block(lambda rows: np.add.at(counts, np.arange(rows.start, rows.stop), 1), n_rows, width)
    assert (counts == 1).all()


def test_products_run_on_one_thread_each_and_the_number_is_given_back():
    seen = []
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        each_block(lambda rows: seen.append(blas_threads()), 5_000, 300)
        assert blas_threads() == before
    assert seen
    assert all(found == {1} for found in seen)


def test_two_at_once_leave_blas_as_it_was(rng):
    X, basis = rng.normal(size=(6_000, 40)).astype(np.float32), rng.normal(size=(40, 60)).astype(np.float32)
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        with ThreadPoolExecutor(4) as callers:
            found = list(callers.map(lambda _: project_directions(X, basis), range(20)))
        assert blas_threads() == before
    expected = X @ basis / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(found[0], expected, atol=1e-4)
    assert all(np.array_equal(one, found[0]) for one in found)


def test_the_result_does_not_depend_on_the_number_of_threads(rng):
    X, basis = rng.normal(size=(6_000, 40)).astype(np.float32), rng.normal(size=(40, 60)).astype(np.float32)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            results.append(project_directions(X, basis))
    assert np.array_equal(*results)


def test_an_error_in_a_block_reaches_the_caller_and_blas_is_given_back():
    def fails(rows):
        raise ValueError(f"block {rows.start}")

    with threadpool_limits(2, "blas"):
        before = blas_threads()
        with pytest.raises(ValueError, match="block"):
            each_block(fails, 5_000, 300)
        assert blas_threads() == before
