"""Publication figures: what is inside the files."""

import re
import threading
import zlib
from collections import Counter
from dataclasses import replace
from io import BytesIO

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.text import Text
from mpl_toolkits.mplot3d import proj3d
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.charts.scene import Pane, Scene, StarLook
from relcore.figures import panes_print, publication
from relcore.figures.publication import write
from relcore.figures.style import COLUMN, DARK, LIGHT, PAGE, Style


def inflated(pdf):
    """The PDF with its compressed streams opened."""
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
    return write(panes_print.panes_figure(scene, style), kind, style)


def test_pdf_embeds_truetype_and_no_type_3(make_scene):
    pdf = inflated(panes(make_scene()))
    assert b"/FontFile2" in pdf
    assert b"DejaVuSans-Bold" in pdf
    assert b"/Type3" not in pdf


def test_points_are_vector_up_to_the_limit_and_one_picture_a_pane_above(make_scene):
    scene = make_scene(n=60, n_panes=3)
    vector, raster = panes(scene, raster_above=60), panes(scene, raster_above=59)
    assert images(vector) == 0
    assert images(raster) == 3
    for pdf in (vector, raster):  # frames, rings and stars are paths in both
        assert len(re.findall(rb"\d (?:l|c|re)\n", inflated(pdf))) > 50


@pytest.mark.parametrize("width", [COLUMN, PAGE])
@pytest.mark.parametrize("n_panes", [1, 2, 3, 4])
def test_page_is_exactly_as_wide_as_the_style(make_scene, width, n_panes):
    box = re.search(rb"/MediaBox \[([^\]]+)\]", panes(make_scene(n_panes=n_panes), width=width))[1].split()
    assert float(box[2]) == pytest.approx(72 * width, abs=1)


def star_sizes(scene):
    """Areas of the marks on top of the points, by the number of marks drawn at once."""
    figure = panes_print.panes_figure(scene, Style(dpi=72))
    return [
        marks.get_sizes()[0]
        for marks in figure.axes[0].collections
        if len(marks.get_offsets()) == len(scene.anchors)
    ]


def test_stars_are_printed_as_large_as_on_the_screen_and_not_where_they_are_hidden(make_scene):
    usual = star_sizes(make_scene())
    assert len(usual) == 2  # the halo and the star
    assert star_sizes(replace(make_scene(), stars=StarLook(size=0.5))) == pytest.approx(
        [area / 4 for area in usual]
    )
    hidden = replace(make_scene(), stars=StarLook(shown=False))
    assert star_sizes(hidden) == []
    assert "5" not in [
        text.get_text() for text in drawn_texts(panes_print.panes_figure(hidden, Style(dpi=72)))
    ]


def drawn_texts(figure):
    figure.canvas.draw()
    return [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


@pytest.mark.parametrize("width", [COLUMN, PAGE])
def test_no_text_is_cut_off(make_scene, scores, named_values, width):
    style = Style(width=width, dpi=100)
    long = make_scene(n_panes=2)
    long = Scene(
        (
            Pane(
                "A title far too long for one column of a paper " * 3, long.panes[0].coordinates, "note " * 60
            ),
            long.panes[1],
        ),
        long.ids,
        long.categories,
        ("a rather long name of a category", "another rather long name of a category", "c", "d" * 200),
        long.anchors,
    )
    figures = [
        panes_print.panes_figure(make_scene(), style),
        panes_print.panes_figure(long, style),
        publication.score_bars_figure(scores, style),
        publication.histogram_figure(named_values, "norm (no unit)", style),
        publication.spectrum_figure(named_values, style),
    ]
    for figure in figures:
        figure.canvas.draw()
        needed = figure.get_tightbbox()  # inches, of all that is drawn
        assert min(needed.x0, needed.y0) >= 0
        assert needed.x1 <= figure.get_figwidth()
        assert needed.y1 <= figure.get_figheight()


def test_letters_names_notes_and_numbers_are_there(make_scene):
    texts = [text.get_text() for text in drawn_texts(panes_print.panes_figure(make_scene(), Style(dpi=72)))]
    for text in (
        "a",
        "b",
        "c",
        "d",
        "Absolute, A",
        "PCA, 34 % of the variance",
        "other",
        "music",
        "<unk>",
        "$x$ & y",
        "river",
        "5",
    ):
        assert text in texts
    assert "Two spaces of words." not in texts
    alone = [
        text.get_text()
        for text in drawn_texts(panes_print.panes_figure(make_scene(n_panes=1), Style(dpi=72)))
    ]
    assert "a" not in alone
    unlettered = panes_print.panes_figure(make_scene(), Style(dpi=72, panel_letters=False))
    assert "a" not in [text.get_text() for text in drawn_texts(unlettered)]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_png_has_the_pixels_and_the_surface(make_scene, theme):
    with Image.open(BytesIO(panes(make_scene(n_panes=2), "png", dpi=100, theme=theme))) as image:
        assert image.width == 675
        pixels = np.array(image.convert("RGB"))
    assert pixels[0, 0].tobytes().hex() == theme.surface[1:]
    for color in theme.category_colors(4):  # points are four fifths opaque, the legend's dots whole
        assert (pixels == [int(color[i : i + 2], 16) for i in (1, 3, 5)]).all(axis=2).any()


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_the_same_figure_has_the_same_bytes(make_scene, kind, dimension):
    one, other = (panes(make_scene(n_panes=1, dimension=dimension), kind, dpi=80) for _ in range(2))
    assert one == other


def test_svg_holds_text_as_outlines_and_needs_no_font(make_scene):
    svg = panes(make_scene(), "svg").decode()
    assert "<text" not in svg
    assert "font-family" not in svg
    assert "<!-- river -->" in svg


def test_three_dimensions_beside_two(make_scene):
    solid, flat = make_scene(n_panes=1, dimension=3), make_scene(n_panes=1)
    second = Pane("Flat", flat.panes[0].coordinates)
    scene = Scene((solid.panes[0], second), flat.ids, flat.categories, flat.category_names, flat.anchors)
    figure = panes_print.panes_figure(scene, Style(dpi=72))
    assert [axes.name for axes in figure.axes] == ["3d", "rectilinear"]
    assert images(panes(scene, raster_above=10)) == 2


def test_no_anchors_and_no_names(make_scene):
    figure = panes_print.panes_figure(make_scene(n_anchors=0, names=()), Style(dpi=72))
    assert not figure.legends
    assert [len(axes.collections) for axes in figure.axes] == [1, 1, 1, 1]


def test_distances_are_kept_in_every_direction(make_scene):
    figure = panes_print.panes_figure(make_scene(n_panes=1), Style(dpi=72))
    figure.canvas.draw()
    (x0, y0), (x1, y1) = figure.axes[0].transData.transform([(0, 0), (1, 1)])
    assert x1 - x0 == pytest.approx(y1 - y0, rel=1e-6)


def test_charts_draw_their_table(scores, named_values):
    bars = publication.score_bars_figure(scores, Style(dpi=72))
    heights = [patch.get_height() for patch in bars.axes[0].patches]
    assert set(scores.score) <= set(heights)
    names = [text.get_text() for text in bars.legends[0].get_texts()]
    assert names == ["absolute", "relative", "chance level, 95 % band"]
    spectrum = publication.spectrum_figure({"a": [8.0, 4.0, 0.0]}, Style(dpi=72))
    assert spectrum.axes[0].lines[0].get_ydata().tolist() == [1.0, 0.5]  # zero has no logarithm
    # minor ticks are made now, outside the figure's settings, and still wear the theme
    spectrum.canvas.draw()
    assert {tick.tick1line.get_color() for tick in spectrum.axes[0].yaxis.get_minor_ticks()} == {LIGHT.border}
    histogram = publication.histogram_figure(named_values, "norm (no unit)", Style(dpi=72))
    assert histogram.axes[0].get_xlabel() == "norm (no unit)"


def test_settings_of_matplotlib_are_left_as_they_were(make_scene):
    before = dict(matplotlib.rcParams)
    threads = [threading.Thread(target=panes, args=(make_scene(n_panes=1), "svg")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dict(matplotlib.rcParams) == before


def test_a_readers_own_settings_do_not_change_the_paper(make_scene):
    plain = panes(make_scene(n_panes=1), "svg")
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "svg.fonttype": "none"}):
        assert panes(make_scene(n_panes=1), "svg") == plain


def test_twenty_thousand_points_are_drawn_in_as_few_strokes_as_two_hundred(make_scene, monkeypatch):
    strokes, artists = (
        Counter(),
        (
            "draw_path",
            "draw_markers",
            "draw_path_collection",
            "draw_image",
            "draw_text",
        ),
    )
    for name in artists:
        stroke = getattr(RendererAgg, name)
        monkeypatch.setattr(
            RendererAgg, name, lambda *a, _s=stroke, _n=name, **k: strokes.update([_n]) or _s(*a, **k)
        )
    assert panes(make_scene(n=200), "png")
    few = strokes.total()
    strokes.clear()
    assert len(panes(make_scene(n=20_000), "png")) > 100_000
    assert strokes.total() <= few


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"width": 30}, "width: expected 2 to 12 inches, got 30"),
        ({"dpi": 5}, "dpi"),
        ({"font_size": 0}, "font_size"),
    ],
)
def test_style_refuses(choice, message):
    with pytest.raises(SpaceError, match=message):
        Style(**choice)


@pytest.mark.parametrize("seed", range(6))
def test_a_turn_of_the_screen_is_matplotlibs_view(seed):
    """The projection of the points is the turn's first two rows, whatever the turn; also straight from
    above and below.
    """
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    turn[2] = np.cross(turn[0], turn[1])
    turn = {0: np.eye(3), 1: np.diag([1.0, -1.0, -1.0])}.get(seed, turn)
    points = np.random.default_rng(9).uniform(-1, 1, size=(50, 3))
    points[:8] = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    scene = Scene(
        (Pane("solid", points),), np.arange(50).astype(str), np.full(50, -1), turn=tuple(turn.ravel())
    )
    axes = panes_print.panes_figure(scene, Style(dpi=72)).axes[0]
    seen = np.transpose(proj3d.proj_transform(*points.T, axes.get_proj()))[:, :2]
    wanted = points @ turn[:2].T
    fitted = np.linalg.lstsq(np.c_[wanted, np.ones(50)], seen, rcond=None)[0]
    np.testing.assert_allclose(np.c_[wanted, np.ones(50)] @ fitted, seen, atol=1e-9)
    np.testing.assert_allclose(fitted[:2] / fitted[0, 0], np.eye(2), atol=1e-6)
    assert fitted[0, 0] > 0
