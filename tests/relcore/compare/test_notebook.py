"""`show`: what it accepts, that its panes are those of the mathematics, and errors in plain words."""

import numpy as np
import pytest

from relcore import LatentSpace, show
from relcore.base.errors import SpaceError


def pictures(widget):
    return {pane.title: pane.coordinates for pane in widget.scene.panes}


@pytest.fixture
def spaces():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(60, 5))
    (turn, _) = np.linalg.qr(rng.normal(size=(5, 5)))
    ids = np.array([f"row {i}" for i in range(60)], dtype=object)
    order = rng.permutation(50)
    return LatentSpace(vectors, ids, name="a"), LatentSpace((vectors @ turn)[order], ids[order], name="b")


def test_relative_panes_of_turned_space_agree_and_absolute_ones_do_not(spaces):
    drawn = pictures(show(*spaces, anchors=[f"row {i}" for i in range(12)]))
    assert list(drawn) == ["a · shared axes", "b · shared axes", "a · relative", "b · relative"]
    np.testing.assert_allclose(drawn["a · relative"], drawn["b · relative"], atol=1e-4)
    assert np.abs(drawn["a · shared axes"] - drawn["b · shared axes"]).max() > 0.5


def test_third_space_has_its_own_panes_over_rows_that_all_share(spaces):
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


def test_arrays_of_other_lengths_are_refused(spaces):
    with pytest.raises(SpaceError, match="target: an array is paired by row, expected 60 rows, got 59"):
        show(spaces[0], spaces[0].vectors[1:])
    with pytest.raises(SpaceError, match="expected a matrix"):
        show(np.zeros(5), np.zeros((5, 2)))
