"""UMAP of more rows than are fitted: the others are placed on the map of a sample. The limit is lowered to
be reached.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from relcore.maps import pane_maps, reduction
from relcore.maps.pane_maps import map_pair, pane_matrices, reduce_pair
from relcore.maps.reduction import ReductionSpec, reduce_spaces
from relcore.represent.translation import REPRESENTATIONS, ProjectionSpec
from relcore.spaces.space import LatentSpace, match

N, LIMIT, AT_ONCE = 600, 250, 100
SPEC = ReductionSpec("umap")
N_CLASSES = 5


@pytest.fixture(scope="module")
def classes():
    return np.random.default_rng(1).integers(N_CLASSES, size=N)


@pytest.fixture(scope="module")
def rows(classes):
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(N_CLASSES, 8))
    return (centres[classes] + rng.normal(size=(N, 8))).astype(np.float32)


@pytest.fixture
def low_limit(monkeypatch):
    monkeypatch.setattr(reduction, "FITTED_ROWS", LIMIT)
    monkeypatch.setattr(reduction, "PLACED_AT_ONCE", AT_ONCE)


def rows_fitted():
    return reduction._sample(N, LIMIT, 0)


def share_beside_own_class(picture, fitted, classes):
    """Of the rows that were placed, how many have a fitted row of their class nearest on the map."""
    others = np.setdiff1d(np.arange(len(picture)), fitted)
    nearest = fitted[np.linalg.norm(picture[others][:, None] - picture[fitted][None], axis=2).argmin(axis=1)]
    return np.mean(classes[nearest] == classes[others])


@pytest.mark.slow  # compiling UMAP takes most of a minute
@pytest.mark.usefixtures("low_limit")
@pytest.mark.parametrize("metric", ["cosine"])
def test_all_rows_have_place_and_those_of_sample_that_of_fit(rows, metric):
    [picture] = reduce_spaces([rows], replace(SPEC, metric=metric))
    fitted = rows_fitted()
    assert len(fitted) == len(set(fitted)) == LIMIT
    assert picture.shape == (N, 2)
    assert np.isfinite(picture).all()
    [of_fit] = reduce_spaces([rows[fitted]], replace(SPEC, metric=metric))
    np.testing.assert_array_equal(picture[fitted], of_fit)


@pytest.mark.slow
@pytest.mark.usefixtures("low_limit")
def test_placed_rows_lie_beside_their_class_and_shuffled_rows_do_not(rows, classes):
    [picture] = reduce_spaces([rows], SPEC)
    fitted = rows_fitted()
    assert share_beside_own_class(picture, fitted, classes) > 0.9
    mixed = rows.copy()
    others = np.setdiff1d(np.arange(N), fitted)
    mixed[others] = rows[np.random.default_rng(2).permutation(others)]
    [control] = reduce_spaces([mixed], SPEC)
    # Chance is the sum of squared shares, about .2; its standard error over 350 rows is .02.
    assert share_beside_own_class(control, fitted, classes) < 0.3


@pytest.fixture
def linear_layout(monkeypatch):
    """In UMAP's place a product: UMAP makes another map of the last bits, and these differ by processor
    between block sizes.
    """

    def place(X):
        return X @ np.random.default_rng(0).normal(size=(X.shape[1], 2)).astype(np.float32)

    def fit(X, spec, stages):
        return SimpleNamespace(embedding_=place(X), transform=place)

    monkeypatch.setattr(reduction, "fit_umap", fit)


@pytest.mark.usefixtures("low_limit", "linear_layout")
@pytest.mark.parametrize("pane", REPRESENTATIONS)
@pytest.mark.parametrize("fit", ["first"])
def test_map_of_many_rows_is_that_of_matrix_and_forms_none(rows, pane, fit, monkeypatch):
    ids = [f"r{row}" for row in range(N)]
    pair = match(LatentSpace(rows, ids), LatentSpace(rows[:, ::-1] + 1, ids))
    spec, anchors = replace(SPEC, fit=fit), ids[:20]
    for drawn in (np.arange(N), np.arange(3, N, 2)):
        expected, told = reduce_pair(pane_matrices(pair, drawn, anchors, ProjectionSpec(), pane), spec)
        with monkeypatch.context() as patched:
            patched.setattr(pane_maps, "represent", None)
            patched.setattr(pane_maps, "pane_matrices", None)
            found, note = map_pair(pair, drawn, pane, anchors, ProjectionSpec(), spec)
        assert note == told
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
