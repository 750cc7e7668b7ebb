"""The map of a drift: rows that moved stand out; a mere rotation does not show."""

import numpy as np
import pytest

from relcore.drift.check import DriftCheck
from relcore.drift.moved_rows import MOST_DRAWN, N_MARKED, moved_scene
from relcore.spaces.space import LatentSpace

N = 300


def space(vectors, name="old"):
    return LatentSpace(vectors, [f"r{row}" for row in range(len(vectors))], name=name)


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(N, 12)) * np.linspace(3, 1, 12)


def turned(vectors):
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(vectors.shape[1],) * 2))
    return 2 * vectors @ turn + 5


def test_rows_that_moved_are_marked_and_have_the_largest_numbers(vectors):
    new = turned(vectors)
    moved = [3, 70, 201]
    new[moved] = new[moved][:, ::-1] * 1.5
    scene = moved_scene([space(vectors), space(new.astype(np.float32), "new")], DriftCheck())
    assert set(scene.ids[np.argsort(-scene.values)[:3]]) == {"r3", "r70", "r201"}
    assert {"r3", "r70", "r201"} <= set(scene.ids[scene.marked])
    assert len(scene.marked) <= N_MARKED
    before, after = (pane.coordinates for pane in scene.panes)
    stayed = np.setdiff1d(np.arange(N), moved)
    distance = np.linalg.norm(before - after, axis=1)
    assert distance[stayed].max() < distance[moved].min() / 2


def test_rows_out_of_place_do_not_move_the_others(vectors):
    new = vectors.copy()
    new[:30] = vectors[:30][::-1]
    scene = moved_scene([space(vectors), space(new, "new")], DriftCheck())
    assert "median .000" in scene.caption
    assert scene.values[30:].max() < 1e-6 < scene.values[:30].min()


@pytest.mark.parametrize("width", [1, 2, 12, 20])
def test_what_only_turned_has_one_colour_and_no_marks(vectors, width):
    old = np.pad(vectors, ((0, 0), (0, 8)))[:, :width]
    scene = moved_scene([space(old), space(turned(old), "new")], DriftCheck())
    assert not len(scene.marked)
    assert len(np.unique(scene.categories)) == 1
    before, after = (pane.coordinates for pane in scene.panes)
    np.testing.assert_allclose(before, after, atol=1e-3 * np.abs(before).max())


def test_another_width_is_drawn_and_noise_reaches_its_share(vectors):
    scene = moved_scene([space(vectors), space(vectors[:, :5], "narrow")], DriftCheck())
    assert np.isfinite(scene.values).all()
    noise = np.random.default_rng(2).normal(size=vectors.shape)
    size = np.sqrt(np.square(vectors - vectors.mean(axis=0)).sum(axis=1).mean())
    scene = moved_scene([space(vectors), space(vectors + noise, "noisy")], DriftCheck())
    whole = np.sqrt(size**2 + 12)
    # The scale of the best fit shrinks towards zero, so less than all of the noise is left.
    assert np.sqrt(np.square(scene.values).mean()) == pytest.approx(np.sqrt(12) / whole, rel=0.1)


def test_of_many_rows_a_sample_has_those_that_moved_most():
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(MOST_DRAWN + 500, 4)).astype(np.float32)
    new = vectors.copy()
    new[[0, 5_400]] *= -1
    scene = moved_scene([space(vectors), space(new, "new")], DriftCheck())
    assert len(scene) == MOST_DRAWN
    assert set(scene.ids[scene.marked]) == {"r0", "r5400"}
    assert f"{MOST_DRAWN:,} of {MOST_DRAWN + 500:,} rows" in scene.caption
