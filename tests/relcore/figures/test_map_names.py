"""Names on the maps of figures: at the middles of classes, then of clusters, none over another, none of
what is hidden.
"""

from dataclasses import replace

import numpy as np
import pytest

from relcore.figures.charts import MovingPoints
from relcore.figures.colorings import Pane
from relcore.figures.map_names import map_names
from relcore.figures.scene import Clusters, Scene, anchor_key, seen, window_of
from relcore.figures.style import LIGHT

LINE = 0.04


def found_names(scene, star=0.0):
    """The names on the first pane, one unit wide and high, and the places of its rows."""
    points = seen(scene.panes[0].coordinates, scene.turn)[:, :2]
    middle, size = window_of(points, 1.0)
    places = 0.5 + (points - middle) / size
    return map_names(scene, 0, LIGHT, places, (1.0, 1.0), LINE, width_of, star), places


def width_of(text, of_anchor=False):
    return 0.01 * len(text)


@pytest.fixture
def make_scene(rng):
    """Two classes and a grey group, far apart; the grey group is the cluster "c"."""

    def make(**changes):
        groups = np.repeat([0, 1, 2], 30)
        points = np.array([[0, 0], [10, 0], [0, 10]])[groups] + rng.normal(size=(90, 2)) * 0.1
        clusters = Clusters(np.where(groups == 2, 0, -1), ("c",))
        parts = {"category_names": ("a", "b"), "clusters": clusters, "named": True} | changes
        ids = np.arange(90).astype(str)
        return Scene((Pane("p", points),), ids, np.where(groups < 2, groups, -1), **parts)

    return make


def names(scene):
    return [name.text for name in found_names(scene)[0]]


def test_names_stand_at_middles_of_classes_and_clusters(make_scene):
    scene = make_scene()
    found, places = found_names(scene)
    assert [name.text for name in found] == ["a", "b", "c"]
    assert [name.row // 30 for name in found] == [0, 1, 2]
    assert all(0 <= share <= 1 for share in places.ravel())
    assert names(make_scene(named=False)) == []
    assert names(make_scene(hidden=("a",))) == ["b", "c"]
    assert names(make_scene(hidden=("",))) == ["a", "b"]


def test_names_of_moving_points_share_no_line_and_stay_near_their_middles():
    groups = np.repeat(np.arange(8), 5)
    corners = np.array([[-1, -1], [1, 1]])
    close = np.concatenate([np.zeros((38, 2)), corners])
    apart = np.concatenate([np.column_stack([groups[:38] / 4 - 0.9, groups[:38] / 4 - 0.9]), corners])
    names = tuple(f"class {letter}" for letter in "abcdefgh")
    moving = MovingPoints(("one", "two"), np.stack([close, apart]), ("",) * 40, groups, names, "points")
    found, places = moving.named((0.02, 0.05))
    assert tuple(found) == names
    heights = places[0, ~np.isnan(places[0, :, 0]), 1]
    assert len(heights) == 7  # the eighth name has no free line
    assert np.diff(np.sort(heights)).min() > 0.05 * 2 * moving.edges[1]
    middles = [np.median(apart[groups == group], axis=0) for group in range(8)]
    np.testing.assert_allclose(places[1], middles)


def test_no_name_covers_another_or_a_star_with_a_label():
    points = np.random.default_rng(0).normal(size=(200, 2))
    groups = (points[:, 0] > 0).astype(int)
    ids = [f"r{row}" for row in range(200)]
    scene = Scene((Pane("map", points),), ids, groups, ("left side", "right side"), named=True)
    rows = [name.row for name in found_names(scene)[0]]
    star = 0.05
    starred = replace(scene, ids=np.array(ids), anchors=np.array([*rows, *range(20)]))
    found, places = found_names(starred, star)
    assert {name.text for name in found[:2]} == {"right side", "left side"}
    assert len(found) > 12  # most anchors have their number
    for name in found:
        half = np.array([width_of(name.text) / 2, 0.4 * LINE])
        at = np.array([name.x, name.y])
        if name.color:
            assert (np.abs(places[starred.anchors] - at) >= half + star / 2 - 1e-9).any(axis=1).all()
        for other in found:
            reach = half + np.array([width_of(other.text) / 2, 0.4 * LINE]) - 1e-9
            assert other is name or (np.abs([other.x - name.x, other.y - name.y]) >= reach).any()


def test_anchors_have_names_where_their_numbers_have_gaps_and_else_a_key():
    """Figures had the numbers 149, 71, 218 … where the screen had names."""
    panes = (Pane("map", np.random.default_rng(0).normal(size=(9, 2))),)
    ids = np.array(list("abcdefghi"))
    scene = Scene(panes, ids, np.full(9, -1), anchors=np.array([2, 5]))
    assert set(names(scene)) == {"1", "2"}
    assert [entry.split() for entry in anchor_key(scene)] == [["1", "c"], ["2", "f"]]
    gaps = replace(scene, anchor_numbers=np.array([71, 149]))
    assert set(names(gaps)) == {"c", "f"}
    assert anchor_key(gaps) == []


def test_every_class_keeps_its_name_among_hundreds_of_stars():
    """Of ten digits on screen, figures had only the names of two."""
    places = np.random.default_rng(0).normal(size=(600, 2))
    groups = np.arange(600) % 10
    places += 4 * np.stack([np.cos(groups), np.sin(groups)], axis=1)
    panes = (Pane("map", places),)
    names = tuple("0123456789")
    scene = Scene(panes, np.arange(600).astype(str), groups, names, np.arange(300), named=True)
    assert {name.text for name in found_names(scene, 0.02)[0]} == set(names)


def test_found_rows_have_their_names_first_and_rows_on_one_spot_are_counted(make_scene):
    scene = make_scene(marked=np.array([75, 80]), prominence=np.arange(90)[::-1])
    assert names(scene)[:2] == ["80", "75"]
    assert not {"80", "75"} & set(names(replace(scene, mute=True)))
    assert not {"80", "75"} & set(names(replace(scene, marked=np.arange(60, 90))))  # too many for rings
    points = scene.panes[0].coordinates.copy()
    points[61:64] = points[60] = [5.0, 5.0]
    assert "4 rows here" in names(replace(scene, panes=(Pane("p", points),)))
