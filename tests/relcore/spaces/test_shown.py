"""What a notebook shows of a space and of a match."""

import numpy as np

from relcore import LatentSpace, match


def test_space_shows_its_shape_and_its_first_rows():
    space = LatentSpace(
        np.eye(7, 3) + 1,
        [f"w{row}" for row in range(7)],
        name="a <b>",
        labels=["red"] * 7,
        counts=range(2500, 2507),
    )
    shown = space._repr_html_()
    assert "a &lt;b&gt;: 7 rows × 3 dimensions." in shown
    assert "w4" in shown
    assert "w5" not in shown
    assert shown.count("red") == 5
    assert "2,504" in shown
    assert "The first 5 of 7 rows." in shown


def test_space_without_ids_shows_row_numbers_and_makes_no_ids():
    space = LatentSpace(np.ones((3, 1)))
    assert "space: 3 rows × 1 dimension." in space._repr_html_()
    assert "<th" in space._repr_html_()
    assert "label" not in space._repr_html_()
    assert "ids" not in vars(space)


def test_column_without_a_label_among_the_first_rows_is_not_shown():
    space = LatentSpace(np.ones((9, 1)), labels=[""] * 8 + ["red"])
    assert "label" not in space._repr_html_()


def test_match_shows_both_shapes_and_which_rows_are_left_out():
    first = LatentSpace([[1, 0], [0, 0], [1, 1]], ["king", "zero", "alone"], name="one")
    second = LatentSpace([[1, 0, 2], [0, 1, 2]], ["king", "zero"], name="two")
    shown = match(first, second)._repr_html_()
    assert "one: 1 row × 2 dimensions; two: 1 row × 3 dimensions." in shown
    assert "Rows left out: 1 only in one, 1 zero." in shown
    assert "king" in shown
