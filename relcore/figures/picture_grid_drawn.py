"""The grid of pictures drawn: Plotly for the screen, Matplotlib for paper, from one layout."""

from __future__ import annotations

import base64
from io import BytesIO

import plotly.graph_objects as go
from matplotlib.figure import Figure
from PIL import Image

from relcore.figures.interactive import plain_text, relscope_template
from relcore.figures.picture_grid import Layout, PictureGrid, grid_layout
from relcore.figures.publication import blank_figure, settings
from relcore.figures.style import LIGHT, PAPER, Style, Theme

_LEFT, _RIGHT = 200, 130  # units on the screen, a pixel in a wide window, .6 of one in a narrow one
_ERRORS = "MSE × 10³"


def interactive_figure(grid: PictureGrid, theme: Theme = LIGHT) -> go.Figure:
    """For the screen: sharp pixels, the error of each picture on hover."""
    layout = grid_layout(grid, theme)
    high, wide = layout.mosaic.shape[:2]
    figure = go.Figure()
    file = BytesIO()
    Image.fromarray(layout.mosaic).save(file, format="PNG")
    source = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    figure.add_image(source=source, hoverinfo="skip")
    x, y, texts = zip(*layout.cells, strict=True)
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        marker={"size": 0.8 * layout.cell, "opacity": 0},
        hovertext=texts,
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
    )
    for where, look in _texts(layout, theme.text, theme.muted):
        figure.add_annotation(x=where[0], y=where[1], text=plain_text(where[2]), showarrow=False, **look)
    axis = {"visible": False, "fixedrange": True}
    figure.update_layout(
        template=relscope_template(theme),
        meta={"alt": grid.alt()},
        height=round(0.68 * high) + 16,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        xaxis=axis
        | {
            "range": [-_LEFT, wide + _RIGHT],
            "constrain": "domain",
            "constraintoward": "left",
        },
        yaxis=axis
        | {
            "range": [high, 0],
            "scaleanchor": "x",
            "constrain": "domain",
            "constraintoward": "top",
        },
        hovermode="closest",
        dragmode=False,
    )
    return figure


def _texts(layout: Layout, ink: str, muted: str) -> list[tuple[tuple[float, float, str], dict]]:
    """Each text with Plotly's settings for it."""
    start, end = {"xanchor": "left"}, {"xanchor": "right"}
    titles = [(one, start | {"font": {"size": 15, "color": ink, "weight": 600}}) for one in layout.titles]
    labels = [
        (one, end | {"font": {"size": 12, "color": ink if "stitched" in one[2] else muted}})
        for one in layout.labels
    ]
    errors = [(one, start | {"font": {"size": 12, "color": ink}}) for one in layout.errors]
    heads = [
        ((layout.errors[0][0], y, _ERRORS), start | {"font": {"size": 11, "color": muted}})
        for _, y, _ in layout.titles
    ]
    return titles + labels + errors + heads


def publication_figure(grid: PictureGrid, style: Style = PAPER) -> Figure:
    """For the paper: pictures as rasters, text as text."""
    with settings(style):
        line = 1.35 * style.font_size / 72  # inches
        left, right = 7.6 * line, 4.0 * line
        bare = grid_layout(grid, style.theme).mosaic.shape
        unit = min((style.width - left - right) / bare[1], 0.013)  # inches; a picture at most half an inch
        layout = grid_layout(grid, style.theme, 1.3 * line / unit)
        high, wide = layout.mosaic.shape[:2]
        figure = blank_figure(style, high * unit)
        axes = figure.add_axes((left / style.width, 0, wide * unit / style.width, 1))
        axes.imshow(layout.mosaic, extent=(0, wide, high, 0), interpolation="nearest", aspect="auto")
        axes.axis("off")
        small = {"fontsize": style.font_size - 1, "va": "center"}
        for number, (x, y, text) in enumerate(layout.titles):
            letter = f"{'abcd'[number]}  " if style.panel_letters and len(layout.titles) > 1 else ""
            axes.text(x, y, f"{letter}{text}", fontsize=style.font_size + 0.5, fontweight="bold", va="center")
        for x, y, text in layout.labels:
            axes.text(x, y, text, ha="right", **small)
        for x, y, text in layout.errors:
            axes.text(x, y, text, **small)
        for _, y, _ in layout.titles:
            axes.text(
                layout.errors[0][0],
                y,
                _ERRORS,
                color=style.theme.muted,
                fontsize=style.font_size - 2,
                va="center",
            )
        axes.set(xlim=(0, wide), ylim=(high, 0))
        return figure
