"""Scene: panes over the same rows, and the numbers behind them."""

import numpy as np

from relcore.figures.scene import Pane, Scene

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
