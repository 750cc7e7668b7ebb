"""Inversion of a pair: against the estimator, permutations and the grid; and figures that a recipe draws
again.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import ortho_group

from relcore.base.names import ROUTES
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.recipe import ComparisonRecipe
from relcore.compare.scene import exportable
from relcore.invert.inversion import (
    InversionSpec,
    PairedRows,
    RecoveredRows,
    RecoveryErrors,
    invert_pair,
    sides,
)
from relcore.maps.reduction import ReductionSpec, reduce_spaces
from relcore.represent import translation
from relcore.represent.translation import InverseRelativeProjection, recovered
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N, D, K = 300, 8, 30


@pytest.fixture
def pair(rng):
    labels = np.array([f"c{row % 5}" for row in range(N)])
    X = rng.normal(size=(N, D)) + 4 * np.eye(5, D)[np.arange(N) % 5] + 1
    turn = np.linalg.qr(rng.normal(size=(D + 2, D + 2)))[0][:D]
    Y = 2 * X @ turn + 0.3 * rng.normal(size=(N, D + 2)) - 3
    ids = [f"r{row}" for row in range(N)]
    return match(LatentSpace(X, ids, name="a", labels=labels), LatentSpace(Y, ids, name="b", labels=labels))


@pytest.fixture
def anchors():
    return tuple(f"r{row}" for row in range(K))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("method", ["pruned", "ridge", "whitened"])
def test_rows_are_those_of_the_estimator(pair, anchors, route, method):
    spec = InversionSpec(route, method, omega=3, delta=0.4, ridge=0.5, random_state=2)
    found = invert_pair(pair, anchors, spec)
    source, target = sides(pair, route)
    means = [space.vectors.mean(axis=0) for space in (source, target)]
    inverse = InverseRelativeProjection(method, 3, 0.4, 0.5, 2)
    inverse.fit(source.vectors[:K], target.vectors[:K], source_mean=means[0], target_mean=means[1])
    np.testing.assert_allclose(found.recovered, inverse.transform(source.vectors), atol=1e-3)
    expected = recovered(found.recovered, target.vectors, means[1])
    np.testing.assert_allclose(1 - found.errors[spec.title], expected["cosine"], atol=1e-5)
    np.testing.assert_allclose(found.distance, expected["error"], rtol=1e-4)
    assert float(found.scores[spec.title]) == pytest.approx(expected["cosine"][K:].mean(), abs=1e-5)
    assert found.scores[spec.title].n == found.n_scored == N - K
    assert not found.scored[:K].any()
    assert found.shape == (source.dimension, target.dimension)
    assert found.kept == np.mean([len(kept) for kept in inverse.kept_])
    assert found.condition == pytest.approx(np.mean(inverse.condition_numbers_), rel=1e-3)


def test_chance_is_what_permuted_rows_give(pair, anchors, rng):
    found = invert_pair(pair, anchors, InversionSpec())
    mean = found.true.mean(axis=0)
    rows, true = found.recovered[found.scored], found.true[found.scored]
    permuted = [recovered(rows, rng.permutation(true), mean)["cosine"].mean() for _ in range(1000)]
    null = found.scores["inverse, pruned"].null
    assert null.mean == pytest.approx(np.mean(permuted), abs=0.003)
    assert np.quantile(permuted, [0.025, 0.975]) == pytest.approx([null.low, null.high], abs=0.012)
    assert found.scores["inverse, pruned"] > 0.9 > null.high


def test_direct_maps_stand_beside_only_where_they_say_something(pair, anchors):
    direct = ["Procrustes", "least squares"]
    assert list(invert_pair(pair, anchors, InversionSpec()).scores) == ["inverse, pruned", *direct]
    same = match(
        pair.source, LatentSpace(pair.source.vectors @ ortho_group.rvs(D, random_state=0), pair.ids, name="t")
    )
    found = invert_pair(same, anchors, InversionSpec(method="ridge"))
    assert list(found.scores) == ["inverse, ridge", *direct, "absolute copy"]
    assert found.scores["Procrustes"] == pytest.approx(1, abs=1e-5)
    assert found.scores["absolute copy"] < 0.9


def test_chance_of_an_absolute_copy_is_what_randomly_turned_axes_give(pair, anchors):
    """300 rotations: mean within 3 standard errors, quantiles within 4 of theirs (2.7 times as large)."""
    source = pair.source
    turned = source.vectors @ ortho_group.rvs(D, random_state=0)
    same = match(source, LatentSpace(turned, source.ids, name="t"))
    found = invert_pair(same, anchors, InversionSpec(method="ridge"))
    null = found.scores["absolute copy"].null
    rows, mean = found.rows[found.scored], turned.mean(axis=0)
    centred = [space[rows] - mean for space in (source.vectors, turned)]
    units = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in centred]
    turns = (ortho_group.rvs(D, random_state=state) for state in range(1, 301))
    copies = [np.vecdot(units[0] @ turn, units[1]).mean() for turn in turns]
    error = np.std(copies) / np.sqrt(300)
    assert null.mean == 0
    assert abs(np.mean(copies)) < 3 * error
    assert np.quantile(copies, [0.025, 0.975]) == pytest.approx([null.low, null.high], abs=4 * 2.7 * error)


@pytest.fixture
def recipe(pair, anchors, tmp_path):
    specs = []
    for space in (pair.source, pair.target):
        np.savez(tmp_path / f"{space.name}.npz", vectors=space.vectors, ids=space.ids.astype(str))
        specs.append(SpaceSpec("file", str(tmp_path / f"{space.name}.npz")))
    return ComparisonRecipe(*specs, anchors)


@pytest.fixture
def drawn(recipe):
    spec = InversionSpec("backward", "whitened", ridge=0.7)
    return {
        "inversion": RecoveredRows.of(recipe, inversion=spec).draw(),
        "inversion-errors": RecoveryErrors.of(recipe, inversion=spec).draw(),
    }


@pytest.mark.parametrize("kind", ["inversion", "inversion-errors"])
def test_a_recipe_draws_the_same_numbers_again(drawn, kind):
    figure = drawn[kind]
    again = exportable(json.loads(figure.bytes("json", full_paths=True)))
    assert figure.recipe["figure"] == kind
    assert again.bytes("csv") == figure.bytes("csv")
    assert again.bytes("json") == figure.bytes("json")
    if figure.latex:
        assert again.bytes("tex") == figure.bytes("tex")
        assert r"\toprule" in figure.bytes("tex").decode()


def test_inversions_by_other_numbers_share_orders_direct_maps_and_the_map(pair, anchors, monkeypatch):
    """And give what each gives by itself."""
    orders, order = [], translation.farthest_order
    monkeypatch.setattr(translation, "farthest_order", lambda *of: orders.append(of[2]) or order(*of))
    translation._orders.cache_clear()
    paired = PairedRows(pair, anchors, "forward")
    specs = [InversionSpec(delta=delta, omega=4) for delta in (0.36, 0.34, 0.31)]
    found = [paired.invert(spec) for spec in specs]
    assert len(orders) == 4  # one for each pruning
    assert len({id(one.errors["least squares"]) for one in found}) == 1
    for one, spec in zip(found, specs, strict=True):
        translation._orders.cache_clear()
        alone = invert_pair(pair, anchors, spec)
        np.testing.assert_array_equal(one.recovered, alone.recovered)
        assert one.scores == alone.scores
        coordinates = reduce_spaces([alone.true, alone.recovered], ReductionSpec(fit="first"))
        np.testing.assert_allclose(paired.coordinates(one.recovered), coordinates, atol=1e-6)
