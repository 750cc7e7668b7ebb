"""Interactive figures: what Plotly is given."""

from dataclasses import replace

import numpy as np
import pytest

from relcore.figures import interactive, panes
from relcore.figures.style import DARK, LIGHT


def points(figure):
    return [trace for trace in figure.data if trace.legendgroup]


@pytest.mark.parametrize("n_panes", [1, 2, 3, 4])
def test_every_pane_holds_every_row_once_and_does_not_overlap(make_scene, n_panes):
    scene = make_scene(n_panes=n_panes)
    figure = panes.panes_figure(scene)
    for i, pane in enumerate(scene.panes):
        number = "" if i == 0 else str(i + 1)
        drawn = np.concatenate(
            [np.c_[trace.x, trace.y] for trace in points(figure) if trace.xaxis == f"x{number}"]
        )
        assert np.array_equal(np.unique(drawn, axis=0), np.unique(pane.coordinates, axis=0))
    boxes = [
        (*figure.layout[f"xaxis{n}"].domain, *figure.layout[f"yaxis{n}"].domain)
        for n in ["", "2", "3", "4"][:n_panes]
    ]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert a[0] >= b[1] or b[0] >= a[1] or a[2] >= b[3] or b[2] >= a[3]


def test_legend_names_each_category_once_and_shows_markup_as_text(make_scene):
    figure = panes.panes_figure(make_scene())
    assert [trace.name for trace in figure.data if trace.showlegend] == [
        "other",
        "music",
        "&lt;unk&gt;",
        "&#36;x&#36; &amp; y",
        "river",
    ]


def test_colors_and_hover_follow_the_row(make_scene):
    scene = make_scene()
    for trace in points(panes.panes_figure(scene, DARK))[:5]:
        rows = [int(text.removeprefix("word")) for text in trace.hovertext]
        (category,) = set(scene.categories[rows])
        assert trace.marker.color == (DARK.neutral if category < 0 else DARK.category_colors(4)[category])


@pytest.mark.parametrize("dimension", [2, 3])
def test_hover_shows_text_in_lines_id_and_note_as_they_are(make_scene, dimension):
    long = "a <b> sentence " * 40
    scene = replace(
        make_scene(n=3, n_panes=1, dimension=dimension, n_anchors=0, names=()),
        texts=["short", "", long],
        notes=["x & y", "", ""],
    )
    texts = list(panes.panes_figure(scene).data[0].hovertext)
    assert texts[:2] == ["short<br>word0<br>x &amp; y", "word1"]
    *lines, name = texts[2].split("<br>")
    assert (len(lines), name) == (3, "word2")
    assert lines[2].endswith(" …")
    assert "&lt;b&gt;" in lines[0]


def test_anchors_are_numbered_stars_above_the_points(make_scene):
    scene = make_scene(n_panes=1)
    *_, ring, stars = panes.panes_figure(scene).data
    assert list(stars.text) == ["1", "2", "3", "4", "5"]
    assert stars.marker.symbol == "star"
    assert ring.marker.symbol == "circle"
    assert {trace.type for trace in (ring, stars)} == {
        "scattergl"
    }  # in SVG the points' canvas would cover them
    assert np.array_equal(np.c_[stars.x, stars.y], scene.panes[0].coordinates[scene.anchors])


def test_many_anchors_keep_their_stars_and_lose_their_numbers(make_scene):
    stars = panes.panes_figure(make_scene(n=200, n_panes=1, n_anchors=50)).data[-1]
    assert set(stars.text) == {""}
    assert stars.hovertext[49].endswith("anchor 50")


def test_without_anchors_or_names_only_points_are_drawn(make_scene):
    figure = panes.panes_figure(make_scene(n_anchors=0, n_panes=2, names=()))
    assert len(figure.data) == 2
    assert not any(trace.showlegend for trace in figure.data)


def test_three_dimensions_become_scenes(make_scene):
    figure = panes.panes_figure(make_scene(dimension=3, n_panes=2))
    assert {trace.type for trace in figure.data} == {"scatter3d"}
    assert figure.layout.scene2.domain.x[0] > figure.layout.scene.domain.x[1]


def test_every_chart_has_a_title_units_and_an_alt_text(scores, named_values):
    charts = [
        interactive.score_bars_figure(scores),
        interactive.histogram_figure(named_values, "norm (no unit)"),
        interactive.spectrum_figure(named_values),
    ]
    for chart in charts:
        assert chart.layout.title.text
        assert chart.layout.xaxis.title.text
        assert chart.layout.yaxis.title.text
        assert len(chart.layout.meta["alt"]) > 40
    assert "linear CKA, relative: .710" in charts[0].layout.meta["alt"]
    assert "word2vec (n = 500)" in charts[1].layout.meta["alt"]


def test_the_alt_text_of_panes_holds_the_caption(make_scene):
    alt = panes.panes_figure(make_scene()).layout.meta["alt"]
    assert alt.startswith("Two spaces of words. 60 points, 5 anchors, 4 panes: Absolute, A")


def test_the_null_lies_behind_each_bar(scores):
    null, *bars = interactive.score_bars_figure(scores).data
    assert np.allclose(np.array(null.base) + np.array(null.y), scores.null_high)
    assert np.allclose(sorted(np.concatenate([bar.x for bar in bars])), sorted(null.x))
    assert null.width > bars[0].width


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_template_wears_the_theme(theme):
    layout = interactive.relscope_template(theme).layout
    assert (layout.paper_bgcolor, layout.font.color, layout.colorway[0]) == (
        theme.surface,
        theme.text,
        "#0072B2",
    )
