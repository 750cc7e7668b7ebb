"""Maps keep their orientation: known turns, what may not change, and one more anchor after another."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from relcore.catalog.catalog import SpaceSpec
from relcore.compare.figures import Panes
from relcore.compare.scene import comparison_scene
from relcore.maps.pane_maps import NOTE, orient_pairs, turn_onto
from relcore.maps.reduction import ReductionSpec, aligned, reduce_spaces
from relcore.maps.views import ViewSpec
from relcore.scores.comparison import ProjectionSpec, represent
from relcore.spaces.space import LatentSpace, match

RNG = np.random.default_rng(0)
REFERENCE = (RNG.normal(size=(200, 2)) * [3, 1]).astype(np.float32)


def turned(degrees, mirror=False):
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return turn * [1, -1] if mirror else turn


def pair(d_target=8, n=200):
    vectors = RNG.normal(size=(n, 8)) @ np.diag(np.linspace(3, 1, 8))
    ids = np.array([f"r{i}" for i in range(n)], dtype=object)
    other = vectors @ np.linalg.qr(RNG.normal(size=(8, 8)))[0] @ np.eye(8, d_target)
    return match(
        LatentSpace(vectors.astype(np.float32), ids, name="a"),
        LatentSpace(other.astype(np.float32), ids, name="b"),
    )


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("degrees", [0, 40, 170, 270])
def test_a_turn_and_a_mirroring_are_undone_and_a_shift_does_not_matter(degrees, mirror):
    other = REFERENCE @ turned(degrees, mirror) + [5, -2]
    back = other @ turn_onto(other, REFERENCE)
    np.testing.assert_allclose(back - back.mean(axis=0), REFERENCE - REFERENCE.mean(axis=0), atol=1e-5)


def test_rows_that_are_not_drawn_do_not_count_and_a_single_point_stays():
    holes = REFERENCE @ turned(90)
    holes[::3] = np.nan
    np.testing.assert_allclose(turn_onto(holes, REFERENCE), turned(-90), atol=1e-6)
    np.testing.assert_array_equal(turn_onto(np.ones((5, 2)), REFERENCE[:5]), np.eye(2))


def test_even_an_unrelated_map_is_only_turned_or_mirrored():
    unrelated = RNG.normal(size=(200, 3))
    turn = turn_onto(unrelated, RNG.normal(size=(200, 3)))
    np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-12)


def test_both_spaces_on_one_map_get_one_turn_and_maps_fitted_apart_one_each():
    maps = [REFERENCE @ turned(100), REFERENCE @ turned(20, mirror=True)]
    together, note = orient_pairs(
        {"relative": (maps, "UMAP")}, REFERENCE, pair(), ReductionSpec(fit="first")
    )["relative"]
    assert note == f"UMAP, {NOTE}"
    np.testing.assert_allclose(together[0], REFERENCE, atol=1e-5)
    np.testing.assert_allclose(together[1], maps[1] @ turned(-100), atol=1e-5)
    apart, _ = orient_pairs({"relative": (maps, "UMAP")}, REFERENCE, pair(), ReductionSpec(fit="apart"))[
        "relative"
    ]
    for one in apart:
        np.testing.assert_allclose(one, REFERENCE, atol=1e-5)
    wide = orient_pairs({"absolute": (maps, "PCA")}, REFERENCE, pair(d_target=6), ReductionSpec(fit="first"))[
        "absolute"
    ][0]
    np.testing.assert_allclose(wide[1], REFERENCE, atol=1e-5)  # of different widths they cannot be on one map


def test_the_absolute_pca_map_is_its_own_reference():
    maps, note = orient_pairs(
        {"absolute": ([REFERENCE, REFERENCE[::-1]], "PCA")}, REFERENCE, pair(), ReductionSpec(fit="first")
    )["absolute"]
    np.testing.assert_array_equal(maps[0], REFERENCE)
    np.testing.assert_array_equal(maps[1], REFERENCE[::-1])
    assert note == "PCA"


def test_one_more_anchor_neither_mirrors_nor_turns_the_relative_map():
    spaces, ids = pair(), [f"r{i}" for i in range(60)]
    spec = ReductionSpec(fit="first")
    [reference] = reduce_spaces([spaces.source.vectors], spec)
    found = {True: [], False: []}
    for n in range(20, 60):
        maps = reduce_spaces(represent(spaces, "relative", ids[:n], ProjectionSpec()), spec)
        found[False].append(maps[0])
        found[True].append(orient_pairs({"relative": (maps, "")}, reference, spaces, spec)["relative"][0][0])
    mirrored = {
        how: sum(np.linalg.det(turn_onto(new, old)) < 0 for old, new in pairwise(maps))
        for how, maps in found.items()
    }
    assert mirrored[False] > 0  # else this shows nothing
    assert mirrored[True] == 0


def test_a_recipe_draws_the_orientation_again_and_an_earlier_one_does_not():
    spaces = pair()
    specs = SpaceSpec("file", "a.npy"), SpaceSpec("file", "b.npy")
    recipe = Panes(
        *specs, tuple(f"r{i}" for i in range(30)), view=ViewSpec((), everything=True), oriented=True
    )
    assert recipe.to_json()["oriented"] is True
    assert "oriented" not in replace(recipe, oriented=False).to_json()
    drawn, as_computed = (comparison_scene(recipe, spaces, oriented) for oriented in (True, False))
    for one, other in zip(drawn.panes, as_computed.panes, strict=True):
        turn = turn_onto(other.coordinates, one.coordinates)
        np.testing.assert_allclose(other.coordinates @ turn, one.coordinates, atol=1e-3)
    assert NOTE in drawn.caption
    assert NOTE not in as_computed.caption


def test_alignment_is_a_step_after_the_maps():
    spaces, spec = pair(), ReductionSpec(align=True)
    matrices = [spaces.source.vectors, spaces.target.vectors]
    for once, later in zip(
        reduce_spaces(matrices, spec),
        aligned(reduce_spaces(matrices, replace(spec, align=False)), spec),
        strict=True,
    ):
        np.testing.assert_array_equal(once, later)
