"""An axis between two poles: known places, invariances, the place among random axes, and controls."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from relcore.axis.chart import AxisChart, axis_chart
from relcore.axis.places import agreement_on_axis, places_on_axis
from relcore.axis.task import PoleAxis, axis
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import recipe_of
from relcore.spaces.space import LatentSpace


def ids(n):
    return [f"r{row}" for row in range(n)]


@pytest.fixture
def noisy():
    """300 rows in 12 dimensions, and the same rotated, scaled, shifted, with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    rotation, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    Y = 7 * X @ rotation + 3 + 3 * rng.normal(size=X.shape)
    return LatentSpace(X, ids(300), name="a"), LatentSpace(Y, ids(300), name="b")


def test_rows_on_a_line_have_their_places():
    X = np.array([[0.0, 5], [4, 5], [2, 9], [8, -3], [1, 5]])
    places = places_on_axis(X, np.array([0]), np.array([1]))
    np.testing.assert_allclose(places, [-0.5, 0.5, 0, 1.5, -0.25])
    # The pole of two rows is their mean, here (1, 7).
    places = places_on_axis(X, np.array([0, 2]), np.array([3]))
    np.testing.assert_allclose(places[[0, 2]].mean(), -0.5)
    assert places[3] == pytest.approx(0.5)


def test_rotation_shift_and_scale_change_nothing_and_swapped_poles_the_sign():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 6))
    rotation, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    start = np.array([3, 4])
    end = np.array([9])
    places = places_on_axis(X, start, end)
    np.testing.assert_allclose(places_on_axis(0.2 * X @ rotation - 5, start, end), places, atol=1e-12)
    np.testing.assert_allclose(places_on_axis(X, end, start), -places, atol=1e-12)
    stretched = X * np.array([1, 1, 1, 1, 1, 9])  # no rotation
    assert np.abs(places_on_axis(stretched, start, end) - places).max() > 0.1


def test_agreement_is_spearmans_rho_without_the_poles(noisy):
    found = axis(*noisy, start=["r1", "r2"], end="r3")
    kept = found.poles == 0
    assert found.poles.sum() == -1
    expected = spearmanr(found.places[0, kept], found.places[1, kept]).statistic
    assert found.agreement.value == pytest.approx(expected, abs=1e-12)
    assert found.agreement.n == 297
    assert agreement_on_axis(found.places, np.array([], dtype=int)).n == 300
    swapped = axis(*noisy, start="r3", end=["r1", "r2"])
    assert swapped.agreement.value == pytest.approx(expected, abs=1e-9)
    table = found.table()
    assert set(table["id"]) == {f"r{row}" for row in range(300)} - {"r1", "r2", "r3"}
    assert (np.diff(table["difference"].abs()) <= 0).all()
    assert table["source percentile"].min() == 0
    assert table["source percentile"].max() == 100


def test_a_rotated_copy_agrees_entirely_as_do_its_random_axes(noisy):
    first, _ = noisy
    rotation, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(12, 12)))
    found = axis(first, LatentSpace(first.vectors @ rotation, first.ids), "r1", "r2")
    assert found.agreement.value > 0.9999
    assert found.random_agreement.min() > 0.9999


@pytest.mark.parametrize("n", [30, 400])
def test_unrelated_spaces_do_not_agree(n):
    """ρ of independent rows has the standard error 1 / √(n − 3)."""
    rng = np.random.default_rng(2)
    spaces = [LatentSpace(rng.normal(size=(n, d)), ids(n)) for d in (20, 25)]
    rhos = [axis(*spaces, f"r{row}", f"r{row + 1}", random_axes=20).agreement for row in range(0, 28, 2)]
    error = 1 / np.sqrt(n - 5)
    assert max(abs(rho.value) for rho in rhos) < 4 * error
    assert abs(np.mean([rho.value for rho in rhos])) < 4 * error / np.sqrt(len(rhos))
    found = axis(*spaces, "r0", "r1")
    assert abs(found.median_random) < 4 * error / np.sqrt(20)
    inside = sum(rho.low <= 0 <= rho.high for rho in rhos)
    assert inside >= len(rhos) - 3


def test_the_axis_of_a_random_pair_has_any_place_among_random_axes(noisy):
    """The places of random pairs are uniform, so their mean is that of half of the axes."""
    shares = []
    for row in range(0, 120, 2):
        found = axis(*noisy, f"r{row}", f"r{row + 1}", random_axes=100)
        shares.append(found.n_below / len(found.random_agreement))
    assert abs(np.mean(shares) - 0.5) < 4 * np.sqrt(1 / 12 / len(shares))
    assert max(shares) > 0.8
    assert min(shares) < 0.2


def test_a_direction_that_one_space_lacks_agrees_less_than_all_random_axes(noisy):
    first, second = noisy
    kind = np.arange(300) % 2
    stretched = first.with_columns(name="a")
    vectors = stretched.vectors.copy()
    vectors[:, 0] += 6 * kind  # only the first space parts the rows
    apart = LatentSpace(vectors, first.ids, name="apart")
    poles = [[f"r{row}" for row in range(side, 40, 2)] for side in (0, 1)]
    found = axis(apart, second, *poles)
    assert found.n_below < 10
    assert "lower than most" in found.headline


@pytest.mark.parametrize(
    ("n_below", "said"),
    [
        (37, "lower than most"),
        (49, "lower than most"),
        (50, "usual"),
        (150, "usual"),
        (181, "higher than most"),
    ],
)
def test_the_words_follow_the_number_of_axes_below(noisy, n_below, said):
    found = axis(*noisy, "r1", "r2")
    random = np.r_[np.full(n_below, -1.0), np.ones(200 - n_below)]
    told = replace(found, random_agreement=random).headline
    assert f"more than on {n_below} of 200" in told
    assert f"): {said}" in told
    assert "50 to 150 of 200" in told


def test_a_phrase_stands_for_its_words(noisy):
    assert axis(*noisy, "r1 r2", "r3").start == ("r1", "r2")


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        ("nowhere", "r1", "from: expected ids of rows that both spaces have, got 1 unknown: 'nowhere'"),
        ("r1", [], "to: expected the id of a row, got none"),
        (["r1", "r2"], ["r2"], "poles without common rows, got 'r2' in both"),
    ],
)
def test_wrong_poles_are_refused(noisy, start, end, told):
    with pytest.raises(SpaceError, match=told):
        axis(*noisy, start, end)


def test_equal_poles_and_few_rows_are_refused():
    X = np.random.default_rng(3).normal(size=(20, 4))
    X[1] = X[0]
    with pytest.raises(SpaceError, match="two poles that differ"):
        axis(X, X, "0", "1")
    with pytest.raises(SpaceError, match="10 rows or more besides the poles, got 8"):
        axis(X[:10], X[:10], "2", "3")


def test_figure_and_recipe_hold_the_result(noisy, tmp_path):
    specs = []
    for space in noisy:
        path = tmp_path / f"{space.name}.npz"
        np.savez(path, vectors=space.vectors, ids=np.array(ids(300)))
        specs.append(SpaceSpec("file", str(path)))
    found = axis(*noisy, "r1", "r2")
    chart = axis_chart(found)
    drawn = sum(len(line) for line in chart.lines if line.name != "poles")
    assert drawn == 298
    figure = AxisChart(source=specs[0], target=specs[1], axis=PoleAxis(("r1",), ("r2",))).draw()
    again = recipe_of(json.loads(figure.bytes("json", full_paths=True))).draw()
    assert again.table().equals(figure.table())
    assert figure.table()["difference"].tolist() == found.table()["difference"].tolist()
