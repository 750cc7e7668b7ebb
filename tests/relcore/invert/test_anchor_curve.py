import numpy as np
import pytest

from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec
from relcore.invert.anchor_curve import ErrorByAnchors, curve_by_anchors
from relcore.invert.inversion import InversionSpec, PairedRows
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

K = 60


def paired(target, k=K):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(800, 10)).astype(np.float32)
    ids = [f"r{row}" for row in range(800)]
    spaces = (
        LatentSpace(rows, ids, name="a"),
        LatentSpace(target(rows, rng).astype(np.float32), ids, name="b"),
    )
    return PairedRows(match(*spaces), ids[:k], "forward")


def rotated(rows, rng):
    return rows @ np.linalg.qr(rng.normal(size=(10, 10)))[0]


def unrelated(rows, rng):
    return rng.normal(size=rows.shape)


def test_a_rotation_is_recovered_once_anchors_span_the_space():
    curve = curve_by_anchors(paired(rotated), InversionSpec(method="ridge", ridge=1e-6))
    assert curve.sizes == (5, 10, 20, 60, 100, 200)  # 50 is too near to 60; 500 are more than there are
    errors = dict(zip(curve.sizes, curve.means, strict=True))
    assert errors[5] > 0.15  # 5 of 10 dimensions
    assert max(errors[size] for size in (20, 60, 100, 200)) < 0.01
    assert curve.n == 370
    assert (
        curve.describe() == f"Mean error {short(errors[60])} with 60 anchors; 200 reach {short(errors[200])}."
    )


def test_unrelated_spaces_stay_at_chance_with_any_number_of_anchors():
    curve = curve_by_anchors(paired(unrelated), InversionSpec(method="whitened"))
    # Scored rows are independent of the map, so a mean cosine over n rows in 10 dimensions has the standard
    # error (10 n)^−½.
    assert curve.means == pytest.approx([1] * len(curve.means), abs=4 * (10 * curve.n) ** -0.5)
    assert curve.chance == pytest.approx(1, abs=4 * (10 * curve.n) ** -0.5)


def test_all_anchors_have_the_error_of_the_inversion():
    rows = paired(rotated)
    spec = InversionSpec(method="ridge", ridge=10.0)
    found = rows.invert(spec)
    curve = curve_by_anchors(rows, spec)
    errors = found.errors[spec.title][found.scored]
    assert curve.means[curve.sizes.index(K)] == pytest.approx(
        float(errors.mean()), abs=4 * float(errors.std()) / curve.n**0.5
    )


def test_automatic_numbers_are_those_of_all_anchors():
    rows = paired(rotated)
    auto = InversionSpec(method="ridge", tuned=True)
    assert curve_by_anchors(rows, auto).means == curve_by_anchors(rows, rows.invert(auto).spec).means


def test_the_figure_has_the_curve_and_chance():
    rows = paired(rotated)
    curve = curve_by_anchors(rows, InversionSpec())
    spec = SpaceSpec("file", "a.npz")
    table = ErrorByAnchors(spec, spec, ("r1", "r2")).draw(curve).table()
    drawn = table[table.name == "inverse, pruned"]
    assert drawn.x.tolist() == list(curve.sizes)
    assert table.set_index("name").y["chance"] == curve.chance
