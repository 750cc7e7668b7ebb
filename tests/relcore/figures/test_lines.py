"""Lines: what is drawn is what was given, on screen, on paper and as numbers."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.charts.lines import Line, Lines
from relcore.figures import lines, lines_print
from relcore.figures.export import lines_exportable
from relcore.figures.style import COLUMN, DARK, Style

UP = Line("<up> $1$", [30, 10, 20], [0.9, 0.5, 0.7], [0.8, 0.4, 0.6], [1.0, 0.6, 0.8], labels=["c", "a", "b"])
CHART = Lines(
    (UP, Line("flat", [10, 30], [0.2, 0.2])), "anchors", "accuracy", log_x=True, baselines=(("chance", 0.1),)
)


def test_lines_run_by_x_inside_their_bands():
    band, line, flat = lines.lines_figure(CHART).data[:3]
    assert list(line.x) == [10, 20, 30]
    assert list(line.y) == [0.5, 0.7, 0.9]
    assert list(band.x) == [10, 20, 30, 30, 20, 10]
    assert list(band.y) == [0.6, 0.8, 1.0, 0.8, 0.6, 0.4]
    assert line.hovertext[0].startswith("a<br>10: .500 (.400 … .600)")
    assert line.name == "&lt;up&gt; &#36;1&#36;"
    assert flat.line.color != line.line.color


def test_points_hand_over_their_keys_and_keep_their_order():
    points = Line("runs", [1, 0], [0.5, 0.6], labels=["second", "first"], keys=["k1", "k0"])
    figure = lines.lines_figure(Lines((points,), "x", "y", kind="points", note="Pearson 1 $"), DARK)
    assert figure.data[0].mode == "markers"
    assert [list(key) for key in figure.data[0].customdata] == [["k1"], ["k0"]]
    assert figure.layout.annotations[0].text == "Pearson 1 &#36;"
    assert figure.layout.paper_bgcolor is None or DARK.surface == figure.layout.template.layout.paper_bgcolor


def test_table_holds_every_number_and_the_baselines():
    table = CHART.table()
    assert table.x.dropna().tolist() == [30, 10, 20, 10, 30]
    assert table.low.dropna().tolist() == [0.8, 0.4, 0.6]
    assert table.iloc[-1][["name", "y", "label"]].tolist() == ["chance", 0.1, "baseline"]


def test_alt_tells_ends_of_lines():
    assert ".5 at 10, .9 at 30" in CHART.describe()
    assert "chance: .1" in lines.lines_figure(CHART).layout.meta["alt"]


def test_choices_on_the_x_axis_are_named():
    chart = Lines(
        (Line("a", [0, 1], [0.2, 0.4]),), "anchors", "MRR", kind="points", x_names=("random", "rare")
    )
    assert list(lines.lines_figure(chart).layout.xaxis.ticktext) == ["random", "rare"]
    assert [text.get_text() for text in lines_print.lines_figure(chart).axes[0].get_xticklabels()] == [
        "random",
        "rare",
    ]
    assert "a: random .2, rare .4" in chart.describe()


def test_a_gap_breaks_neither_form():
    gap = Lines((Line("a", [1, 2, 3], [0.1, np.nan, 0.3], [0, np.nan, 0.2], [0.2, np.nan, 0.4]),), "x", "y")
    assert lines.lines_figure(gap).data[0].x.tolist() == [1, 3, 3, 1]
    assert lines_print.lines_figure(gap).axes


@pytest.mark.parametrize("kind", ["lines", "points"])
def test_print_has_the_styles_width_and_every_name(kind):
    chart = Lines(CHART.lines, "anchors", "accuracy", kind=kind, baselines=CHART.baselines, note="a note")
    figure = lines_print.lines_figure(chart, Style(width=COLUMN, dpi=80))
    assert figure.get_figwidth() == COLUMN
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["<up> $1$", "flat", "chance: .1"]


def test_all_forms_come_from_one_exportable():
    made = lines_exportable(CHART, {"figure": "study"}, name="a")
    for kind, start in (("html", b"<!"), ("pdf", b"%PDF"), ("csv", b"name,x,y")):
        assert made.bytes(kind, Style(dpi=80)).startswith(start)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Line("a", [1, 2], [1]), "expected 2 y, one for each x, got 1"),
        (lambda: Line("a", [1], [1], low=[0]), "both ends of the band"),
        (lambda: Line("a", [1], [1], labels=["b", "c"]), "expected 1 labels"),
        (lambda: Lines((), "x", "y"), "one point or more"),
        (lambda: Lines((Line("a", [0], [1]),), "x", "y", log_x=True), "above 0 on a logarithmic"),
        (lambda: Lines((Line("a", [0], [1]),), "x", "y", kind="bars"), "'lines' or 'points'"),
    ],
)
def test_wrong_input_says_so(make, message):
    with pytest.raises(SpaceError, match=message):
        make()
