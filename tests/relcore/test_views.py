"""Which rows are drawn, and in whose colour."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.figures.style import category_colors
from relcore.maps.views import (
    DEFAULT_PIVOTS,
    MOST_PIVOTS,
    View,
    ViewSpec,
    default_pivots,
    default_view,
    make_view,
    sample_view,
)


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


def test_a_row_of_two_neighbourhoods_has_the_nearer_pivots_colour(circle):
    for pivots, colors in (
        (("r10", "r15"), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]),
        (("r15", "r10"), [1] * 6 + [0] * 6),
    ):
        view = make_view(circle, ViewSpec(pivots, 7))
        assert view.rows.tolist() == list(range(7, 19))
        assert view.categories.tolist() == colors


def test_neighbourhoods_are_of_the_centred_space(circle, make_space):
    shifted = make_space(circle.vectors + 5)
    assert make_view(shifted, ViewSpec(("r10",), 5)).rows.tolist() == [8, 9, 10, 11, 12]


def test_everything_keeps_the_pivots_colours_and_leaves_the_rest_without(circle):
    view = make_view(circle, ViewSpec(("r10",), 3, everything=True))
    assert view.rows.tolist() == list(range(36))
    assert np.flatnonzero(view.categories == 0).tolist() == [9, 10, 11]
    assert set(np.delete(view.categories, [9, 10, 11])) == {-1}
    without = make_view(circle, ViewSpec((), everything=True))
    assert set(without.categories) == {-1}
    assert without.category_names == ()


def test_a_neighbourhood_is_at_most_the_space(circle):
    assert len(make_view(circle, ViewSpec(("r0",), 500)).rows) == 36


def test_anchors_are_added_when_asked_for(circle):
    view = make_view(circle, ViewSpec(("r10",), 1, show_anchors=True), ("r30", "r2"))
    assert view.rows.tolist() == [2, 10, 30]
    assert view.categories.tolist() == [-1, 0, -1]
    assert make_view(circle, ViewSpec(("r10",), 1), ("r30", "r2")).rows.tolist() == [10]


def test_labels_as_colours(circle):
    view = make_view(circle, ViewSpec(("r1",), 3, color_by="labels"))
    assert view.category_names == ("a", "b", "c")
    assert view.rows.tolist() == [0, 1, 2]
    assert view.categories.tolist() == [-1, 1, 2]


def test_the_digest_is_of_the_rows(circle):
    first, again, other = (make_view(circle, ViewSpec((pivot,), 5)) for pivot in ("r10", "r10", "r11"))
    assert first.digest == again.digest != other.digest
    assert View(first.rows.astype(np.int32), first.categories, ()).digest == first.digest


def test_a_sample_is_a_random_part_in_order(circle):
    view = make_view(circle, ViewSpec(("r10",), 3, everything=True))
    sampled = sample_view(view, 12, random_state=1)
    assert len(sampled.rows) == 12
    assert (np.diff(sampled.rows) > 0).all()
    np.testing.assert_array_equal(sampled.categories, view.categories[sampled.rows])
    assert sample_view(view, 12, random_state=1).rows.tolist() == sampled.rows.tolist()
    assert sample_view(view, 12, random_state=2).rows.tolist() != sampled.rows.tolist()
    assert sample_view(view, 36) is view


def test_default_pivots_are_the_usual_words_where_known(make_space):
    words = ["other", *DEFAULT_PIVOTS[::-1]]
    assert default_pivots(make_space(np.eye(6), words)) == DEFAULT_PIVOTS
    assert default_pivots(make_space(np.eye(6), words), n_pivots=2) == DEFAULT_PIVOTS[:2]


@pytest.mark.parametrize("n", [3, 50, 150])
def test_other_spaces_have_distinct_pivots_of_their_own(rng, make_space, n):
    space = make_space(rng.normal(size=(n, 5)))
    pivots = default_pivots(space)
    assert len(set(pivots)) == min(5, n)
    assert len(space.rows(pivots)) == min(5, n)


def test_default_pivots_of_a_large_space_are_chosen_among_a_sample_of_its_rows(make_space, monkeypatch):
    asked = []
    monkeypatch.setattr("relcore.maps.views._CLUSTERED", 150)
    monkeypatch.setattr(
        "relcore.represent.anchors.select_anchors", lambda space, n, strategy: asked.append(space) or ["r0"]
    )
    space = make_space(np.random.default_rng(0).normal(size=(400, 3)))
    default_pivots(space)
    assert [len(one) for one in asked] == [150]
    assert set(asked[0].ids) < set(space.ids)


def test_default_pivots_are_never_zero_vectors(make_space):
    space = make_space(np.vstack([np.eye(4), np.zeros((4, 4))]))
    assert set(default_pivots(space)) == {"r0", "r1", "r2", "r3"}


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


@pytest.mark.parametrize("n_nearest", [0, -3])
def test_a_neighbourhood_of_less_than_one_row_is_refused(circle, n_nearest):
    with pytest.raises(SpaceError, match=f"n_nearest: .*{n_nearest}"):
        make_view(circle, ViewSpec(("r0",), n_nearest))


def test_there_are_as_many_pivots_as_colours_at_most(circle):
    pivots = tuple(f"r{row}" for row in range(MOST_PIVOTS + 1))
    assert make_view(circle, ViewSpec(pivots[:-1], 1)).category_names == pivots[:-1]
    assert len(set(category_colors(MOST_PIVOTS))) == MOST_PIVOTS
    with pytest.raises(
        SpaceError, match="pivots: expected at most 20, one for each colour, got 21; take some out"
    ):
        ViewSpec(pivots)


@pytest.mark.parametrize(
    ("n_classes", "counts", "labelled"),
    [(1, None, False), (2, None, True), (20, None, True), (21, None, False), (3, True, False)],
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


def test_a_space_without_labels_begins_with_pivots(circle, make_space):
    assert default_view(make_space(circle.vectors)).color_by == "pivots"
    assert default_view(circle) == ViewSpec(default_pivots(circle), everything=True, color_by="labels")
