import numpy as np
import pytest

from relcore.figures.diagram_names import _box, in_pixels, name_sides, overlapping, texts_on_lines


def boxes_of(points, names, sides):
    named = zip(in_pixels(points), names, sides, strict=True)
    return np.array([_box(place, len(name), side) for place, name, side in named if side])


def n_overlaps(boxes):
    return sum(int(overlapping(boxes, box).sum()) - 1 for box in boxes) // 2


# Neighbours whose names overlap if these are above and below in turn, and a crowd without room for all.
CLOSE = np.array([[0, 0], [0.05, 0.01], [0.1, 0.0], [0.15, 0.02], [1, 0.6]], float)
CROWD = np.random.default_rng(0).normal(size=(30, 2)) * [0.1, 0.05]


@pytest.mark.parametrize("points", [CLOSE, CROWD])
def test_no_name_lies_on_another(points):
    names = [f"a model with number {row}" for row in range(len(points))]
    alternating = [("above", "below")[row % 2] for row in range(len(points))]
    assert n_overlaps(boxes_of(points, names, alternating)) > 0
    sides = name_sides(points, names)
    assert n_overlaps(boxes_of(points, names, sides)) == 0
    assert sum(map(bool, sides)) >= 4


def test_a_name_avoids_the_lines_at_its_point():
    # From the first point, lines lead up and down and to the right.
    points = np.array([[0, 0], [0, 1], [0, -1], [1, 0]], float)
    assert name_sides(points, ["abcd"] * 4, [(0, 1), (0, 2), (0, 3)])[0] == "left"


def test_texts_of_lines_that_cross_do_not_overlap():
    points = np.array([[-1, -1], [1, 1], [-1, 1], [1, -1]], float)
    names = list("abcd")
    lines = [(0, 1), (2, 3)]
    first, second = texts_on_lines(points, names, name_sides(points, names, lines), lines)
    assert first == 0.5  # where the lines cross
    assert second not in (0.5, None)
