"""Options beside curves: what is drawn is what was given, on screen, on paper and as numbers."""

import pytest

from relcore.figures import screen
from relcore.figures.charts import ChartOption, Line, Lines, Options

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
    figure = screen.options_figure(CHART)
    bridge = [trace for trace in figure.data if trace.name == "bridge"]
    assert bridge[0].line.color == figure.data[1].marker.color
    assert figure.data[2].marker.symbol == "star"
    assert [list(figure.data[number].y) for number in range(4)] == [[0.4], [0.3], [0.45], [0.43]]
    assert figure.data[1].error_y.arrayminus[0] == pytest.approx(0.1)
    assert figure.data[0].x[0] == "keep &lt;&#36;&gt;"
