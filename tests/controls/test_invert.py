"""Inversion between unrelated spaces: every method, the δ × ω grid and its best cell lie where chance puts
them.
"""

from __future__ import annotations

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.invert.inversion import InversionSpec, invert_pair
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from relcore.studies.pruning import inversion_sweep
from tests.controls.spaces import deviations, unrelated

# Rows, dimensions and anchors: the audit's case, few rows, d near n, more dimensions than anchors.
SHAPES = [(150, 20, 50), (160, 150, 53)]
LARGE = [pytest.param(*shape, marks=pytest.mark.slow) for shape in ((200, 120, 66), (500, 60, 150))]
STATES = range(6)


@pytest.mark.parametrize(("n", "d", "k"), [*SHAPES, *LARGE])
@pytest.mark.parametrize("tuned", [False, True], ids=["given", "auto"])
@pytest.mark.parametrize("method", ["pruned", "ridge", "whitened"])
def test_no_method_finds_rows_of_an_unrelated_space(n, d, k, method, tuned):
    # Given the anchors, the held-out rows of the target can be permuted at will: the band is exact, so over 6
    # states the mean deviation is normal with variance 1/6, and each is normal. If the anchors were scored,
    # too, least squares would be 20 deviations off.
    found: dict[str, list[float]] = {}
    for state in STATES:
        pair = match(*unrelated(n, d, state))
        result = invert_pair(pair, tuple(pair.ids[:k]), InversionSpec(method=method, tuned=tuned))
        for name, score in result.scores.items():
            assert score.n == n - k
            found.setdefault(name, []).append(deviations(score))
    for name, values in found.items():
        assert abs(np.mean(values)) < 3.5 / np.sqrt(len(values)), (name, values)
        assert np.abs(values).max() < 4.5, (name, values)


def test_the_best_cell_of_the_grid_lies_in_its_band():
    n, d, k = SHAPES[0]
    # Each is inside with probability .95, so more than 2 of 6 are outside with probability .002.
    outside = 0
    grids = []
    for state in STATES:
        pair = match(*unrelated(n, d, 100 + state))
        sweep = inversion_sweep(
            pair, tuple(pair.ids[:k]), random_state=state, deltas=(0.0, 0.5, 0.7), omegas=(1, 4)
        )
        best = max(cell["cosine"] for cell in sweep["cells"])
        outside += not sweep["best by chance, low"] <= best <= sweep["best by chance, high"]
        [middle] = [cell for cell in sweep["cells"] if (cell["delta"], cell["omega"]) == (0.5, 4)]
        grids.append(middle["cosine"])
        assert sweep["n_rows"] == n - k
    assert outside <= 2
    # The mean cosine of m unrelated pairs of unit rows has a standard error of 1 / √(m r), where r is the number
    # of directions that the recovered rows fill. 3.5 of them are allowed, and 1 / (n − k) for the mean row.
    rank = min(k, d) / 2  # the recovered rows do not fill all directions equally
    assert abs(np.mean(grids)) < 3.5 / np.sqrt(len(grids) * (n - k) * rank) + 1 / (n - k)


def test_random_labels_are_read_as_often_as_chance():
    # Answers that are independent of the labels are right in a share p = 1/4 of n_test; seven grids, their cells
    # share the rows.
    right = asked = 0
    for state in range(7):
        labels = np.random.default_rng([state, 1]).permutation(np.arange(400) % 4).astype(str)
        pair = match(*unrelated(400, 12, state, labels=labels))
        sweep = inversion_sweep(pair, tuple(pair.ids[:130]), random_state=state, deltas=(0.5,), omegas=(4,))
        for accuracy in (sweep["cells"][0]["accuracy"], sweep["not stitched"]):
            right = right + accuracy * sweep["test rows"]
            asked = asked + sweep["test rows"]
    # Both heads answer each row, perhaps alike, so only half of the answers count as independent.
    assert right / asked == pytest.approx(0.25, abs=3.5 * np.sqrt(0.25 * 0.75 / (asked / 2)))


def noisy(n, d, noise, state, long=()):
    rng = np.random.default_rng([n, d, state])
    X = rng.normal(size=(n, d))
    ids = [f"r{row}" for row in range(n)]
    Y = (X + noise * rng.normal(size=(n, d))) @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    Y[list(long)] *= 500
    return match(LatentSpace(X, ids, name="a"), LatentSpace(Y, ids, name="b"))


def notes(pair, k, **settings):
    found = invert_pair(pair, tuple(pair.ids[:k]), InversionSpec(**settings))
    return [note for note in found.notes if " span " not in note]


@pytest.mark.parametrize(("k", "noise"), [(100, 0.3), (110, 0.6)])
def test_a_pruning_without_effect_that_loses_has_a_caution(k, noise):
    [note] = notes(noisy(600, 100, noise, 0), k, delta=0.5)
    assert f"δ = .5 leaves out none of {k} anchors" in note
    assert notes(noisy(600, 100, noise, 0), k, method="whitened") == []


@pytest.mark.parametrize(("d", "k", "noise"), [(8, 50, 0.3), (20, 150, 0.1), (100, 400, 0.3), (100, 40, 0.1)])
def test_a_pruned_inverse_near_the_direct_maps_has_no_caution(d, k, noise):
    assert [notes(noisy(600, d, noise, state), k) for state in range(3)] == [[]] * 3


def test_rows_that_move_the_mean_have_a_caution():
    pair = noisy(600, 20, 0.1, 0, long=[400, 500, 550])
    expected = "3 long rows, 'r400', 'r500', 'r550', move the mean of 'b'"
    assert any(note.startswith(expected) for note in notes(pair, 60, delta=0.2))
    with pytest.raises(SpaceError, match=f"delta: expected .* lower it. {expected}"):
        invert_pair(pair, tuple(pair.ids[:60]), InversionSpec(delta=0.99))
