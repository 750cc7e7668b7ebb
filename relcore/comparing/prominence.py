"""Prominence: which of the drawn rows get their names first."""

from __future__ import annotations

import numpy as np

from relcore.similarity import mean_of, row_blocks, unit_rows
from relcore.spaces import LatentSpace
from relcore.views import View


def prominent_rows(space: LatentSpace, view: View) -> np.ndarray:
    """Positions among the view's rows (m,), all of them: the most frequent first, or the most central where none has a count.

    Central is a high cosine with the mean of the row's own category, of all rows without one, in the centred space. There
    are two passes over blocks of rows: a copy of a million rows would be the largest thing in memory.
    """
    if space.counts is not None:
        return np.argsort(-np.asarray(space.counts)[view.rows], kind="stable")
    mean, vectors = mean_of(space), space.vectors
    _, groups = np.unique(view.categories, return_inverse=True)
    sums = np.zeros((groups.max(initial=-1) + 1, space.dimension))
    for block in row_blocks(len(view.rows)):
        members = np.zeros((len(sums), block.stop - block.start), dtype=np.float32)
        members[groups[block], np.arange(members.shape[1])] = 1
        sums += members @ unit_rows(vectors[view.rows[block]], mean)
    middles = unit_rows(sums)
    central = np.empty(len(view.rows), dtype=np.float32)
    for block in row_blocks(len(view.rows)):
        central[block] = np.vecdot(unit_rows(vectors[view.rows[block]], mean), middles[groups[block]])
    return np.argsort(-central, kind="stable")
