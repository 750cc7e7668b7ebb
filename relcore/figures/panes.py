"""The linked panes as a Plotly figure: for HTML that works offline, and for three dimensions on the page."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go

from relcore.charts.coloring import Coloring, ColorScale, told
from relcore.charts.scene import Pane, Scene
from relcore.figures.interactive import plain_text, relscope_template
from relcore.figures.marks import (
    LegendGroup,
    drawn_anchors,
    grid_shape,
    groups,
    map_names,
    places_of,
    point_size,
    row_colors,
    scales_of,
    scene_alt,
    sides,
    star_opacity,
    star_size,
)
from relcore.figures.style import LIGHT, Theme, mixed

# Rows coloured by a number in a Plotly figure: their markers, what a hover says, and a colour bar beneath the
# panes.

_ROOM = 64  # pixels beneath the panes for a bar with its ticks and its title
_LEGEND = 30  # and for a line of the legend under it


@dataclass(frozen=True)
class NumberedRows:
    """The rows of a pane that have a number, and their colours; shares 0 … 1 of the scale."""

    rows: np.ndarray
    coloring: Coloring

    @property
    def marker(self) -> dict:
        """Colours by share, as a logarithmic scale has no other way in Plotly."""
        return {
            "color": self.scale.shares(self.coloring.values[self.rows]),
            "cmin": 0,
            "cmax": 1,
            "colorscale": ramp_of(self.scale),
        }

    def hover(self, ids: np.ndarray) -> dict:
        """What a hover says, without an entry in the legend."""
        title = plain_text(self.scale.title)
        texts = [f"{ids[row]}<br>{title} {told(self.coloring.values[row])}" for row in self.rows]
        return {"hovertext": texts, "hovertemplate": "%{hovertext}<extra></extra>", "showlegend": False}

    @property
    def scale(self) -> ColorScale:
        return self.coloring.scale


def numbered_rows(scene: Scene, pane: int) -> NumberedRows | None:
    """The rows on the scale of this pane; None where it is coloured by categories, or no row has a number."""
    coloring = scene.coloring(pane)
    rows = np.flatnonzero((np.asarray(coloring.categories) >= 0) & scene.shown) if coloring.scale else ()
    return NumberedRows(rows, coloring) if len(rows) else None


def bar_room(scene: Scene) -> int:
    """Pixels beneath the panes for the colour bar and the legend; 0 without a scale."""
    return _ROOM + 12 + _legend(scene) if scales_of(scene) else 0


def _legend(scene: Scene) -> int:
    """Pixels for the line of the legend; 0 where no row is of a class."""
    classes = (not one.scale or bool((np.asarray(one.categories) < 0).any()) for one in scene.colorings())
    return _LEGEND if any(classes) else 0


def draw_color_bars(figure: go.Figure, scene: Scene, theme: Theme, height: int) -> None:
    """A horizontal colour bar for the scale of the panes."""
    scales = scales_of(scene)
    for place, (title, scale) in enumerate(scales):
        ticks = scale.ticks()
        bar = {
            "orientation": "h",
            "thickness": 10,
            "len": min(0.9 / len(scales), 0.5),
            "x": (place + 0.5) / len(scales),
            "xanchor": "center",
            "y": (26 + _legend(scene)) / height,
            "yref": "container",
            "yanchor": "bottom",
            "ypad": 0,
            "outlinewidth": 0,
            "tickvals": [share for share, _ in ticks],
            "ticktext": [text for _, text in ticks],
            "tickfont": {"color": theme.muted, "size": 12},
            "title": {"text": plain_text(title), "side": "top", "font": {"size": 13, "color": theme.text}},
        }
        marker = {
            "color": [0],
            "cmin": 0,
            "cmax": 1,
            "colorscale": ramp_of(scale),
            "showscale": True,
            "colorbar": bar,
        }
        figure.add_scattergl(x=[None], y=[None], marker=marker, showlegend=False, hoverinfo="skip")


def ramp_of(scale: ColorScale) -> list[list]:
    """The scale's colours as Plotly wants them."""
    colors = scale.colors
    return [[i / (len(colors) - 1), color] for i, color in enumerate(colors)]


_GAP = 0.035  # between panes, in shares of the plot
_USUAL_WIDTH = 1000  # pixels, where the figure is as wide as the window
_LETTER = 7.8  # pixels that a bold letter of size 13 takes
_TITLE = 46  # pixels above a pane for its title and its note


def panes_figure(
    scene: Scene, theme: Theme = LIGHT, width: int | None = None, height: int | None = None
) -> go.Figure:
    """The scene's panes in a 1 × 1, 1 × 2 or 2 × 2 grid: WebGL points in 2-D, turnable clouds in 3-D.

    One legend for all panes: a click hides a category everywhere. Axes bear no numbers, as only distances
    mean something, and both have the same scale. Without `height`, a row of panes is 420 pixels.
    """
    rows, _ = grid_shape(len(scene.panes))
    height = height or 420 * rows + 60
    top, bottom = _TITLE + 4, bar_room(scene) or (52 if scene.category_names else 12)
    figure = go.Figure()
    figure.update_layout(
        template=relscope_template(theme), width=width, height=height, meta={"alt": scene_alt(scene)}
    )
    figure.update_layout(margin={"l": 8, "r": 8, "t": top, "b": bottom}, hovermode="closest")
    ids = _hovers(scene)
    for i, pane in enumerate(scene.panes):
        x, y = _domain(i, len(scene.panes), _TITLE / (height - top - bottom))
        draw = _draw_cloud if pane.coordinates.shape[1] == 3 else _draw_plane
        categories = groups(scene, theme, i)
        draw(figure, pane, scene, i, {"x": x, "y": y}, categories, ids, theme)
        _write_names(
            figure,
            scene,
            i,
            theme,
            ((width or _USUAL_WIDTH) * (x[1] - x[0]), (height - top - bottom) * (y[1] - y[0])),
        )
        _label(figure, pane, x[0], y[1], theme)
    figure.update_layout(legend={"y": 0.01, "yanchor": "bottom"})
    if scene.second:
        _name_legends(figure, scene)
    draw_color_bars(figure, scene, theme, height)
    return figure


def _domain(i: int, n_panes: int, title: float) -> tuple[list[float], list[float]]:
    """The room of pane `i` in shares of the plot, `title` left free above every row but the first, which
    has the margin.
    """
    rows, columns = grid_shape(n_panes)
    row, column = divmod(i, columns)
    gap = _GAP / 2
    wide, high = (1 - gap * (columns - 1)) / columns, (1 - title * (rows - 1)) / rows
    left, top = column * (wide + gap), 1 - row * (high + title)
    return [left, min(left + wide, 1)], [max(top - high, 0), top]


def _draw_plane(
    figure: go.Figure,
    pane: Pane,
    scene: Scene,
    i: int,
    domain: dict,
    categories: list[LegendGroup],
    ids: np.ndarray,
    theme: Theme,
) -> None:
    number = "" if i == 0 else str(i + 1)
    plain = {
        "showgrid": False,
        "zeroline": False,
        "showticklabels": False,
        "ticks": "",
        "showline": True,
        "mirror": True,
    }
    figure.update_layout(
        {
            f"xaxis{number}": {
                **plain,
                **_range(pane, scene, 0),
                "domain": domain["x"],
                "anchor": f"y{number}",
            },
            f"yaxis{number}": {
                **plain,
                **_range(pane, scene, 1),
                "domain": domain["y"],
                "anchor": f"x{number}",
                "scaleanchor": f"x{number}",
            },
        }
    )
    on = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    points = {"size": point_size(len(scene)), "opacity": 0.75}
    for order, group in enumerate(categories):
        x, y = pane.coordinates[group.rows].T
        figure.add_trace(
            go.Scattergl(
                x=x,
                y=y,
                mode="markers",
                marker={**points, "color": group.color},
                **on,
                **_entry(group, order, i, ids, scene),
            )
        )
    if on_scale := numbered_rows(scene, i):
        x, y = pane.coordinates[on_scale.rows].T
        figure.add_scattergl(
            x=x, y=y, mode="markers", marker=points | on_scale.marker, **on, **on_scale.hover(ids)
        )
    anchors, numbers = drawn_anchors(scene)
    if not len(anchors):
        return
    x, y = pane.coordinates[anchors].T
    opacity = star_opacity(len(scene.anchors)) * scene.stars.opacity
    size, hover = star_size(len(scene.anchors)) * scene.stars.size, _anchor_hover(scene, ids)
    ring = {
        "symbol": "circle",
        "size": size * 1.45,
        "color": theme.surface,
        "opacity": 0.9 * opacity,
        "line": {"width": 0},
    }
    star = {
        "symbol": "star",
        "size": size,
        "opacity": opacity,
        "color": row_colors(scene, theme, i)[anchors],
        "line": {"color": theme.text, "width": max(size / 13, 0.4)},
    }
    # Scattergl too: the browser paints WebGL above all of SVG, so stars in SVG would lie beneath the points.
    figure.add_scattergl(x=x, y=y, mode="markers", marker=ring, showlegend=False, hoverinfo="skip", **on)
    text = {
        "text": numbers,
        "textposition": "top right",
        "textfont": {"size": 12, "color": theme.text, "weight": "bold"},
    }
    figure.add_scattergl(x=x, y=y, mode="markers+text", marker=star, showlegend=False, **text, **hover, **on)


def _write_names(figure: go.Figure, scene: Scene, i: int, theme: Theme, size: tuple[float, float]) -> None:
    """The names of the groups, as annotations; `size` is the pane's in pixels, about."""
    pane, suffix = scene.panes[i], "" if i == 0 else str(i + 1)
    places = places_of(pane.coordinates, scene.turn, size[0] / size[1])
    halo = f"text-shadow: 0 0 3px {theme.surface}, 0 0 3px {theme.surface}, 0 0 3px {theme.surface}"
    notes = []
    for name in map_names(scene, i, theme, places, (_LETTER / size[0], 15 / size[1])):
        text = f'<span style="{halo}"><b>{plain_text(name.text)}</b></span>'
        look = {
            "text": text,
            "showarrow": False,
            "font": {"size": 13, "color": mixed(name.color, theme.text)},
        }
        at = dict(zip("xyz", map(float, pane.coordinates[name.row]), strict=False))
        notes.append({**look, **at, "yshift": 15 * name.lines, "xshift": round(name.shift * size[0])})
    if pane.coordinates.shape[1] == 3:
        figure.layout[f"scene{suffix}"].annotations = notes
        return
    for note in notes:
        figure.add_annotation(**note, xref=f"x{suffix}", yref=f"y{suffix}")


def _range(pane: Pane, scene: Scene, axis: int) -> dict:
    """The range of all rows where some are hidden, so that the others stay where they were."""
    if scene.shown.all():
        return {}
    low, high = pane.coordinates[:, axis].min(), pane.coordinates[:, axis].max()
    edge = 0.06 * ((high - low) or 1)
    return {"range": [float(low - edge), float(high + edge)]}


def _draw_cloud(
    figure: go.Figure,
    pane: Pane,
    scene: Scene,
    i: int,
    domain: dict,
    categories: list[LegendGroup],
    ids: np.ndarray,
    theme: Theme,
) -> None:
    name = "scene" if i == 0 else f"scene{i + 1}"
    plain = {"showticklabels": False, "title": {"text": ""}, "showspikes": False, "zeroline": False}
    axes = {f"{axis}axis": plain for axis in "xyz"}
    figure.update_layout({name: {"domain": domain, "aspectmode": "data", **axes, **_camera(scene)}})
    points = {"size": point_size(len(scene)) * 0.7, "opacity": 0.8}
    for order, group in enumerate(categories):
        x, y, z = pane.coordinates[group.rows].T
        marker = {**points, "color": group.color}
        figure.add_scatter3d(
            x=x, y=y, z=z, mode="markers", marker=marker, scene=name, **_entry(group, order, i, ids, scene)
        )
    if on_scale := numbered_rows(scene, i):
        x, y, z = pane.coordinates[on_scale.rows].T
        marker = points | on_scale.marker
        figure.add_scatter3d(x=x, y=y, z=z, mode="markers", marker=marker, scene=name, **on_scale.hover(ids))
    anchors, numbers = drawn_anchors(scene)
    if not len(anchors):
        return
    x, y, z = pane.coordinates[anchors].T
    size = star_size(len(scene.anchors)) * scene.stars.size
    # Plotly has no star in 3-D: a diamond in a ring is its stand-in there.
    ring = {"symbol": "circle-open", "size": size, "color": theme.text}
    star = {
        "symbol": "diamond",
        "size": size * 0.5,
        "color": row_colors(scene, theme, i)[anchors],
        "line": {"color": theme.text, "width": 2},
    }
    figure.add_scatter3d(
        x=x, y=y, z=z, mode="markers", marker=ring, scene=name, showlegend=False, hoverinfo="skip"
    )
    text = {"text": numbers, "textposition": "top center", "textfont": {"size": 12, "color": theme.text}}
    figure.add_scatter3d(
        x=x,
        y=y,
        z=z,
        mode="markers+text",
        marker=star,
        scene=name,
        showlegend=False,
        **text,
        **_anchor_hover(scene, ids),
    )


def _camera(scene: Scene) -> dict:
    """The turn of the screen, which has no perspective."""
    if scene.turn is None:
        return {}
    _, up, viewer = (dict(zip("xyz", row, strict=True)) for row in np.reshape(scene.turn, (3, 3)).tolist())
    eye = {axis: 2.0 * value for axis, value in viewer.items()}
    return {"camera": {"eye": eye, "up": up, "projection": {"type": "orthographic"}}}


def _hovers(scene: Scene) -> np.ndarray:
    """What a hover says of each row, (n,) of HTML: its id, its text in three lines at most, its note."""
    hovers = [plain_text(identifier) for identifier in scene.ids]
    if scene.texts is not None:
        lines = (
            "<br>".join(map(plain_text, wrap(text, 60, max_lines=3, placeholder=" …")))
            for text in scene.texts
        )
        hovers = [
            f"{shown}<br>{identifier}" if shown else identifier
            for shown, identifier in zip(lines, hovers, strict=True)
        ]
    if scene.notes is not None:
        notes = map(plain_text, scene.notes)
        hovers = [f"{hover}<br>{note}" if note else hover for hover, note in zip(hovers, notes, strict=True)]
    return np.array(hovers, dtype=object)


def _entry(group: LegendGroup, order: int, i: int, ids: np.ndarray, scene: Scene) -> dict:
    """What a trace of points has beside its places: one legend entry for all panes of a colouring, and
    what a hover says.
    """
    name = plain_text(group.name)
    hover = {
        "hovertext": ids[group.rows],
        "hovertemplate": "%{hovertext}<extra>" + (name if group.named else "") + "</extra>",
    }
    second = scene.coloring(i) is scene.second
    first_pane = scene.second_panes[0] if second else 0
    legend = (
        {"legend": "legend2", "legendgroup": f"second {order}"} if second else {"legendgroup": str(order)}
    )
    return {"name": name, **legend, "showlegend": group.named and i == first_pane, **hover}


def _name_legends(figure: go.Figure, scene: Scene) -> None:
    """Two legends side by side, each with the name of its panes."""
    for place, (name, side) in enumerate(zip(("legend", "legend2"), sides(scene), strict=True)):
        look = {
            "orientation": "h",
            "x": 0.5 * place,
            "y": 0.01,
            "yanchor": "bottom",
            "yref": "container",
            "entrywidth": 0,
        }
        figure.update_layout(
            {name: look | {"itemsizing": "constant", "title": {"text": side}, "maxheight": 60}}
        )


def _anchor_hover(scene: Scene, ids: np.ndarray) -> dict:
    numbered = enumerate(scene.anchors, start=1)
    texts = [f"{ids[row]}<br>anchor {number}" for number, row in numbered if scene.shown[row]]
    return {"hovertext": texts, "hovertemplate": "%{hovertext}<extra></extra>"}


def _label(figure: go.Figure, pane: Pane, x: float, y: float, theme: Theme) -> None:
    place = {"xref": "paper", "yref": "paper", "x": x, "y": y, "xanchor": "left", "yanchor": "bottom"}
    common = place | {"showarrow": False, "align": "left"}
    title = {
        "text": plain_text(pane.title),
        "font": {"size": 15, "weight": 600},
        "yshift": 20 if pane.note else 4,
    }
    figure.add_annotation(**common, **title)
    if pane.note:
        figure.add_annotation(
            **common, text=plain_text(pane.note), font={"size": 12, "color": theme.muted}, yshift=3
        )
