"""Scene: panes over the same rows, and the numbers behind them."""

import dataclasses

import numpy as np
import pytest

from relcore.charts.scene import Pane, Scene

IDS = np.array(["a", "b", "c"], dtype=object)
FLAT, SOLID = Pane("A", np.arange(6.0).reshape(3, 2)), Pane("B", np.arange(9.0).reshape(3, 3))


def scene(**changes):
    settings = {
        "panes": (FLAT, SOLID),
        "ids": IDS,
        "categories": np.array([1, -1, 0]),
        "category_names": ("x", "y"),
    }
    return Scene(**settings | changes)


def test_the_table_holds_what_is_plotted():
    table = scene(anchors=np.array([2, 0])).table()
    assert table.columns.tolist() == ["id", "category", "anchor", "A x", "A y", "B x", "B y", "B z"]
    assert table["id"].tolist() == ["a", "b", "c"]
    assert table.category.tolist() == ["y", "", "x"]
    assert table.anchor.tolist() == [2, 0, 1]
    assert table["A y"].tolist() == [1, 3, 5]
    assert table["B z"].tolist() == [2, 5, 8]


def test_a_scene_has_its_rows_and_cannot_change():
    assert len(scene()) == 3
    assert scene().anchors.tolist() == []
    with pytest.raises(dataclasses.FrozenInstanceError):
        scene().caption = "another"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"texts": ["one"]}, "texts: expected 3, one per row, got 1"),
        ({"notes": ["one"] * 4}, "notes: expected 3, one per row, got 4"),
        ({"panes": ()}, "expected 1 to 4 panes, got 0"),
        (
            {"panes": tuple(dataclasses.replace(FLAT, title=str(number)) for number in range(5))},
            "1 to 4 panes, got 5",
        ),
        ({"panes": (FLAT, FLAT)}, r"expected panes of different titles, got \['A', 'A'\]"),
        ({"panes": (Pane("A", np.zeros((2, 2))),)}, r"pane 'A': expected \(3, 2 or 3\), got \(2, 2\)"),
        ({"panes": (Pane("A", np.zeros((3, 4))),)}, r"got \(3, 4\)"),
        ({"panes": (Pane("A", np.zeros((3, 1))),)}, r"got \(3, 1\)"),
        ({"panes": (Pane("A", np.zeros(3)),)}, r"got \(3,\)"),
        ({"categories": np.array([0, 1])}, "expected 3 categories, one per row, got 2"),
        ({"anchors": np.array([0, 3])}, "anchors: expected rows 0 … 2, got 0 … 3"),
        ({"anchors": np.array([-1])}, "anchors: expected rows 0 … 2, got -1"),
    ],
)
def test_scenes_refuse_what_they_cannot_show(changes, message):
    with pytest.raises(ValueError, match=message):
        scene(**changes)


@pytest.mark.parametrize("number", [2, -2])
def test_a_category_without_a_name_is_refused(number):
    with pytest.raises(ValueError, match=f"categor.*{number}"):
        scene(categories=np.array([0, number, 1]))
