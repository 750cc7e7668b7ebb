"""`show`: what it accepts, that its panes are those of the mathematics, and errors in plain words."""

import numpy as np
import pytest

from relcore import LatentSpace, RelativeProjection, show
from relcore.base.errors import SpaceError


def pictures(widget):
    return {pane.title: pane.coordinates for pane in widget.scene.panes}


@pytest.fixture
def spaces():
    rng = np.random.default_rng(0)
    vectors, (turn, _) = rng.normal(size=(60, 5)), np.linalg.qr(rng.normal(size=(5, 5)))
    ids = np.array([f"row {i}" for i in range(60)], dtype=object)
    order = rng.permutation(50)
    return LatentSpace(vectors, ids, name="a"), LatentSpace((vectors @ turn)[order], ids[order], name="b")


def test_relative_panes_of_a_turned_space_agree_and_absolute_ones_do_not(spaces):
    drawn = pictures(show(*spaces, anchors=[f"row {i}" for i in range(12)]))
    assert list(drawn) == ["a · shared axes", "b · shared axes", "a · relative", "b · relative"]
    np.testing.assert_allclose(drawn["a · relative"], drawn["b · relative"], atol=1e-4)
    assert np.abs(drawn["a · shared axes"] - drawn["b · shared axes"]).max() > 0.5


def test_a_third_space_has_its_own_panes_over_the_rows_that_all_share(spaces):
    third = LatentSpace(3 * spaces[0].vectors[:40, ::-1], spaces[0].ids[:40], name="c")
    widget = show(*spaces, others=[third], anchors=[f"row {i}" for i in range(12)], panes=["relative"])
    drawn = pictures(widget)
    assert list(drawn) == ["a · relative", "b · relative", "c · relative"]
    assert len(widget.scene) == 40
    for other in ("b", "c"):
        np.testing.assert_allclose(drawn["a · relative"], drawn[f"{other} · relative"], atol=1e-4)
    assert widget._header["live"]["panes"] == [0, 1, 2]
    with pytest.raises(SpaceError, match="others: expected at most 2 more spaces, got 3"):
        show(*spaces, others=[third] * 3)


def test_a_pane_spans_the_leading_axes_of_the_similarities(spaces):
    anchors = [f"row {i}" for i in range(12)]
    widget = show(*spaces, anchors=anchors)
    vectors = spaces[0].vectors[:50]  # the rows that both have
    relative = RelativeProjection().fit(vectors, anchors=np.arange(12)).transform(vectors)
    variances = np.linalg.svd(relative - relative.mean(axis=0), compute_uv=False)[:2] ** 2
    drawn = pictures(widget)["a · relative"].astype(np.float64)
    found = np.linalg.svd(drawn - drawn.mean(axis=0), compute_uv=False) ** 2
    np.testing.assert_allclose(found, variances, rtol=1e-4)


def test_selected_rows_are_those_of_the_shared_rows_in_the_sources_order(spaces):
    widget = show(*spaces, anchors=5)
    widget.selection = ["row 49", "row 3"]
    assert widget.selected_rows == (49, 3)
    with pytest.raises(SpaceError, match="1 unknown: 'row 55'"):
        widget.selection = ["row 55"]


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"anchors": ["row 3", "qzx"]}, "got 1 unknown: 'qzx'"),
        ({"anchors": "row 3"}, "anchors: expected a list of ids, or how many, got 'row 3'"),
        ({"anchors": 5, "panes": ["absolut"]}, "panes: expected one of own, absolute, relative"),
        (
            {"anchors": 5, "color_by": [1, 2]},
            "color_by: expected 60 values, one per row of the source, got 2",
        ),
    ],
)
def test_wrong_settings_are_errors_in_plain_words(spaces, settings, match):
    with pytest.raises(SpaceError, match=match):
        show(*spaces, **settings)


def test_arrays_of_other_lengths_are_refused(spaces):
    with pytest.raises(SpaceError, match="target: an array is paired by row, expected 60 rows, got 59"):
        show(spaces[0], spaces[0].vectors[1:])
    with pytest.raises(SpaceError, match="expected a matrix"):
        show(np.zeros(5), np.zeros((5, 2)))
