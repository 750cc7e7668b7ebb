"""Publication figures: what is inside the files."""

import re
import zlib
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.contour import ContourSet

from relcore.figures import paper, paper_charts
from relcore.figures.charts import Line, Lines, histogram_lines, score_points
from relcore.figures.colorings import Pane
from relcore.figures.paper_style import write
from relcore.figures.scene import Scene
from relcore.figures.style import COLUMN, LIGHT, PAGE, Style


def inflated(pdf):
    parts = []
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            parts.append(zlib.decompress(stream))
        except zlib.error:
            parts.append(stream)
    return pdf + b"\n".join(parts)


def images(pdf):
    """Pictures painted on the page; a mask of transparency is no picture of its own."""
    return len(re.findall(rb"/I\d+ Do\b", inflated(pdf)))


def panes(scene, kind="pdf", **style):
    style = Style(**style)
    return write(paper.panes_figure(scene, style), kind, style)


@pytest.mark.parametrize("n", [200, 20_000])
def test_lines_of_density_are_drawn_where_points_hide_each_other(make_scene, n):
    axes = paper.panes_figure(make_scene(n, 1)).axes[0]
    lines = [one for one in axes.collections if isinstance(one, ContourSet)]
    assert len(lines) == (n == 20_000)
    for contours in lines:  # from the rarest: 95, 75, 50 and 25 % of normal rows lie within these radii
        radii = [np.linalg.norm(path.vertices, axis=1).mean() for path in contours.get_paths()]
        np.testing.assert_allclose(radii, np.sqrt(-2 * np.log([0.05, 0.25, 0.5, 0.75])), rtol=0.1)


def test_few_rows_get_no_lines_of_density_however_crowded(make_scene):
    """As on screen."""
    scene = make_scene(500, 1)
    crowded = replace(scene.panes[0], coordinates=scene.panes[0].coordinates.round())
    axes = paper.panes_figure(replace(scene, panes=(crowded,))).axes[0]
    assert not any(isinstance(one, ContourSet) for one in axes.collections)


@pytest.mark.parametrize(("n", "density"), [(200, True), (20_000, False)])
def test_lines_of_density_that_the_user_chose_replace_the_rule(make_scene, n, density):
    axes = paper.panes_figure(replace(make_scene(n, 1), density=density)).axes[0]
    assert any(isinstance(one, ContourSet) for one in axes.collections) == density


def test_pdf_embeds_truetype_and_no_type_3(make_scene):
    pdf = inflated(panes(make_scene()))
    assert b"/FontFile2" in pdf
    assert b"DejaVuSans-Bold" in pdf
    assert b"/Type3" not in pdf


def test_points_are_vector_up_to_limit_and_one_picture_pane_above(make_scene):
    scene = make_scene(n=60, n_panes=3)
    vector = panes(scene, raster_above=60)
    raster = panes(scene, raster_above=59)
    assert images(vector) == 0
    assert images(raster) == 3
    for pdf in (vector, raster):  # frames, rings and stars are paths in both
        assert len(re.findall(rb"\d (?:l|c|re)\n", inflated(pdf))) > 50


@pytest.mark.parametrize(("width", "n_panes"), [(COLUMN, 1), (PAGE, 4)])
def test_page_is_exactly_as_wide_as_the_style(make_scene, width, n_panes):
    box = re.search(rb"/MediaBox \[([^\]]+)\]", panes(make_scene(n_panes=n_panes), width=width))[1].split()
    assert float(box[2]) == pytest.approx(72 * width, abs=1)


@pytest.mark.parametrize(("kind", "dimension"), [("pdf", 2), ("svg", 3)])
def test_the_same_figure_has_the_same_bytes(make_scene, kind, dimension):
    one, other = (panes(make_scene(n_panes=1, dimension=dimension), kind, dpi=80) for _ in range(2))
    assert one == other


@pytest.mark.parametrize(("width", "expected"), [(6.75, [3, 3]), (3.25, [2, 1, 2, 1])])
def test_three_models_stand_side_by_side_or_in_narrow_figure_on_two_lines(make_scene, width, expected):
    scene = make_scene(n_panes=1)
    panes = tuple(replace(scene.panes[0], title=f"{number}") for number in range(6))
    axes = paper.panes_figure(replace(scene, panes=panes, columns=3), Style(width=width, dpi=72)).axes
    heights = [round(one.get_position().y0, 3) for one in axes]
    assert [heights.count(height) for height in sorted(set(heights), reverse=True)] == expected


def test_names_of_spaces_are_whole_however_long(make_scene):
    scene = make_scene(n_panes=2)
    name = "sentence-encoder-of-many-words-v2 · sentences of 16 articles, absolute"
    panes = tuple(replace(pane, title=f"{name} {i}") for i, pane in enumerate(scene.panes))
    scene = replace(scene, panes=panes)
    figure = paper.panes_figure(scene, Style(dpi=72))
    titles = [text for text in figure.texts if text.get_text().startswith(name)]
    assert [text.get_text()[-1] for text in titles] == ["0", "1"]
    assert all(text.get_window_extent().width <= 72 * 6.75 / 2 for text in titles)


def test_charts_draw_their_table(scores):
    points = paper_charts.lines_figure(score_points(scores), Style(dpi=72))
    groups = [one for one in points.axes[0].collections if isinstance(one, PathCollection)]
    chance, *drawn = [one.get_offsets() for one in groups]
    assert set(scores.score) == {y for offsets in drawn for y in offsets[:, 1]}
    assert sorted(chance[:, 0]) == sorted(x for offsets in drawn for x in offsets[:, 0])
    names = [text.get_text() for text in points.legends[0].get_texts()]
    assert names == ["chance level, 95 % band", "absolute", "relative"]
    curve = paper_charts.lines_figure(
        Lines((Line("a", [1, 100], [0, 1]),), "n", "score", log_x=True), Style(dpi=72)
    )
    # minor ticks are made now, outside the figure's settings, and still wear the theme
    curve.canvas.draw()
    assert {tick.tick1line.get_color() for tick in curve.axes[0].xaxis.get_minor_ticks()} == {LIGHT.border}
    histogram = paper_charts.lines_figure(
        histogram_lines({"a": np.arange(9.0)}, "norm (no unit)"), Style(dpi=72)
    )
    assert histogram.axes[0].get_xlabel() == "norm (no unit)"


def test_points_of_solid_panes_are_drawn_as_turned_on_screen_from_far_to_near():
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    turn[2] = np.cross(turn[0], turn[1])
    points = np.random.default_rng(9).uniform(-1, 1, size=(50, 3))
    scene = Scene(
        (Pane("solid", points),), np.arange(50).astype(str), np.full(50, -1), turn=tuple(turn.ravel())
    )
    axes = paper.panes_figure(scene, Style(dpi=72)).axes[0]
    drawn = axes.collections[0].get_offsets()
    np.testing.assert_allclose(drawn, (points @ turn.T)[np.argsort(points @ turn[2]), :2])
    assert {text.get_text() for text in axes.texts} >= {"1", "2", "3"}  # as on the screen
    box = axes.get_window_extent()
    size = np.ptp([axes.get_xlim(), axes.get_ylim()], axis=1)
    assert box.width / box.height == pytest.approx(size[0] / size[1])  # one scale for both directions
