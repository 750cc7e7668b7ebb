"""Line charts show the given numbers on screen, on paper and in the exported table."""

import numpy as np
import pytest

from relcore.figures import paper_charts, screen
from relcore.figures.charts import Line, Lines, histogram_table

UP = Line("<up> $1$", [30, 10, 20], [0.9, 0.5, 0.7], [0.8, 0.4, 0.6], [1.0, 0.6, 0.8], labels=["c", "a", "b"])
CHART = Lines(
    (UP, Line("flat", [10, 30], [0.2, 0.2])), "anchors", "accuracy", log_x=True, baselines=(("chance", 0.1),)
)


def test_lines_run_by_x_inside_their_bands():
    band, line, flat = screen.lines_figure(CHART).data[:3]
    assert list(line.x) == [10, 20, 30]
    assert list(line.y) == [0.5, 0.7, 0.9]
    assert list(band.x) == [10, 20, 30, 30, 20, 10]
    assert list(band.y) == [0.6, 0.8, 1.0, 0.8, 0.6, 0.4]
    assert line.hovertext[0].startswith("a<br>10: .500 (.400 … .600)")
    assert line.name == "&lt;up&gt; &#36;1&#36;"
    assert flat.line.color != line.line.color


def test_a_gap_breaks_neither_form():
    gap = Lines((Line("a", [1, 2, 3], [0.1, np.nan, 0.3], [0, np.nan, 0.2], [0.2, np.nan, 0.4]),), "x", "y")
    assert screen.lines_figure(gap).data[0].x.tolist() == [1, 3, 3, 1]
    assert paper_charts.lines_figure(gap).axes


def test_names_at_ends_of_lines_keep_apart_and_leave_legend():
    lines = [
        Line(f"{name}, as set", [1, 2], [0.1, end])
        for name, end in zip("abc", (0.9, 0.899, 0.2), strict=True)
    ]
    figure = screen.lines_figure(Lines(tuple(lines), "pairs", "score", n_direct=2))
    places = {one.text: one.y for one in figure.layout.annotations}
    assert set(places) == {"a", "b"}
    assert places["a"] - places["b"] > 0.03
    low, high = figure.layout.yaxis.range
    assert low < min(places.values()) < max(places.values()) < high
    assert [trace.showlegend for trace in figure.data if trace.name] == [False, False, None]


def test_histogram_counts_are_numpys_and_percents_are_of_each_array():
    values = {"a": np.arange(10.0), "b": np.array([0.0, 9.0])}
    table = histogram_table(values)
    assert table[table.name == "a"]["count"].tolist() == np.histogram(values["a"], 20)[0].tolist()
    assert table.groupby("name").percent.sum().tolist() == pytest.approx([100, 100])
    assert (table.left.iloc[0], table.right.iloc[-1]) == (0, 9)
