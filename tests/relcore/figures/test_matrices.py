"""Heat maps in one colour scale: what stands where, what a click picks, and the same on paper and in CSV."""

import numpy as np
import pytest

from relcore.figures.matrices import Matrices, MatrixPanel
from relcore.figures.paper_charts import matrices_figure as printed_figure
from relcore.figures.screen_matrices import matrices_figure
from relcore.figures.style import COLUMN, DARK, LIGHT, PAGE, Style

NAMES = ("a <b>", "$c$", "third of the encoders")
NAN = np.nan


@pytest.fixture
def panel():
    values = np.array([[0.98, 0.5, NAN], [0.25, 0.99, 0.1], [0.0, 1.0, 0.97]])
    return MatrixPanel("relative", NAMES, NAMES, values, note="stitched .46", marked=((0, 0), (1, 1), (2, 2)))


def made(*panels, **settings):
    return Matrices(
        panels, **{"scale": (0.0, 1.0), "value_title": "accuracy", "alt": "Two heat maps."} | settings
    )


def cells(figure):
    return [trace for trace in figure.data if trace.type == "scatter" and trace.customdata is not None]


def test_click_says_panel_row_and_column_and_hover_all_about_them(panel):
    figure = matrices_figure(made(panel, panel, row_title="encoder", column_title="head of"))
    first, second = cells(figure)
    assert [list(one) for one in first.customdata] == [[0, i, j] for i in range(3) for j in range(3)]
    assert list(second.customdata[5]) == [1, 1, 2]
    assert (second.x[5], second.y[5]) == (2, 1)
    assert second.xaxis == "x2"
    hover = "<b>relative</b><br>encoder &#36;c&#36;, head of third of the encoders<br>.1"
    assert second.hovertext[5] == hover
    assert first.hovertext[2].endswith("<br>no value")
    assert figure.layout.meta["alt"] == "Two heat maps."
    assert figure.layout.clickmode == "event+select"


def test_one_scale_for_all_also_turned_round_and_logarithmic(panel):
    data = made(panel, scale=(2.0, 0.0))
    np.testing.assert_allclose(data.shares(np.array([2.0, 1.0, 0.0, 9.0, NAN])), [0, 0.5, 1, 0, NAN])
    data = made(panel, scale=(1.0, 1e4), log=True)
    np.testing.assert_allclose(data.shares(np.array([1, 100, 1e4])), [0, 0.5, 1])
    assert data.ticks() == ([0.0, 0.25, 0.5, 0.75, 1.0], ["1", "10", "100", "1,000", "10,000"])
    bar = matrices_figure(made(panel, panel), LIGHT).layout.coloraxis.colorbar
    assert bar.ticktext == ("0", ".25", ".5", ".75", "1")


@pytest.mark.parametrize(("width", "theme"), [(COLUMN, LIGHT), (PAGE, DARK)])
def test_paper_is_as_wide_as_style_says_and_holds_every_cell(panel, width, theme):
    data = made(panel, panel, row_title="encoder", column_title="head of")
    figure = printed_figure(data, Style(width=width, theme=theme))
    assert figure.get_figwidth() == width
    assert [len(axes.patches) for axes in figure.axes[:2]] == [9 + 3] * 2  # cells and dotted frames
    written = {text.get_text() for axes in figure.axes[:2] for text in axes.texts}
    assert {".98", ".50", ".000", "head of", "encoder"} <= written
    assert "nan" not in written


@pytest.mark.parametrize(
    ("name", "ends", "first"),
    [
        ("{} encoder of all encoders", ("first", "other"), "first encoder of all en…"),
        ("fasttext-novels by words, {}", ("absolute", "relative"), "fasttext-nov…s, absolute"),
    ],
)
def test_long_names_are_cut_where_they_still_differ(name, ends, first):
    names = tuple(map(name.format, ends))
    panel = MatrixPanel("", names, names, np.eye(2))
    shown = [label.strip() for label in matrices_figure(made(panel)).layout.yaxis.ticktext]
    assert shown[0] == first
    assert len(set(shown)) == 2
    assert max(map(len, shown)) <= 24
