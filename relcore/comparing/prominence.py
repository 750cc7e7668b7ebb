"""Prominence: which of the drawn rows get their names first."""

from __future__ import annotations

import numpy as np

from relcore.similarity import mean_row
from relcore.spaces import LatentSpace
from relcore.views import View


def prominent_rows(space: LatentSpace, view: View) -> np.ndarray:
    """Positions among the view's rows (m,), all of them: the most frequent first, or the most central where no row has a count.

    Central is a high cosine with the mean of the row's own category, of all rows without one, in the centred space.
    """
    if space.counts is not None:
        return np.argsort(-np.asarray(space.counts)[view.rows], kind="stable")
    vectors = space.vectors[view.rows] - mean_row(space.vectors)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    central = np.empty(len(view.rows))
    for category in np.unique(view.categories):
        members = np.flatnonzero(view.categories == category)
        middle = vectors[members].mean(axis=0)
        central[members] = vectors[members] @ middle / max(float(np.linalg.norm(middle)), 1e-12)
    return np.argsort(-central, kind="stable")
