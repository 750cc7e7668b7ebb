"""RelativeProjection: changes that it is invariant to, changes that it is not invariant to, and its
oracles."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import cosine_similarity

from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.represent.projection import RelativeProjection

N = 300
D = 12
K = 9
ANCHORS = np.arange(K)
TURN = ortho_group.rvs(D, random_state=1)
MIRROR = np.eye(D) - 2 * np.outer(TURN[0], TURN[0])  # Householder: across a plane that no axis is normal to
CHANGES = {
    "rotation": lambda X: X @ (TURN if np.linalg.det(TURN) > 0 else -TURN[:, [1, 0, *range(2, D)]]),
    "reflection": lambda X: X @ MIRROR,
    "scale": lambda X: 7.5 * X,
    "shift": lambda X: X + np.linspace(-2, 3, D),
}
# The changes to which each similarity is invariant without centring. With centring, all are also invariant to
# a shift.
KEEPS = {
    "cosine": {"rotation", "reflection", "scale"},
    "whitened": {"rotation", "reflection", "scale"},
    "angular": {"rotation", "reflection", "scale"},
    "quantised": {"rotation", "reflection", "scale"},
    "euclidean": {"rotation", "reflection", "shift"},
    "l1": {"shift"},
}
# The angle is steep where points coincide: a float32 rounding of the cosine, 2e-7, is 2e-4 of half a turn
# there.
TOLERANCES = {"angular": 5e-4}


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, D)).astype(np.float32) + 0.5


def relative(X, similarity, center, anchors=ANCHORS):
    whiten = similarity == "whitened"
    return (
        RelativeProjection("cosine" if whiten else similarity, center, whiten)
        .fit(X, anchors=anchors)
        .transform(X)
    )


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("center", [True, False], ids=["centred", "uncentred"])
@pytest.mark.parametrize("similarity", KEEPS)
def test_invariant_where_it_must_be_and_nowhere_else(X, similarity, center, change):
    before = relative(X, similarity, center)
    after = relative(CHANGES[change](X).astype(np.float32), similarity, center)
    difference = np.abs(after - before).max()
    if change in KEEPS[similarity] or (center and change == "shift"):
        assert difference < TOLERANCES.get(similarity, 1e-5)
    else:
        assert difference > 0.1


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(
    ("similarity", "oracle"),
    [
        ("cosine", cosine_similarity),
        ("angular", lambda X, A: 1 - np.arccos(np.clip(cosine_similarity(X, A), -1, 1)) / np.pi),
        ("euclidean", lambda X, A: -cdist(X, A)),
        ("l1", lambda X, A: -cdist(X, A, "cityblock")),
    ],
)
def test_equals_its_oracle(X, similarity, center, oracle):
    exact = X.astype(np.float64)
    if center:
        exact = exact - exact.mean(axis=0)
    np.testing.assert_allclose(
        relative(X, similarity, center), oracle(exact, exact[:K]), atol=TOLERANCES.get(similarity, 1e-5)
    )


def test_quantised_into_single_points_is_the_cosine(X):
    projection = RelativeProjection("quantised", threshold=1e-5).fit(X, anchors=ANCHORS)
    assert len(projection.similarity_.centroids_) == N
    np.testing.assert_allclose(projection.transform(X), relative(X, "cosine", True), atol=1e-5)


def test_zero_vectors_and_zero_anchors_have_cosine_zero(X):
    X = X.copy()
    X[[0, -1]] = 0
    found = relative(X, "cosine", False)
    assert not found[-1].any()
    assert not found[:, 0].any()
    assert found[1, 1] == pytest.approx(1)


def test_whitened_is_scikit_learns_nystroem_on_unit_rows(X):
    whitened = RelativeProjection(whiten=True, ridge=1e-8).fit(X, anchors=ANCHORS).transform(X)
    unit = unit_rows(X, X.mean(axis=0)).astype(np.float64)
    nystroem = Nystroem(kernel="linear", n_components=K, random_state=0).fit(unit[:K])
    np.testing.assert_allclose(whitened[:, nystroem.component_indices_], nystroem.transform(unit), atol=1e-5)
    across = unit @ unit[:K].T
    own = unit[:K] @ unit[:K].T
    np.testing.assert_allclose(whitened @ whitened.T, across @ np.linalg.solve(own, across.T), atol=1e-5)


def test_repeated_anchor_counts_once_when_whitened(X):
    once, twice = (
        RelativeProjection(whiten=True, ridge=1e-6).fit(X, anchors=anchors).transform(X)
        for anchors in (ANCHORS, np.append(ANCHORS, 0))
    )
    np.testing.assert_allclose(twice @ twice.T, once @ once.T, atol=1e-3)


@pytest.mark.parametrize(
    ("settings", "anchors", "message"),
    [
        ({}, [], "anchors: expected at least one, got none"),
        (
            {},
            ["king"],
            "expected ids of 'X', got 1 unknown: 'king'",
        ),
        ({}, np.ones((2, 3)), f"expected vectors of width {D} like the space, got 3"),
        ({"whiten": True, "ridge": 0}, [0], "ridge: expected a number above 0, got 0"),
    ],
)
def test_fit_refuses(X, settings, anchors, message):
    with pytest.raises(SpaceError, match=message):
        RelativeProjection(**settings).fit(X, anchors=anchors)
