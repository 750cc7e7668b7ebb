"""The heat map with marginal bars holds the bars it was given, on screen and on paper."""

import numpy as np
import pytest

from relcore.figures.matrices import Margins, Matrices, MatrixPanel, margins_exportable
from relcore.figures.matrices_print import margins_figure as printed
from relcore.figures.matrices_screen import margins_figure
from relcore.figures.style import COLUMN, DARK, Style


def margins(**changes):
    panel = MatrixPanel("", ("a", "b"), ("x", "y", "z"), np.array([[0.9, 0.2, 0.4], [0.1, np.nan, 0.5]]))
    matrices = Matrices((panel,), (0, 1), "accuracy", "A heat map.", "from", "to")
    given = {"rows": np.array([0.3, 0.6]), "columns": np.array([0.1, np.nan, 0.7])}
    given |= {"row_marks": np.array([0.9, 0.8]), "row_title": "encoding from", "mark_title": "own"} | changes
    return Margins(matrices, **given)


def test_bars_on_the_screen_stand_beside_their_rows_and_columns():
    figure = margins_figure(margins(), DARK)
    flat, upright = (trace for trace in figure.data if trace.type == "bar")
    assert list(flat.x) == [0.3, 0.6]
    assert list(flat.y) == [0, 1]
    assert (flat.orientation, upright.orientation) == ("h", "v")
    assert upright.y[0] == 0.1
    assert np.isnan(upright.y[1])
    assert flat.hovertext[0] == "a<br>encoding from .30<br>own .90"
    (marks,) = (
        trace for trace in figure.data if trace.type == "scatter" and trace.marker.symbol == "line-ns"
    )
    assert list(marks.x) == [0.9, 0.8]
    assert figure.layout.meta["alt"] == "A heat map."
    assert figure.layout.xaxis8.domain[0] > figure.layout.xaxis.domain[1]
    assert figure.layout.yaxis8.domain[1] < figure.layout.yaxis.domain[0]


@pytest.mark.parametrize("width", [COLUMN, 6.75])
def test_bars_in_print_line_up_with_the_matrix(width):
    figure = printed(margins(), Style(width=width))
    panel, _scale, beside, under = figure.axes
    assert figure.get_size_inches()[0] == pytest.approx(width)
    assert [bar.get_width() for bar in beside.patches] == [0.3, 0.6]
    assert [bar.get_height() for bar in under.patches] == [0.1, 0, 0.7]
    box = panel.get_position()
    assert (beside.get_position().y0, beside.get_position().y1) == pytest.approx((box.y0, box.y1))
    assert (under.get_position().x0, under.get_position().x1) == pytest.approx((box.x0, box.x1))
    assert beside.get_position().x0 >= box.x1
    assert beside.get_position().x1 <= 1


def test_every_file_can_be_made_and_a_wrong_number_of_bars_is_told():
    figure = margins_exportable(margins(), {"figure": "x"}, latex=lambda: margins().matrices.table())
    for kind in ("html", "pdf", "svg", "png", "csv", "tex", "json"):
        assert figure.bytes(kind)
    with pytest.raises(ValueError, match="expected 3 columns, got 2"):
        margins(columns=np.zeros(2))
