"""Names on the maps of figures: at the middles of classes, then of clusters, none over another, none of
what is hidden.
"""

from dataclasses import replace

import numpy as np
import pytest

from relcore.figures.charts import MovingPoints
from relcore.figures.scene import Clusters, Pane, Scene, map_names, places_of
from relcore.figures.style import LIGHT

LETTER = (0.01, 0.04)


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
    places = places_of(scene.panes[0].coordinates, None, 1.0)
    return [name.text for name in map_names(scene, 0, LIGHT, places, LETTER)]


def test_names_stand_at_middles_of_classes_and_clusters(make_scene):
    scene = make_scene()
    places = places_of(scene.panes[0].coordinates, None, 1.0)
    found = map_names(scene, 0, LIGHT, places, LETTER)
    assert [name.text for name in found] == ["a", "b", "c"]
    assert [name.row // 30 for name in found] == [0, 1, 2]
    assert all(0 <= share <= 1 for share in places.ravel())


def test_without_switch_there_are_none_and_hidden_classes_have_none(make_scene):
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


def test_names_do_not_lie_on_one_another(make_scene):
    near = make_scene()
    crowded = Scene(
        (Pane("p", near.panes[0].coordinates * 1e-3 + np.eye(90, 2) * 9),),
        near.ids,
        near.categories,
        ("a", "b"),
        named=True,
    )
    found = map_names(crowded, 0, LIGHT, places_of(crowded.panes[0].coordinates, None, 1.0), LETTER)
    assert len({name.lines for name in found}) == len(found) == 2


def test_no_name_covers_a_star_or_its_number():
    points = np.random.default_rng(0).normal(size=(200, 2))
    groups = (points[:, 0] > 0).astype(int)
    panes = (Pane("map", points),)
    free = Scene(panes, [f"r{row}" for row in range(200)], groups, ("left side", "right side"), named=True)
    places = places_of(points, None, 1.0)
    rows = [name.row for name in map_names(free, 0, LIGHT, places, LETTER)]
    starred = replace(free, anchors=np.array(rows))
    star = (0.05, 0.05)
    found = map_names(starred, 0, LIGHT, places, LETTER, star)
    assert len(found) == 2
    for name in found:
        half = LETTER[0] * (len(name.text) + 1) / 2
        x, y = places[name.row] + (name.shift, name.lines * LETTER[1])
        for anchor in places[rows]:
            apart = abs(anchor[0] - x) >= half + star[0] / 2 - 1e-9
            assert apart or abs(anchor[1] - y) >= 0.6 * LETTER[1] + star[1] / 2 - 1e-9
