"""Interactive figures: what Plotly is given."""

import numpy as np
import pytest

from relcore.figures import screen
from relcore.figures.style import DARK


def points(figure):
    return [trace for trace in figure.data if trace.legendgroup]


@pytest.mark.parametrize("n_panes", [1, 2, 3, 4])
def test_every_pane_holds_every_row_once_and_does_not_overlap(make_scene, n_panes):
    scene = make_scene(n_panes=n_panes)
    figure = screen.panes_figure(scene)
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


def test_colors_and_hover_follow_the_row(make_scene):
    scene = make_scene()
    for trace in points(screen.panes_figure(scene, DARK))[:5]:
        rows = [int(text.removeprefix("word")) for text in trace.hovertext]
        (category,) = set(scene.categories[rows])
        assert trace.marker.color == (DARK.neutral if category < 0 else DARK.category_colors(4)[category])


def test_the_null_lies_behind_each_bar(scores):
    null, *bars = screen.score_bars_figure(scores).data
    assert np.allclose(np.array(null.base) + np.array(null.y), scores.null_high)
    assert np.allclose(sorted(np.concatenate([bar.x for bar in bars])), sorted(null.x))
    assert null.width > bars[0].width
