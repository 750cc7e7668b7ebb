"""Which rows are drawn, and in whose colour."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.maps.pane_maps import ViewSpec, default_pivots, default_view, make_view, sample_view


@pytest.fixture
def circle(make_space):
    """36 directions, ten degrees apart: the neighbours of any are known, and the mean is zero."""
    angles = np.deg2rad(np.arange(0, 360, 10))
    labels = ["", *("abc"[row % 3] for row in range(1, 36))]
    return make_space(np.stack([np.cos(angles), np.sin(angles)], axis=1), labels=labels)


def test_a_pivot_brings_its_nearest_rows(circle):
    view = make_view(circle, ViewSpec(("r10",), 5))
    assert view.rows.tolist() == [8, 9, 10, 11, 12]
    assert view.categories.tolist() == [0] * 5
    assert view.category_names == ("r10",)


def test_everything_keeps_the_pivots_colours_and_leaves_the_rest_without(circle):
    view = make_view(circle, ViewSpec(("r10",), 3, everything=True))
    assert view.rows.tolist() == list(range(36))
    assert np.flatnonzero(view.categories == 0).tolist() == [9, 10, 11]
    assert set(np.delete(view.categories, [9, 10, 11])) == {-1}
    without = make_view(circle, ViewSpec((), everything=True))
    assert set(without.categories) == {-1}
    assert without.category_names == ()


def test_anchors_are_added_when_asked_for(circle):
    view = make_view(circle, ViewSpec(("r10",), 1, show_anchors=True), ("r30", "r2"))
    assert view.rows.tolist() == [2, 10, 30]
    assert view.categories.tolist() == [-1, 0, -1]
    assert make_view(circle, ViewSpec(("r10",), 1), ("r30", "r2")).rows.tolist() == [10]


def test_a_sample_is_a_random_part_in_order(circle):
    view = make_view(circle, ViewSpec(("r10",), 3, everything=True))
    sampled = sample_view(view, 12, random_state=1)
    assert len(sampled.rows) == 12
    assert (np.diff(sampled.rows) > 0).all()
    np.testing.assert_array_equal(sampled.categories, view.categories[sampled.rows])
    assert sample_view(view, 12, random_state=1).rows.tolist() == sampled.rows.tolist()
    assert sample_view(view, 12, random_state=2).rows.tolist() != sampled.rows.tolist()
    assert sample_view(view, 36) is view


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ViewSpec(()), "nothing to draw: name at least one pivot, or draw everything"),
        (ViewSpec(("r0", "qzx")), "expected ids of 'made', got 1 unknown: 'qzx'"),
        (ViewSpec(("r0",), color_by="labels"), "color_by 'labels': 'made' has no labels; colour by pivots"),
    ],
)
def test_views_of_nothing_are_refused(make_space, spec, message):
    with pytest.raises(SpaceError, match=message):
        make_view(make_space(np.eye(5)), spec)


@pytest.mark.parametrize(
    ("n_classes", "counts", "labelled"),
    [(1, None, False), (20, None, True), (21, None, False), (3, True, False)],
)
def test_classes_begin_with_all_rows_in_the_colours_of_their_labels(
    rng, make_space, n_classes, counts, labelled
):
    labels = ["", *(f"class {row % n_classes}" for row in range(59))]
    counts = list(range(60)) if counts else None
    space = make_space(rng.normal(size=(60, 5)), labels=labels, counts=counts)
    spec = default_view(space)
    assert (spec.everything, spec.color_by) == ((True, "labels") if labelled else (False, "pivots"))
    assert spec.pivots == default_pivots(space)
    view = make_view(space, spec)
    assert set(view.category_names) == (set(labels) - {""} if labelled else set(spec.pivots))
    assert len(view.rows) == 60  # five neighbourhoods of 200 are all rows too
