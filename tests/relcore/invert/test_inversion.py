"""Inversion of a pair against the estimator and permutations; numbers chosen by held-out anchors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ortho_group

from relcore.base.rows import mean_row, unit_rows
from relcore.encoders.words import BUNDLED, load_words
from relcore.invert import inversion
from relcore.invert.inversion import (
    DELTAS,
    OMEGAS,
    RIDGES,
    InversionSpec,
    PairedRows,
    choose_numbers,
    invert_pair,
    sides,
)
from relcore.invert.recovery import (
    chance_errors,
    error_edges,
    errors_to_color,
    nearest_before_and_after,
    recovered_rows,
    rows_nearby,
)
from relcore.maps.principal_axes import ReductionSpec
from relcore.maps.reduction import reduce_spaces
from relcore.represent import inverse
from relcore.represent.inverse import InverseRelativeProjection, recovery_errors
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N = 300
D = 8
K = 30


@pytest.fixture
def anchors():
    return tuple(f"r{row}" for row in range(K))


@pytest.mark.parametrize(
    ("route", "method"), [("forward", "pruned"), ("backward", "ridge"), ("within", "whitened")]
)
def test_rows_are_those_of_the_estimator(turned_pair, anchors, route, method):
    spec = InversionSpec(route, method, omega=3, delta=0.4, ridge=0.5, random_state=2)
    found = invert_pair(turned_pair, anchors, spec)
    source, target = sides(turned_pair, route)
    means = [space.vectors.mean(axis=0) for space in (source, target)]
    inverse = InverseRelativeProjection(method, 3, 0.4, 0.5, 2)
    inverse.fit(source.vectors[:K], target.vectors[:K], source_mean=means[0], target_mean=means[1])
    np.testing.assert_allclose(found.recovered, inverse.transform(source.vectors), atol=1e-3)
    expected = recovery_errors(found.recovered, target.vectors, means[1])
    np.testing.assert_allclose(1 - found.errors[spec.title], expected["cosine"], atol=1e-5)
    np.testing.assert_allclose(found.distance, expected["error"], rtol=1e-4)
    assert float(found.scores[spec.title]) == pytest.approx(expected["cosine"][K:].mean(), abs=1e-5)
    assert found.scores[spec.title].n == found.n_scored == N - K
    assert not found.scored[:K].any()
    assert found.shape == (source.dimension, target.dimension)
    assert found.kept == np.mean([len(kept) for kept in inverse.kept_])
    assert found.condition == pytest.approx(np.mean(inverse.condition_numbers_), rel=1e-3)


def test_chance_is_what_permuted_rows_give(turned_pair, anchors, rng):
    found = invert_pair(turned_pair, anchors, InversionSpec())
    mean = found.true.mean(axis=0)
    rows = found.recovered[found.scored]
    true = found.true[found.scored]
    permuted = [recovery_errors(rows, rng.permutation(true), mean)["cosine"].mean() for _ in range(600)]
    null = found.scores["inverse, pruned"].null
    assert null.mean == pytest.approx(np.mean(permuted), abs=0.003)
    assert np.quantile(permuted, [0.025, 0.975]) == pytest.approx([null.low, null.high], abs=0.012)
    assert found.scores["inverse, pruned"] > 0.9 > null.high


def test_chance_of_absolute_copy_is_what_randomly_turned_axes_give(turned_pair, anchors):
    """By 300 rotations: the mean agrees within 3 standard errors. Quantiles agree within 4 of their own standard
    errors, which are 2.7 times as large."""
    source = turned_pair.source
    turned = source.vectors @ ortho_group.rvs(D, random_state=0)
    same = match(source, LatentSpace(turned, source.ids, name="t"))
    found = invert_pair(same, anchors, InversionSpec(method="ridge"))
    null = found.scores["absolute copy"].null
    rows = found.rows[found.scored]
    mean = turned.mean(axis=0)
    centred = [space[rows] - mean for space in (source.vectors, turned)]
    units = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in centred]
    turns = (ortho_group.rvs(D, random_state=state) for state in range(1, 301))
    copies = [np.vecdot(units[0] @ turn, units[1]).mean() for turn in turns]
    error = np.std(copies) / np.sqrt(300)
    assert null.mean == 0
    assert abs(np.mean(copies)) < 3 * error
    assert np.quantile(copies, [0.025, 0.975]) == pytest.approx([null.low, null.high], abs=4 * 2.7 * error)


def test_inversions_by_other_numbers_share_orders_direct_maps_and_map(turned_pair, anchors, monkeypatch):
    """The results are those of inverting with each setting alone."""
    orders = []
    order = inverse.farthest_order
    monkeypatch.setattr(inverse, "farthest_order", lambda *of: orders.append(of[2]) or order(*of))
    inverse._orders.cache_clear()
    paired = PairedRows(turned_pair, anchors, "forward")
    specs = [InversionSpec(delta=delta, omega=4) for delta in (0.36, 0.34, 0.31)]
    found = [paired.invert(spec) for spec in specs]
    assert len(orders) == 4  # one for each pruning
    assert len({id(one.errors["least squares"]) for one in found}) == 1
    for one, spec in zip(found, specs, strict=True):
        inverse._orders.cache_clear()
        alone = invert_pair(turned_pair, anchors, spec)
        np.testing.assert_array_equal(one.recovered, alone.recovered)
        assert one.scores == alone.scores
        coordinates = reduce_spaces([alone.true, alone.recovered], ReductionSpec(fit="first"))
        np.testing.assert_allclose(paired.coordinates(one.recovered), coordinates, atol=1e-6)


METHODS = ("pruned", "ridge", "whitened")


def noisy_pair(n=500, d=12, noise=0.5, random_state=0):
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n, d))
    ids = [f"r{row}" for row in range(n)]
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return match(
        LatentSpace(X, ids, name="a"), LatentSpace(X @ turn + noise * rng.normal(size=(n, d)), ids, name="b")
    )


@pytest.fixture(scope="module")
def words():
    return match(*(load_words(name) for name in BUNDLED))


def chosen(pair, k, spec):
    sides = [space.vectors[:k] for space in (pair.source, pair.target)]
    return choose_numbers(*sides, (mean_row(pair.source.vectors), mean_row(pair.target.vectors)), spec)


@pytest.mark.parametrize("method", METHODS)
def test_each_setting_is_scored_as_estimator_fitted_on_other_anchors(method, monkeypatch):
    pair = noisy_pair()
    k = 40
    spec = InversionSpec(method=method, tuned=True)
    means = [mean_row(space.vectors) for space in (pair.source, pair.target)]
    for name, few in (("DELTAS", DELTAS[3:5]), ("OMEGAS", OMEGAS[1:2]), ("RIDGES", RIDGES[3:4])):
        monkeypatch.setattr(inversion, name, few)
    choice = chosen(pair, k, spec)
    order = np.random.default_rng([0, k]).permutation(k)
    cosines = []
    for part in range(4):
        held_out = order[part::4]
        known = np.setdiff1d(order, held_out)
        inverse = replace(spec, **choice.numbers()).inverse()
        inverse.fit(
            pair.source.vectors[known], pair.target.vectors[known], source_mean=means[0], target_mean=means[1]
        )
        found = unit_rows(inverse.transform(pair.source.vectors[held_out]), means[1])
        cosines.append(
            np.einsum("ij,ij->i", found, unit_rows(pair.target.vectors[held_out], means[1])).mean()
        )
    assert choice.cosine == pytest.approx(np.mean(cosines), abs=1e-5)
    assert (choice.n_tried, choice.n_held_out) == (2 if method == "pruned" else 1, 10)


@pytest.mark.parametrize("method", ["ridge", "whitened"])
def test_choice_is_nearly_best_of_grid_on_rows_that_took_no_part(words, method):
    anchors = tuple(words.ids[np.random.default_rng(1).choice(len(words), 200, replace=False)])
    found = invert_pair(words, anchors, InversionSpec(method=method, tuned=True), most_rows=1500)
    specs = [InversionSpec(method=method, ridge=ridge) for ridge in RIDGES]
    inverted = [invert_pair(words, anchors, spec, most_rows=1500) for spec in specs]
    scores = [float(one.scores[found.spec.title]) for one in inverted]
    assert float(found.scores[found.spec.title]) > max(scores) - 0.02
    assert max(scores) - min(scores) > 0.05


def test_rows_that_are_no_anchors_have_no_say():
    pair = noisy_pair()
    spec = InversionSpec(tuned=True)
    anchors = tuple(pair.ids[:60])
    before = invert_pair(pair, anchors, spec)
    rng = np.random.default_rng(1)
    # Other rows, of the same mean: the means of all rows centre the anchors.
    others = pair.target.vectors[60:][rng.permutation(len(pair) - 60)]
    changed = match(
        pair.source, LatentSpace(np.vstack([pair.target.vectors[:60], others]), pair.ids, name="b")
    )
    after = invert_pair(changed, anchors, spec)
    assert after.spec == before.spec
    assert after.choice.cosine == pytest.approx(before.choice.cosine, abs=1e-5)
    assert float(after.scores[spec.title]) < 0.2 < float(before.scores[spec.title])


def test_recovered_rows_are_nearest_to_themselves_and_by_chance_where_spaces_are_unrelated():
    anchors = [f"r{row}" for row in range(50)]
    near, far = (
        recovered_rows(pair, invert_pair(pair, anchors, InversionSpec(method="ridge")))
        for pair in (noisy_pair(noise=0.05), noisy_pair(noise=1000))
    )
    assert (near.first, near.n, near.among) == (1, 450, 500)
    assert all((rows[:, 0] == rows[:, 1]).all() for rows in near.groups.values())
    assert [len(rows) for rows in near.groups.values()] == [5, 5, 5]
    assert far.first < 0.02  # 1 of 500 by chance, and five standard errors


@pytest.mark.parametrize(
    "ends", [(0.07, 0.5), (0.3, 1.3), (0.0, 2.0), (0.001, 0.004), (0.0, 0.0), (1.0, 1.0)]
)
def test_classes_of_errors_follow_the_data(ends):
    """With fixed classes, 80 % of the rows of two text encoders were in the last one."""
    errors = np.linspace(*ends, 500)
    edges = error_edges(errors)
    counts = np.bincount(np.digitize(errors, edges), minlength=len(edges) + 1)
    assert 2 <= len(counts) <= 7
    assert np.ptp(ends) == 0 or counts.max() < 250


def test_nearest_rows_before_and_after_are_those_of_the_true_and_the_recovered_vector(turned_pair, anchors):
    found = invert_pair(turned_pair, anchors, InversionSpec(method="ridge", ridge=1e-6))
    units = unit_rows(found.true, mean_row(found.true))
    before, after = nearest_before_and_after(found, 100, 5)
    expected = np.argsort(-(units @ units[100]), kind="stable")[:6]
    assert expected[0] == 100
    assert before[0].tolist() == expected[1:].tolist()  # not the row itself
    np.testing.assert_allclose(before[1], (units @ units[100])[expected[1:]], atol=1e-5)
    recovered = units @ unit_rows(found.recovered[[100]], mean_row(found.true))[0]
    assert after[0].tolist() == np.argsort(-recovered, kind="stable")[:5].tolist()
    np.testing.assert_allclose(after[1], np.sort(recovered)[::-1][:5], atol=1e-5)
    assert after[0][0] == 100


def test_colours_by_errors_nearby_are_means_over_held_out_rows_of_the_map(turned_pair, anchors):
    found = invert_pair(turned_pair, anchors, InversionSpec(method="ridge", ridge=30.0))
    errors = found.errors[found.spec.title]
    places, _ = found.paired.map
    scored = np.flatnonzero(found.scored)
    near = np.argsort(np.linalg.norm(places[scored] - places[7], axis=1))[: rows_nearby(len(scored))]
    colored = errors_to_color(found, "nearby")
    assert colored[7] == pytest.approx(errors[scored][near].mean(), rel=1e-5)  # row 7 is an anchor
    assert colored.std() < errors.std()
    np.testing.assert_array_equal(errors_to_color(found, "error"), errors)


def test_few_held_out_rows_leave_regions_that_differ():
    """Before, all 20 held-out rows were averaged at each place, so that every point was grey."""
    assert [rows_nearby(n) for n in (1, 20, 270, 500, 9000)] == [1, 2, 27, 50, 50]


def test_errors_by_chance_are_those_of_other_rows(turned_pair, anchors):
    found = invert_pair(turned_pair, anchors, InversionSpec(method="ridge", ridge=1e-6))
    errors = chance_errors(found)
    assert len(errors) == found.n_scored
    assert errors.min() > 1e-3  # none is compared with itself, which was recovered exactly
    assert errors.mean() == pytest.approx(1, abs=4 * float(errors.std()) / len(errors) ** 0.5)
