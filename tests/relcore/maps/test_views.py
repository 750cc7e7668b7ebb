"""Which rows are drawn, in which colours, and maps that keep their orientation."""

from itertools import pairwise

import numpy as np
import pytest

from relcore.maps.pane_maps import (
    OWN,
    ViewSpec,
    default_pivots,
    default_view,
    drawn_panes,
    make_view,
    map_pair,
    orient_pairs,
    sample_view,
    turn_onto,
)
from relcore.maps.principal_axes import ReductionSpec
from relcore.maps.reduction import reduce_spaces
from relcore.represent.representations import ProjectionSpec, represent
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace


@pytest.fixture
def circle(make_space):
    """36 directions, ten degrees apart: the neighbours of any are known, and the mean is zero."""
    angles = np.deg2rad(np.arange(0, 360, 10))
    labels = ["", *("abc"[row % 3] for row in range(1, 36))]
    return make_space(np.stack([np.cos(angles), np.sin(angles)], axis=1), labels=labels)


def test_a_pivot_brings_its_nearest_rows_and_everything_the_rest_without_colour(circle):
    view = make_view(circle, ViewSpec(("r10",), 5))
    assert view.rows.tolist() == [8, 9, 10, 11, 12]
    assert (view.categories.tolist(), view.category_names) == ([0] * 5, ("r10",))
    view = make_view(circle, ViewSpec(("r10",), 3, everything=True))
    assert view.rows.tolist() == list(range(36))
    assert np.flatnonzero(view.categories == 0).tolist() == [9, 10, 11]
    assert set(np.delete(view.categories, [9, 10, 11])) == {-1}
    without = make_view(circle, ViewSpec((), everything=True))
    assert (set(without.categories), without.category_names) == ({-1}, ())
    sampled, again, other = (sample_view(view, 12, random_state=state) for state in (1, 1, 2))
    assert len(sampled.rows) == 12
    assert (np.diff(sampled.rows) > 0).all()
    np.testing.assert_array_equal(sampled.categories, view.categories[sampled.rows])
    assert again.rows.tolist() == sampled.rows.tolist() != other.rows.tolist()
    assert sample_view(view, 36) is view


@pytest.mark.parametrize(
    ("n_classes", "counts", "labelled"),
    [(1, None, False), (20, None, True), (21, None, False), (3, True, False)],
)
def test_classes_begin_with_all_rows_in_colours_of_their_labels(rng, make_space, n_classes, counts, labelled):
    labels = ["", *(f"class {row % n_classes}" for row in range(59))]
    counts = list(range(60)) if counts else None
    space = make_space(rng.normal(size=(60, 5)), labels=labels, counts=counts)
    spec = default_view(space)
    assert (spec.everything, spec.color_by) == ((True, "labels") if labelled else (False, "pivots"))
    assert spec.pivots == default_pivots(space)
    view = make_view(space, spec)
    assert set(view.category_names) == (set(labels) - {""} if labelled else set(spec.pivots))
    assert len(view.rows) == 60  # five neighbourhoods of 200 are all rows too


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


@pytest.mark.parametrize(("degrees", "mirror"), [(40, True), (270, False)])
def test_turn_and_mirroring_are_undone_and_shift_does_not_matter(degrees, mirror):
    other = REFERENCE @ turned(degrees, mirror) + [5, -2]
    back = other @ turn_onto(other, REFERENCE)
    np.testing.assert_allclose(back - back.mean(axis=0), REFERENCE - REFERENCE.mean(axis=0), atol=1e-5)


@pytest.mark.parametrize("d_target", [8, 6])
def test_turned_copy_has_same_picture_in_its_own_axes_and_another_in_shared_ones(d_target):
    spaces = pair(d_target)
    spec = ReductionSpec(fit="first")
    widths = (8, d_target)
    rows = np.arange(200)
    panes = drawn_panes((OWN, "absolute"), widths, spec)
    assert panes == ((OWN, "absolute") if d_target == 8 else (OWN,))
    assert drawn_panes(("absolute", "relative"), (8, 8), ReductionSpec(fit="apart")) == (OWN, "relative")
    maps = {pane: map_pair(spaces, rows, pane, (), ProjectionSpec(), spec) for pane in panes}
    shown = orient_pairs(maps, maps[OWN][0][0], spaces, spec)
    apart = {pane: np.abs(np.subtract(*shown[pane][0])).max() / np.std(shown[pane][0][0]) for pane in panes}
    assert (apart[OWN] < 1e-4) == (d_target == 8)  # a part of the columns has nearly the same axes
    assert apart.get("absolute", 2) > 1


def test_one_more_anchor_neither_mirrors_nor_turns_relative_map():
    spaces = pair()
    ids = [f"r{i}" for i in range(60)]
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
