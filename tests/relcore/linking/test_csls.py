"""CSLS in blocks against the dense formula, and no more memory than a block."""

import tracemalloc

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.engine import nearest
from relcore.linking.clusters import match_csls


def spaces(n, m, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return unit_rows(rng.normal(size=(n, d))), unit_rows(rng.normal(size=(m, d)))


def dense(X, Y, k):
    cosines = X @ Y.T
    near_x = np.sort(cosines, axis=1)[:, -k:].mean(axis=1)
    near_y = np.sort(cosines, axis=0)[-k:].mean(axis=0)
    return 2 * cosines - near_x[:, None] - near_y


@pytest.mark.parametrize(("n", "m", "k"), [(257, 90, 10), (61, 803, 3)])
def test_blocks_give_what_the_whole_matrix_gives(monkeypatch, n, m, k):
    monkeypatch.setattr(nearest, "BLOCK_BYTES", 4 * m * 37)  # blocks of 37 rows, the last one shorter
    X, Y = spaces(n, m)
    scores, found = dense(X, Y, k), match_csls(X, Y, k)
    np.testing.assert_array_equal(found.partner, scores.argmax(axis=1))
    np.testing.assert_allclose(found.similarity, scores.max(axis=1), atol=1e-5)
    mutual = np.flatnonzero(scores.argmax(axis=0)[scores.argmax(axis=1)] == np.arange(n))
    np.testing.assert_array_equal(found.mutual, mutual)


def test_equal_rows_are_paired_once():
    X, Y = spaces(50, 50)
    X[1] = X[0]
    source, target = match_csls(X, Y).pairs
    assert len(set(target.tolist())) == len(target)
    assert len(set(source.tolist())) == len(source)


def test_memory_stays_at_a_block(monkeypatch):
    monkeypatch.setattr(nearest, "BLOCK_BYTES", 2**20)
    X, Y = spaces(6000, 6000)
    tracemalloc.start()
    match_csls(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000 * 6000 * 4 / 4  # the matrix would take 144 MB


def test_what_cannot_be_matched():
    X, Y = spaces(20, 20)
    with pytest.raises(SpaceError, match="k: expected 1 or more"):
        match_csls(X, Y, 0)
