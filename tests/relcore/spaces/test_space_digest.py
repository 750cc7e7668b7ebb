"""Facts about the content of a space, computed block by block."""

import numpy as np
import pytest

from relcore.base.mapped_rows import MappedRows
from relcore.spaces import matching
from relcore.spaces.matching import n_equal_rows


@pytest.mark.parametrize("of", [lambda rows: rows, lambda rows: MappedRows([rows[:7], rows[7:]])])
def test_rows_that_equal_another_are_counted_across_blocks(of, monkeypatch):
    monkeypatch.setattr(matching, "BLOCK_ROWS", 5)
    rows = np.random.default_rng(0).normal(size=(23, 4)).astype(np.float32)
    assert n_equal_rows(of(rows)) == 0
    rows[[1, 20]], rows[[3, 4, 19]], rows[8, :3] = rows[0], rows[2], rows[9, :3]
    assert n_equal_rows(of(rows)) == 7
