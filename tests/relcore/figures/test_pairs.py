"""The heat map of pairs: every number in its cell, chance beside it, reasons where there is none."""

import numpy as np
import pandas as pd
import pytest

from relcore.figures.export import pairs_exportable
from relcore.figures.pair_cells import PairCells, cell_color, pair_ramp, text_on
from relcore.figures.pairs_interactive import pairs_figure
from relcore.figures.pairs_publication import pairs_figure as printed_figure
from relcore.figures.palette import DARK, LIGHT
from relcore.figures.style import COLUMN, PAGE, Style

COLUMNS = ["first", "second", "score", "chance", "null_low", "null_high", "low", "high", "n", "k", "queries", "reason"]
NAN = np.nan


@pytest.fixture
def table():
    rows = [
        ("cnn", "cnn", 1.0, 0.1, 0.08, 0.12, NAN, NAN, 900, 10, 900, ""),
        ("cnn", "<vit>", 0.84, 0.1, 0.08, 0.12, NAN, NAN, 900, 10, 900, ""),
        ("cnn", "$words$", NAN, NAN, NAN, NAN, NAN, NAN, pd.NA, pd.NA, pd.NA, "they share no ids"),
        ("<vit>", "<vit>", 1.0, 0.1, 0.08, 0.12, NAN, NAN, 900, 10, 900, ""),
        ("<vit>", "$words$", 0.021, 0.02, 0.01, 0.03, 0.01, 0.04, 900, 10, 300, ""),
        ("$words$", "$words$", 1.0, 0.1, 0.08, 0.12, NAN, NAN, 900, 10, 900, ""),
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def many(n):
    rows = [(f"s{i}", f"s{j}", 0.5, 0.1, 0.0, 0.2, NAN, NAN, 9, 1, 9, "") for i in range(n) for j in range(i, n)]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_cells_are_symmetric_and_in_the_order_of_the_table(table):
    cells = PairCells.of(table)
    assert cells.names == ("cnn", "<vit>", "$words$")
    np.testing.assert_array_equal(cells.scores, [[1, 0.84, NAN], [0.84, 1, 0.021], [NAN, 0.021, 1]])
    assert cells.missing == [(0, 2), (2, 0)]


def test_a_cell_says_number_chance_and_rows_or_the_reason(table):
    cells = PairCells.of(table)
    assert (cells.number(0, 1), cells.chance(0, 1)) == (".84", "chance .10")
    assert (cells.number(0, 2), cells.chance(0, 2), cells.chance(1, 1)) == ("", "", "")
    assert cells.explain(1, 0) == ["<vit> and cnn", ".840", "chance .100 (.080 … .120)", "900 rows"]
    assert cells.explain(1, 2)[1] == ".021 (.010 … .040, sampled)"
    assert cells.explain(1, 2)[3] == "300 of 900 rows as queries"
    assert cells.explain(0, 2) == ["cnn and $words$", "they share no ids"]


@pytest.mark.parametrize(("n", "number", "chance"), [(8, ".50", "chance .10"), (9, ".50", ""), (17, "", "")])
def test_small_cells_keep_what_has_room(n, number, chance):
    cells = PairCells.of(many(n))
    assert (cells.number(0, 1), cells.chance(0, 1)) == (number, chance)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop(columns="chance"), "got no chance"),
        (lambda table: table.drop(index=1), "one row for each of 6 pairs, got 5"),
        (lambda table: pd.concat([table, table[1:2]]), "one row for each of 6 pairs, got 7"),
        (lambda table: table[:0], "one row for each of 0 pairs, got 0"),
    ],
)
def test_a_wrong_table(table, change, message):
    with pytest.raises(ValueError, match=message):
        PairCells.of(change(table))


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_lightness_alone_tells_the_score_and_text_is_readable_on_all(theme):
    def luminance(color):
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in color]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    colors = [cell_color(score, (0, 1), theme) for score in np.linspace(-0.2, 1.2, 57)]
    levels = np.array([luminance(color) for color in colors])
    steps = np.diff(levels[8:49])
    assert (steps > 0).all() if theme.dark else (steps < 0).all()
    assert levels[0] == levels[8]  # beyond the scale its end
    inks = [luminance(tuple(int(text_on(color)[i : i + 2], 16) / 255 for i in (1, 3, 5))) for color in colors]
    low, high = np.minimum(inks, levels), np.maximum(inks, levels)
    assert ((high + 0.05) / (low + 0.05)).min() > 4.3
    assert len(pair_ramp(theme)) == 5


def test_each_cell_can_be_picked_and_carries_its_names(table):
    figure = pairs_figure(table, "linear CKA")
    points = figure.data[-1]
    picked = {(x, y): tuple(names) for x, y, names in zip(points.x, points.y, points.customdata, strict=True)}
    assert picked[1, 0] == ("cnn", "<vit>")  # first row, second column
    assert len(picked) == 9
    assert points.hovertext[1].startswith("cnn and &lt;vit&gt;<br>.840<br>chance .100")
    assert points.hovertext[2] == "cnn and &#36;words&#36;<br>they share no ids"


def test_colour_is_the_score_and_a_space_with_itself_is_grey(table):
    scores, itself = figure = pairs_figure(table, "linear CKA").data[:2]
    np.testing.assert_array_equal(scores.z, [[NAN, 0.84, NAN], [0.84, NAN, 0.021], [NAN, 0.021, NAN]])
    assert (scores.zmin, scores.zmax) == (0, 1)
    assert np.isnan(itself.z).sum() == 6
    assert len(figure) == 2


def test_numbers_hatches_and_the_frame_of_the_present_pair(table):
    figure = pairs_figure(table, "linear CKA", DARK, marked=("<vit>", "cnn"))
    assert sorted(note.text.split("<")[0] for note in figure.layout.annotations) == [".021"] * 2 + [".84"] * 2 + ["1.00"] * 3
    assert sum(trace.type == "scatter" and trace.mode == "lines" for trace in figure.data) == 2
    assert {(round(shape.x0), round(shape.y1)) for shape in figure.layout.shapes} == {(0, 1), (1, 0)}
    assert figure.layout.yaxis.ticktext[1] == "&lt;vit&gt;  <b>2</b>"
    assert "cnn and <vit>: .84; cnn and $words$: none" in figure.layout.meta["alt"]
    assert not pairs_figure(table, "linear CKA", marked=("gone", "cnn")).layout.shapes


@pytest.mark.parametrize("width", [COLUMN, PAGE])
def test_print_names_rows_numbers_columns_and_stays_inside(table, width):
    style = Style(width=width)
    figure = printed_figure(table, "linear CKA", style)
    told = [text.get_text() for text in figure.texts]
    assert told.count("1") == told.count("3") == 2
    assert "<vit>" in told
    assert figure.get_figwidth() == width
    (cells, bar) = figure.axes
    shown = [text.get_text() for text in cells.texts]
    assert shown.count(".84") == 2
    assert {text for text in shown if ".10" in text} == {"chance .10"}
    assert sum(patch.get_hatch() is not None for patch in cells.patches) == 2
    assert bar.get_ylabel() == "linear CKA"
    for text in figure.texts:
        box = text.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1


def test_the_csv_holds_numbers_nulls_and_reasons(table):
    written = pairs_exportable(table, "linear CKA").bytes("csv").decode().splitlines()
    assert written[0] == ",".join(COLUMNS)
    assert written[2] == "cnn,<vit>,0.84,0.1,0.08,0.12,,,900,10,900,"
    assert written[3].endswith("they share no ids")
