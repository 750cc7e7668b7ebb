"""Heat maps in one colour scale: what stands where, what a click picks, and the same on paper and in CSV."""

import numpy as np
import pytest

from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.figures.matrices_print import matrices_figure as printed_figure
from relcore.figures.matrices_screen import _Room, matrices_figure
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


def test_a_click_says_panel_row_and_column_and_hover_all_about_them(panel):
    figure = matrices_figure(made(panel, panel, row_title="encoder", column_title="head of"))
    first, second = cells(figure)
    assert [list(one) for one in first.customdata] == [[0, i, j] for i in range(3) for j in range(3)]
    assert list(second.customdata[5]) == [1, 1, 2]
    assert (second.x[5], second.y[5]) == (2, 1)
    assert second.xaxis == "x2"
    assert (
        second.hovertext[5] == "<b>relative</b><br>encoder &#36;c&#36;, head of third of the encoders<br>.1"
    )
    assert first.hovertext[2].endswith("<br>no value")
    assert figure.layout.meta["alt"] == "Two heat maps."
    assert figure.layout.clickmode == "event+select"


def test_panels_end_within_the_figure(panel):
    """Plotly refuses to draw a file in which an axis ends at 1.0000000000000002, as rounding would have it
    at some widths.
    """
    data = made(*[panel] * 3)
    ends = [
        _Room(data, width, across).domain(across - 1)[1] for width in range(861, 2000) for across in (1, 2, 3)
    ]
    assert max(ends) <= 1
    assert min(ends) == pytest.approx(1)


def test_the_picked_cell_is_framed_in_its_own_panel(panel):
    plain, framed = (matrices_figure(made(panel, panel), picked=picked) for picked in (None, (1, 2, 0)))
    assert len(framed.layout.shapes) == len(plain.layout.shapes) + 1
    frame = framed.layout.shapes[-1]
    assert (frame.xref, frame.yref, frame.x0, frame.x1, frame.y0, frame.y1) == (
        "x2",
        "y2",
        -0.5,
        0.5,
        1.5,
        2.5,
    )


def test_numbers_stand_where_they_have_room(panel):
    def written(values, **settings):
        r, c = values.shape
        one = MatrixPanel("", tuple(range(r)), tuple(range(c)), values)
        return [note.text for note in matrices_figure(made(one), **settings).layout.annotations]

    assert written(panel.values) == [".98", ".50", ".25", ".99", ".10", ".000", "1.00", ".97"]
    assert written(np.full((3, 60), 0.5)) == []
    assert written(np.full((60, 3), 0.5)) == []
    assert written(panel.values, width=160) == []


def test_small_print_goes_below_the_number_on_screen_where_it_fits(panel):
    texts = tuple(tuple(f"{value:.1f}\n± .01" for value in row) for row in panel.values)
    one = MatrixPanel("", NAMES, NAMES, panel.values, texts)
    assert "± .01" in matrices_figure(made(one)).layout.annotations[0].text
    assert matrices_figure(made(one), height=130).layout.annotations[0].text == "1.0"


def test_one_scale_for_all_also_turned_round_and_logarithmic(panel):
    data = made(panel, scale=(2.0, 0.0))
    np.testing.assert_allclose(data.shares(np.array([2.0, 1.0, 0.0, 9.0, NAN])), [0, 0.5, 1, 0, NAN])
    data = made(panel, scale=(1.0, 1e4), log=True)
    np.testing.assert_allclose(data.shares(np.array([1, 100, 1e4])), [0, 0.5, 1])
    assert data.ticks() == ([0.0, 0.25, 0.5, 0.75, 1.0], ["1", "10", "100", "1,000", "10,000"])
    assert matrices_figure(made(panel, panel), LIGHT).layout.coloraxis.colorbar.ticktext == (
        "0",
        ".25",
        ".5",
        ".75",
        "1",
    )


def test_colours_are_those_of_the_theme_and_grow_deeper(panel):
    data = made(panel)
    pale, deep = (sum(data.color(value, LIGHT)) for value in (0.0, 1.0))
    assert pale > deep
    assert sum(data.color(0.0, DARK)) < sum(data.color(1.0, DARK))


def test_long_names_of_columns_that_are_the_rows_become_numbers(panel):
    axis = matrices_figure(made(panel, panel, panel)).layout.xaxis
    assert axis.ticktext == ("<b>1</b>", "<b>2</b>", "<b>3</b>")
    other = MatrixPanel("", ("x",), NAMES, panel.values[:1])
    assert matrices_figure(made(other)).layout.xaxis.ticktext[1] == "&#36;c&#36;"


def test_many_numeric_columns_are_named_at_even_steps():
    many = MatrixPanel("", (1, 2), tuple(np.linspace(0.1, 0.9, 161)), np.zeros((2, 161)))
    axis = matrices_figure(made(many)).layout.xaxis
    assert 2 < len(axis.tickvals) < 60
    assert len(set(np.diff(axis.tickvals))) == 1
    assert axis.ticktext[0] == ".1"


@pytest.mark.parametrize("width", [COLUMN, PAGE])
@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_paper_is_as_wide_as_the_style_says_and_holds_every_cell(panel, width, theme):
    data = made(panel, panel, row_title="encoder", column_title="head of")
    figure = printed_figure(data, Style(width=width, theme=theme))
    assert figure.get_figwidth() == width
    assert [len(axes.patches) for axes in figure.axes[:2]] == [
        12,
        12,
    ]  # nine cells and three dotted frames each
    written = {text.get_text() for axes in figure.axes[:2] for text in axes.texts}
    assert {".98", ".50", ".000", "head of", "encoder"} <= written
    assert "nan" not in written


def test_the_table_has_a_row_a_cell_under_the_names_of_the_axes(panel):
    figure = matrices_exportable(
        made(panel, row_title="encoder", column_title="head"), {"figure": "x"}, "stitching"
    )
    table = figure.table()
    assert table.columns.tolist() == ["panel", "encoder", "head", "accuracy"]
    assert len(table) == 9
    assert table.iloc[3].tolist() == ["relative", "$c$", "a <b>", 0.25]
    assert figure.filename("csv") == "stitching.csv"
    assert figure.bytes("png", Style(width=3, dpi=72)).startswith(b"\x89PNG")


def test_what_does_not_fit_says_so(panel):
    with pytest.raises(ValueError, match=r"expected values \(2, 3\), one per row and column, got \(3, 3\)"):
        MatrixPanel("relative", NAMES[:2], NAMES, panel.values)
    with pytest.raises(ValueError, match="expected distinct rows"):
        MatrixPanel("relative", ("a", "a", "b"), NAMES, panel.values)
    with pytest.raises(ValueError, match="expected hover for each of 3 × 3 cells"):
        MatrixPanel("relative", NAMES, NAMES, panel.values, hover=(("a",),))
    with pytest.raises(ValueError, match="at least one panel"):
        made()
    with pytest.raises(ValueError, match="expected two different values"):
        made(panel, scale=(1.0, 1.0))
    with pytest.raises(ValueError, match="expected two positive and different values"):
        made(panel, scale=(0.0, 1.0), log=True)
