"""Rows on disk are read as the same float32 numbers that NumPy makes of them, and no more of them than are
used.
"""

from threading import Barrier

import numpy as np
import pytest

from relcore.base import mapped_rows
from relcore.base.mapped_rows import MappedRows, as_mapped_rows
from relcore.base.rows import as_float32

X = np.random.default_rng(0).standard_normal((9000, 5), dtype=np.float32)
WAYS = {
    "one part": [X],
    "three parts": [X[:4000], X[4000:4001], X[4001:]],
    "an empty part": [X[:0], X[:100], X[100:100], X[100:]],
}


@pytest.fixture(params=WAYS)
def rows(request):
    return MappedRows(WAYS[request.param])


def test_every_half_is_the_float32_of_numpys_cast():
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(256, 256)
    np.testing.assert_array_equal(
        as_float32(halves), halves.astype(np.float32)
    )  # NaN and infinities among them
    numbers = halves[np.isfinite(halves).all(axis=1)]
    np.testing.assert_array_equal(
        as_float32(numbers).view(np.uint32), numbers.astype(np.float32).view(np.uint32)
    )


@pytest.mark.parametrize(
    "chosen",
    [
        slice(3990, 4010),
        slice(None, None, 7),
        slice(None, None, -1),
        [4001, 0, -1, 4000, 4001],
        X[:, 0] > 0,
        4000,
        (slice(3999, 4002), 2),
    ],
    ids=str,
)
def test_what_is_read_is_what_an_array_gives(rows, chosen):
    if isinstance(chosen, list):
        chosen = np.array(chosen, dtype=int)
    found = rows[chosen]
    np.testing.assert_array_equal(found, X[chosen])
    assert found.dtype == np.float32


def test_lengths_are_those_of_float64_and_show_rows_that_are_not_finite():
    given = X.copy()
    given[[0, 5000, 8999], [1, 2, 0]] = np.nan, np.inf, 1e12
    given[7] = 0
    found = MappedRows([given[:6000], given[6000:]]).lengths
    assert np.flatnonzero(~np.isfinite(found)).tolist() == [0, 5000]
    finite = np.isfinite(found)
    np.testing.assert_allclose(
        found[finite], np.linalg.norm(given[finite].astype(np.float64), axis=1), rtol=1e-6
    )


def saved(folder, vectors, mode="r"):
    np.save(folder / "rows.npy", vectors)
    return np.load(folder / "rows.npy", mmap_mode=mode)


def test_read_only_map_is_known_whatever_view_it_is_of(tmp_path):
    there = saved(tmp_path, X)
    for view in (there, np.asarray(there), there[10:], np.asarray(there)[:5]):
        assert np.shares_memory(as_mapped_rows(view).plain, there)
    assert as_mapped_rows(saved(tmp_path, X.astype(np.float16))).plain is None


def test_array_that_may_change_or_must_be_converted_is_no_map(tmp_path):
    writable = saved(tmp_path, X, "r+")
    frozen = writable.view()
    frozen.flags.writeable = False
    alone = X.copy()
    alone.flags.writeable = False
    given = [
        writable,
        frozen,
        saved(tmp_path, X, "c"),
        alone,
        X.tolist(),
        saved(tmp_path, X)[:, :2],
        saved(tmp_path, X)[0],
    ]
    given += [saved(tmp_path, X.astype(kind)) for kind in (np.float64, ">f4", np.int16)]
    assert [as_mapped_rows(one) for one in given] == [None] * len(given)


def test_lengths_are_read_by_several_threads(monkeypatch):
    together = Barrier(2, timeout=60)
    of_block = mapped_rows.lengths

    def lengths(block):
        together.wait()
        return of_block(block)

    monkeypatch.setattr(mapped_rows, "lengths", lengths)
    monkeypatch.setattr(mapped_rows.os, "cpu_count", lambda: 4)
    given = X[: 2 * mapped_rows.BLOCK_ROWS]
    np.testing.assert_array_equal(MappedRows([given]).lengths, of_block(given))
