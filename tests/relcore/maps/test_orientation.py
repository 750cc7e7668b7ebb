"""Maps keep their orientation: known turns, what may not change, and one more anchor after another."""

from itertools import pairwise

import numpy as np
import pytest

from relcore.maps.pane_maps import OWN, drawn_panes, map_pair, orient_pairs, turn_onto
from relcore.maps.reduction import ReductionSpec, reduce_spaces
from relcore.represent.translation import ProjectionSpec, represent
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

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
@pytest.mark.parametrize("degrees", [40, 270])
def test_a_turn_and_a_mirroring_are_undone_and_a_shift_does_not_matter(degrees, mirror):
    other = REFERENCE @ turned(degrees, mirror) + [5, -2]
    back = other @ turn_onto(other, REFERENCE)
    np.testing.assert_allclose(back - back.mean(axis=0), REFERENCE - REFERENCE.mean(axis=0), atol=1e-5)


def test_even_an_unrelated_map_is_only_turned_or_mirrored():
    unrelated = RNG.normal(size=(200, 3))
    turn = turn_onto(unrelated, RNG.normal(size=(200, 3)))
    np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("d_target", [8, 6])
def test_a_turned_copy_has_the_same_picture_in_its_own_axes_and_another_in_shared_ones(d_target):
    spaces, spec = pair(d_target), ReductionSpec(fit="first")
    widths, rows = (8, d_target), np.arange(200)
    panes = drawn_panes((OWN, "absolute"), widths, spec)
    assert panes == ((OWN, "absolute") if d_target == 8 else (OWN,))
    assert drawn_panes(("absolute", "relative"), (8, 8), ReductionSpec(fit="apart")) == (OWN, "relative")
    maps = {pane: map_pair(spaces, rows, pane, (), ProjectionSpec(), spec) for pane in panes}
    shown = orient_pairs(maps, maps[OWN][0][0], spaces, spec)
    apart = {pane: np.abs(np.subtract(*shown[pane][0])).max() / np.std(shown[pane][0][0]) for pane in panes}
    assert (apart[OWN] < 1e-4) == (d_target == 8)  # a part of the columns has nearly the same axes
    assert apart.get("absolute", 2) > 1


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
