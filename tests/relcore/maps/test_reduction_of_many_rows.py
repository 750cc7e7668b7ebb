"""UMAP of more rows than are fitted: the others are placed on the map of a sample. The limit is lowered to
be reached.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from relcore.maps import neighbour_maps, pane_maps, principal_axes, reduction
from relcore.maps.pane_maps import map_pair, pane_matrices, reduce_pair
from relcore.maps.principal_axes import ReductionSpec
from relcore.maps.reduction import reduce_spaces
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N = 600
LIMIT = 250
AT_ONCE = 100
SPEC = ReductionSpec("umap")


@pytest.fixture(scope="module")
def classes():
    return np.random.default_rng(1).integers(5, size=N)


@pytest.fixture(scope="module")
def rows(classes):
    rng = np.random.default_rng(0)
    return (3 * rng.normal(size=(5, 8))[classes] + rng.normal(size=(N, 8))).astype(np.float32)


@pytest.fixture
def low_limit(monkeypatch):
    monkeypatch.setattr(neighbour_maps, "FITTED_ROWS", LIMIT)
    monkeypatch.setattr(principal_axes, "FITTED_ROWS", LIMIT)
    monkeypatch.setattr(neighbour_maps, "PLACED_AT_ONCE", AT_ONCE)


@pytest.mark.slow  # compiling UMAP takes most of a minute
@pytest.mark.usefixtures("low_limit")
def test_placed_rows_lie_beside_their_class_and_shuffled_rows_do_not(rows, classes):
    fitted = principal_axes.random_rows(N, LIMIT, 0)
    others = np.setdiff1d(np.arange(N), fitted)

    def share_beside_own_class(picture):
        gaps = np.linalg.norm(picture[others][:, None] - picture[fitted][None], axis=2)
        return np.mean(classes[fitted[gaps.argmin(axis=1)]] == classes[others])

    mixed = rows.copy()
    mixed[others] = rows[np.random.default_rng(2).permutation(others)]
    (picture,), (control,), (of_fit,) = (reduce_spaces([X], SPEC) for X in (rows, mixed, rows[fitted]))
    np.testing.assert_array_equal(picture[fitted], of_fit)
    assert picture.shape == (N, 2)
    assert share_beside_own_class(picture) > 0.9
    # Chance is the sum of squared shares, about .2; its standard error over 350 rows is .02.
    assert share_beside_own_class(control) < 0.3


@pytest.fixture
def linear_layout(monkeypatch):
    """A product replaces UMAP, because UMAP depends on the last bits of its input. These differ between block
    sizes on some processors.
    """

    def place(X):
        return X @ np.random.default_rng(0).normal(size=(X.shape[1], 2)).astype(np.float32)

    def fit(X, spec, stages):
        return SimpleNamespace(embedding_=place(X), transform=place)

    monkeypatch.setattr(reduction, "fit_umap", fit)


@pytest.mark.usefixtures("low_limit", "linear_layout")
@pytest.mark.parametrize("pane", REPRESENTATIONS)
def test_map_of_many_rows_is_that_of_matrix_and_forms_none(rows, pane, monkeypatch):
    ids = [f"r{row}" for row in range(N)]
    pair = match(LatentSpace(rows, ids), LatentSpace(rows[:, ::-1] + 1, ids))
    spec = replace(SPEC, fit="first")
    anchors = ids[:20]
    for drawn in (np.arange(N), np.arange(3, N, 2)):
        expected, told = reduce_pair(pane_matrices(pair, drawn, anchors, ProjectionSpec(), pane), spec)
        with monkeypatch.context() as patched:
            patched.setattr(pane_maps, "represent", None)
            patched.setattr(pane_maps, "pane_matrices", None)
            found, note = map_pair(pair, drawn, pane, anchors, ProjectionSpec(), spec)
        assert note == told
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
