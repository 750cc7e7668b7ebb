"""Options beside curves: what is drawn is what was given, on screen, on paper and as numbers."""

import pytest

from relcore.base.errors import SpaceError
from relcore.charts.lines import ChartOption, Line, Lines, Options
from relcore.figures import lines, lines_print
from relcore.figures.export import options_exportable
from relcore.figures.style import COLUMN, Style

CURVES = Lines(
    (Line("bridge", [25, 100], [0.2, 0.3], [0.1, 0.2], [0.3, 0.4]), Line("twice", [25, 100], [0.4, 0.45])),
    "pairs",
    "nDCG@10",
    log_x=True,
)
CHART = Options(
    (
        ChartOption("keep <$>", 0.4, 0.35, 0.45),
        ChartOption("bridge", 0.3, 0.2, 0.4),
        ChartOption("twice", 0.45, 0.4, 0.5),
        ChartOption("re-embed", 0.43, 0.38, 0.48),
    ),
    CURVES,
    chosen="twice",
)


def test_an_option_has_the_colour_of_its_curve():
    figure = lines.options_figure(CHART)
    bridge = [trace for trace in figure.data if trace.name == "bridge"]
    assert bridge[0].line.color == figure.data[1].marker.color
    assert figure.data[2].marker.symbol == "star"
    assert [list(figure.data[number].y) for number in range(4)] == [[0.4], [0.3], [0.45], [0.43]]
    assert figure.data[1].error_y.arrayminus[0] == pytest.approx(0.1)
    assert figure.data[0].x[0] == "keep &lt;&#36;&gt;"


def test_options_without_a_curve_are_levels():
    assert [one.name for one in CHART.levels] == ["keep <$>", "re-embed"]
    levels = [shape.y0 for shape in lines.options_figure(CHART).layout.shapes]
    assert levels == [0.4, 0.43]


def test_the_table_holds_options_and_curves():
    table = CHART.table()
    assert table.loc[table.label == "option", "y"].tolist() == [0.4, 0.3, 0.45, 0.43]
    assert table.loc[table.name == "bridge", "y"].tolist() == [0.3, 0.2, 0.3]


@pytest.mark.parametrize("width", [COLUMN, 6.75])
def test_print_shows_the_same_twice_to_the_byte(width):
    figure = options_exportable(CHART, {"figure": "x"})
    style = Style(width=width)
    assert figure.bytes("pdf", style=style) == figure.bytes("pdf", style=style)
    choices, curves = lines_print.options_figure(CHART, style).axes
    assert [text.get_text() for text in choices.get_xticklabels()] == [
        "keep <$>",
        "bridge",
        "twice",
        "re-embed",
    ]
    assert choices.get_ylim() == curves.get_ylim()


def test_ticks_that_would_cover_each_other_are_left_out():
    curves = Lines(
        (Line("bridge", [25, 100, 250, 300], [0.2, 0.3, 0.4, 0.5]),), "pairs", "nDCG@10", log_x=True
    )
    assert Options(CHART.options, curves).places == [25, 100, 300]


def test_it_is_described_for_screen_readers():
    assert "twice .450 (.400 … .500)" in CHART.describe()
    assert "Recommended: twice." in CHART.describe()


def test_two_options_of_one_name_are_refused():
    with pytest.raises(SpaceError, match="different names"):
        Options((ChartOption("a", 0, 0, 0), ChartOption("a", 1, 1, 1)), CURVES)
