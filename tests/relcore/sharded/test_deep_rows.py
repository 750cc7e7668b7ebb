import numpy as np
import pytest

from relcore.scores.device import NumpyDevice
from relcore.scores.sums import TopRows
from relcore.sharded.migrate import DeepRows


@pytest.mark.parametrize("ties", [False, True])
def test_the_lists_are_those_of_a_full_sort(ties):
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(300, 1000)).astype(np.float32)  # more queries than are taken at once
    if ties:
        scores[:, 500:] = scores[:, :500]
    found = [DeepRows(300, 200), DeepRows(300, 200)]
    for start in range(0, 1000, 150):
        rows = np.arange(start, min(start + 150, 1000))
        found[start > 500].add(NumpyDevice(), scores[:, rows], rows)
    arrays = [one.to_arrays() for one in found]
    merged = TopRows(300, 200)
    for one in arrays:
        other = TopRows(300, 200)
        other.take(one)
        merged.merge(other)
    wanted = np.argsort(-scores, axis=1, kind="stable")[:, :200]
    np.testing.assert_array_equal(merged.values, np.take_along_axis(scores, wanted, axis=1))
    if not ties:
        np.testing.assert_array_equal(merged.rows, wanted)
    assert all(len(set(row)) == 200 for row in merged.rows.tolist())


def test_a_list_that_is_not_full():
    found = DeepRows(1, 5)
    found.add(NumpyDevice(), np.array([[0.5, 2.0]], np.float32), np.array([7, 3]))
    assert found.to_arrays()["rows"].tolist() == [[3, 7, -1, -1, -1]]
