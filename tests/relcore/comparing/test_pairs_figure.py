"""The heat map of pairs: every number in its cell, chance beside it, reasons where there is none."""

import numpy as np
import pytest

from relcore.compare.all_pairs import pair_matrices
from relcore.figures.matrices import matrices_exportable
from relcore.figures.matrices_print import matrices_figure as printed_figure
from relcore.figures.matrices_screen import matrices_figure
from relcore.figures.style import COLUMN, DARK, PAGE, Style
from relcore.scores.pair_scores import PairScores
from relcore.scores.score import Null, Score

NAN = np.nan


def score(value, null=(0.1, 0.08, 0.12), **circumstances):
    return Score(value, metric="mutual knn", **{"n": 900, "k": 10, "null": Null(*null)} | circumstances)


@pytest.fixture
def scores():
    first, low = score(0.84), score(0.021, (0.02, 0.01, 0.03), interval=(0.01, 0.04), n_queries=300)
    itself, why = score(1.0), "they share no ids"
    rows = ((itself, first, None), (first, itself, low), (None, low, itself))
    return PairScores(
        ("cnn", "<vit>", "$words$"), "mutual knn", rows, (("", "", why), ("", "", ""), (why, "", ""))
    )


def many(n):
    rows = ((score(0.5),) * n,) * n
    return PairScores(tuple(f"s{i}" for i in range(n)), "mutual knn", rows, (("",) * n,) * n)


def test_a_cell_says_number_chance_and_rows_or_the_reason(scores):
    (panel,) = pair_matrices(scores).panels
    np.testing.assert_array_equal(panel.values, [[1, 0.84, NAN], [0.84, 1, 0.021], [NAN, 0.021, 1]])
    assert panel.missing == [(0, 2), (2, 0)]
    assert (panel.text(0, 1), panel.text(0, 2), panel.text(1, 1)) == (".84\nchance .10", "", "1.00")
    assert (
        panel.explain(1, 0) == f"{scores.title}: .840\nchance level: .100, 95 % band .080 … .120\nn: 900 rows"
    )
    told = (
        ".021 (.010 … .040, sampled)",
        "chance level: .020, 95 % band .010 … .030",
        "n: 300 of 900 rows as queries",
    )
    assert panel.explain(1, 2).partition(": ")[2] == "\n".join(told)
    assert panel.explain(0, 2) == "they share no ids"


@pytest.mark.parametrize(("n", "number", "chance"), [(4, True, True), (14, True, False), (60, False, False)])
def test_small_cells_keep_what_has_room(n, number, chance):
    told = "".join(
        note.text for note in matrices_figure(pair_matrices(many(n)), width=760).layout.annotations
    )
    assert (".50" in told, "chance .10" in told) == (number, chance)


def test_each_cell_can_be_picked_and_carries_its_place(scores):
    points = matrices_figure(pair_matrices(scores)).data[-1]
    picked = {(x, y): tuple(place) for x, y, place in zip(points.x, points.y, points.customdata, strict=True)}
    assert picked[1, 0] == (0, 0, 1)  # first row, second column
    assert len(picked) == 9
    assert "&lt;vit&gt;" in points.hovertext[1]
    assert ".840<br>chance level: .100" in points.hovertext[1]
    assert points.hovertext[2].endswith("they share no ids")


def test_the_scale_is_fixed_and_a_space_with_itself_is_dotted(scores):
    data = pair_matrices(scores)
    figure = matrices_figure(data)
    np.testing.assert_array_equal(figure.data[0].z, [[1, 0.84, NAN], [0.84, 1, 0.021], [NAN, 0.021, 1]])
    assert data.scale == (0, 1)
    assert sum(shape.line.dash == "dot" for shape in figure.layout.shapes) == 3


def test_numbers_hatches_and_the_frame_of_the_present_pair(scores):
    figure = matrices_figure(pair_matrices(scores, ("<vit>", "cnn")), DARK)
    numbers = sorted(note.text.split("<")[0] for note in figure.layout.annotations)
    assert numbers == [".021"] * 2 + [".84"] * 2 + ["1.00"] * 3
    assert sum(trace.type == "scatter" and trace.mode == "lines" for trace in figure.data) >= 1
    solid = [shape for shape in figure.layout.shapes if shape.line.dash != "dot"]
    assert {(round((one.x0 + one.x1) / 2), round((one.y0 + one.y1) / 2)) for one in solid} == {(0, 1), (1, 0)}
    assert "cnn and <vit>: .84; cnn and $words$: none" in figure.layout.meta["alt"]
    assert pair_matrices(scores, ("gone", "cnn")).panels[0].framed == ()


@pytest.mark.parametrize("width", [COLUMN, PAGE])
def test_print_has_numbers_chance_and_hatches_and_stays_inside(scores, width):
    figure = printed_figure(pair_matrices(scores), Style(width=width))
    assert figure.get_figwidth() == width
    shown = " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
    assert shown.count(".84") == 2
    assert "<vit>" in " ".join(
        text.get_text() for text in figure.findobj(lambda one: hasattr(one, "get_text"))
    )
    assert any(patch.get_hatch() for axes in figure.axes for patch in axes.patches)
    for text in figure.texts:
        box = text.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1


def test_the_csv_holds_numbers_nulls_and_reasons(scores):
    written = (
        matrices_exportable(pair_matrices(scores), table=scores.table).bytes("csv").decode().splitlines()
    )
    assert written[0] == "first,second,score,chance,null_low,null_high,low,high,n,k,queries,reason"
    assert written[2] == "cnn,<vit>,0.84,0.1,0.08,0.12,,,900,10,900,"
    assert written[3].endswith("they share no ids")
