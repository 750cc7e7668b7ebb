"""Each adapter against an independent implementation, and with few or odd pairs."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import RidgeCV

from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS
from relcore.base.rows import unit_rows
from relcore.migrate.adapters import (
    PENALTIES,
    ProcrustesAdapter,
    RidgeAdapter,
    WhitenedInverseAdapter,
    WhitenedRelativeAdapter,
)
from relcore.migrate.migration import Migration
from relcore.represent.inverse import InverseRelativeProjection
from relcore.represent.projection import RelativeProjection


@pytest.fixture
def pairs(rng):
    """Rows (300, 12) and (300, 9) that share eight directions, with noise, off-centre."""
    common = rng.normal(size=(300, 8)) * np.geomspace(3, 1, 8)
    new = common @ rng.normal(size=(8, 12)) + rng.normal(size=(300, 12)) + 2
    old = common @ rng.normal(size=(8, 9)) + rng.normal(size=(300, 9)) - 1
    return unit_rows(new), unit_rows(old)


def around(deviations, old):
    """Predicted deviations, scaled to the mean length of the true ones, plus the mean of the old rows."""
    mean = old.mean(axis=0)
    return unit_rows(unit_rows(deviations) * np.linalg.norm(old - mean, axis=1).mean() + mean)


@pytest.fixture(params=ADAPTERS)
def adapter(request):
    return ADAPTERS[request.param].load()()


@pytest.mark.parametrize("m", [12, 40, 200])
def test_ridge_is_that_of_scikit_learn(pairs, m):
    new, old = pairs
    peer = RidgeCV(alphas=PENALTIES).fit(new[:m].astype(float), old[:m].astype(float))
    adapter = RidgeAdapter().fit(new[:m], old[:m])
    assert adapter.penalty_ == pytest.approx(peer.alpha_)
    wanted = around(peer.predict(new.astype(float)) - old[:m].mean(axis=0), old[:m])
    assert adapter.transform(new) == pytest.approx(wanted, abs=1e-4)


def test_procrustes_is_that_of_scipy(pairs):
    new = unit_rows(pairs[0][:, :9])
    old = pairs[1]
    means = new[:100].mean(axis=0), old[:100].mean(axis=0)
    rotation, _ = orthogonal_procrustes(new[:100] - means[0], old[:100] - means[1])
    adapter = ProcrustesAdapter().fit(new[:100], old[:100])
    assert adapter.transform(new) == pytest.approx(around((new - means[0]) @ rotation, old[:100]), abs=1e-5)
    assert adapter.corpus(old) == pytest.approx(unit_rows(old))


# with fewer and with more pairs than dimensions
@pytest.mark.parametrize("m", [7, 120])
def test_whitened_adapters_are_those_of_relative_projections(pairs, m):
    new, old = pairs
    peer = InverseRelativeProjection("whitened", ridge=1.0, lengths="mean").fit(new[:m], old[:m])
    inverse = WhitenedInverseAdapter().fit(new[:m], old[:m])
    assert inverse.transform(new) == pytest.approx(unit_rows(peer.transform(new)), abs=1e-4)
    sides = [
        unit_rows(RelativeProjection(whiten=True).fit(side[:m], anchors=np.arange(m)).transform(side[m:]))
        for side in pairs
    ]
    adapter = WhitenedRelativeAdapter().fit(new[:m], old[:m])
    found = adapter.transform(new[m:]) @ adapter.corpus(old[m:]).T
    wanted = sides[0] @ sides[1].T
    factors = np.linalg.norm(found, axis=1) / np.linalg.norm(wanted, axis=1)  # do not change a query's order
    assert found == pytest.approx(wanted * factors[:, None], abs=2e-4)
    assert adapter.corpus(old).shape[1] == min(m, 9)


@pytest.mark.parametrize("case", ["two pairs", "all the same", "zero rows"])
def test_few_and_odd_pairs_give_finite_unit_rows(adapter, rng, case):
    m = 2 if case == "two pairs" else 40
    new = rng.normal(size=(m, 10))
    old = rng.normal(size=(m, 7))
    if case == "all the same":
        new[:] = new[0]
        old[:] = old[0]
    elif case == "zero rows":
        new[:5] = 0
        old[3:8] = 0
    adapter.fit(new, old)
    queries = adapter.transform(rng.normal(size=(30, 10)))
    corpus = adapter.corpus(rng.normal(size=(20, 7)))
    assert queries.dtype == corpus.dtype == np.float32
    assert queries.shape[1] == corpus.shape[1]
    for rows in (queries, corpus):
        lengths = np.linalg.norm(rows, axis=1)
        assert np.all((np.abs(lengths - 1) < 1e-4) | (lengths == 0))


def test_rotated_rows_of_any_length_are_found_and_unrelated_ones_as_by_chance(adapter, rng):
    def share_found(new, old):
        adapter.fit(new[:300], old[:300])
        nearest = (adapter.transform(new[300:]) @ adapter.corpus(old[300:]).T).argmax(axis=1)
        return np.mean(nearest == np.arange(100))

    old = rng.normal(size=(400, 8)) * np.linspace(2, 1, 8)
    rotation, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    assert share_found(old @ rotation * rng.uniform(0.1, 50, size=(400, 1)), old) > 0.95
    assert share_found(rng.normal(size=(400, 8)), rng.normal(size=(400, 6))) <= 0.06  # .01 by chance


def test_unknown_adapters_are_refused_with_the_choices():
    with pytest.raises(SpaceError, match=r"adapter: expected one of auto, whitened, .*got 'low-rank'"):
        Migration(adapter="low-rank")
    with pytest.raises(SpaceError, match=r"got 'procrustes'"):
        Migration(adapter="procrustes")
