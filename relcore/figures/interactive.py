"""Interactive figures: Plotly, for the app's pages and for HTML that works offline.

Every figure carries its alt text in ``figure.layout.meta["alt"]``. Names and ids are escaped, because Plotly reads its texts as
HTML and would show nothing for a word such as ``<unk>``.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from textwrap import wrap

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from relcore.figures.marks import Group, anchor_numbers, grid_shape, groups, point_size, row_colors, scene_alt, star_size
from relcore.figures.palette import DIVERGING, LIGHT, SEQUENTIAL, Theme
from relcore.figures.scene import Pane, Scene
from relcore.figures.tables import (
    condition,
    histogram_table,
    score_label,
    score_places,
    score_range,
    score_table,
    spectrum_table,
)

_GAP = 0.035  # between panes, in shares of the plot
_TITLE = 46  # pixels above a pane for its title and its note


def relscope_template(theme: Theme = LIGHT) -> go.layout.Template:
    """The look of every figure: quiet axes, the theme's colours, a font that needs no network."""
    axis = {
        "gridcolor": theme.grid,
        "linecolor": theme.border,
        "zerolinecolor": theme.border,
        "tickcolor": theme.border,
        "tickfont": {"color": theme.muted, "size": 12},
        "title": {"font": {"color": theme.muted, "size": 13}, "standoff": 8},
        "automargin": True,
    }
    scene_axis = {"backgroundcolor": theme.surface, "gridcolor": theme.grid, "linecolor": theme.border, "color": theme.muted}
    return go.layout.Template(
        layout={
            "font": {"family": theme.font, "size": 13, "color": theme.text},
            "title": {"font": {"size": 16, "color": theme.text, "weight": 600}, "x": 0, "xref": "paper", "xanchor": "left"},
            "paper_bgcolor": theme.surface,
            "plot_bgcolor": theme.surface,
            "colorway": theme.category_colors(20),
            "colorscale": {"sequential": SEQUENTIAL, "diverging": DIVERGING},
            "xaxis": axis,
            "yaxis": axis,
            "scene": dict.fromkeys(("xaxis", "yaxis", "zaxis"), scene_axis),
            "legend": {"orientation": "h", "x": 0, "y": 0, "yanchor": "top", "yref": "container", "itemsizing": "constant"},
            "hoverlabel": {
                "bgcolor": theme.surface,
                "bordercolor": theme.border,
                "font": {"family": theme.font, "color": theme.text},
            },
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": theme.border, "activecolor": theme.accent},
            "margin": {"l": 64, "r": 24, "t": 56, "b": 56},
            "dragmode": "pan",
        }
    )


def panes_figure(scene: Scene, theme: Theme = LIGHT, width: int | None = None, height: int | None = None) -> go.Figure:
    """The scene's panes in a 1 × 1, 1 × 2 or 2 × 2 grid: WebGL points in 2-D, turnable clouds in 3-D.

    One legend for all panes: a click hides a category everywhere. Axes bear no numbers, as only distances mean something, and
    both have the same scale. Without `height`, a row of panes is 420 pixels.
    """
    rows, _ = grid_shape(len(scene.panes))
    height = height or 420 * rows + 60
    top, bottom = _TITLE + 4, 52 if scene.category_names else 12
    figure = go.Figure()
    figure.update_layout(template=relscope_template(theme), width=width, height=height, meta={"alt": scene_alt(scene)})
    figure.update_layout(margin={"l": 8, "r": 8, "t": top, "b": bottom}, hovermode="closest")
    categories, ids = groups(scene, theme), _hovers(scene)
    for i, pane in enumerate(scene.panes):
        x, y = _domain(i, len(scene.panes), _TITLE / (height - top - bottom))
        draw = _draw_cloud if pane.coordinates.shape[1] == 3 else _draw_plane
        draw(figure, pane, scene, i, {"x": x, "y": y}, categories, ids, theme)
        _label(figure, pane, x[0], y[1], theme)
    figure.update_layout(legend={"y": 0.01, "yanchor": "bottom"})
    return figure


def score_bars_figure(table: pd.DataFrame, theme: Theme = LIGHT, title: str = "How alike are the two spaces?") -> go.Figure:
    """Bars of scores, one group a metric, one colour a form; behind each, in grey, what chance gives (`tables.score_table`)."""
    table, width = score_places(score_table(table))
    forms, metrics = list(dict.fromkeys(table.form)), list(dict.fromkeys(table.metric))
    has_interval = {"low", "high"} <= set(table.columns)
    figure = go.Figure()
    null = table.dropna(subset=["null_low", "null_high"])
    if len(null):
        figure.add_bar(
            x=null.x,
            base=null.null_low,
            y=null.null_high - null.null_low,
            width=width,
            name="null, 95 % band",
            marker={"color": theme.null, "line": {"color": theme.muted, "width": 1}},
            legendrank=2000,
            customdata=null[["null_low", "null_high"]],
            hovertemplate="null, 95 % band: %{customdata[0]:.4f} to %{customdata[1]:.4f}<extra></extra>",
        )
    for form, color in zip(forms, theme.category_colors(len(forms)), strict=True):
        part = table[table.form == form]
        interval = (
            {"array": part.high - part.score, "arrayminus": part.score - part.low, "thickness": 1, "width": 3}
            if has_interval
            else None
        )
        figure.add_bar(
            x=part.x,
            y=part.score,
            width=width * 0.72,
            name=plain_text(form),
            marker={"color": color},
            text=[score_label(score) for score in part.score],
            textposition="outside",
            cliponaxis=False,
            error_y=interval,
            customdata=[plain_text(m) for m in part.metric],
            hovertemplate="%{customdata}<br>%{fullData.name}: %{y:.4f}<extra></extra>",
        )
    alt = "; ".join(f"{row.metric}, {row.form}: {row.score:.3f}" for row in table.itertuples())
    _chart(figure, theme, title, "metric", "score (1 = identical)", f"Bar chart. {title} {alt}.")
    figure.update_layout(barmode="overlay", uniformtext={"minsize": 9, "mode": "show"})
    figure.update_xaxes(tickvals=list(range(len(metrics))), ticktext=[plain_text(m) for m in metrics], showgrid=False)
    figure.update_yaxes(range=score_range(table))
    return figure


def histogram_figure(
    values_by_name: Mapping[str, np.ndarray],
    x_title: str,
    theme: Theme = LIGHT,
    title: str = "Distribution",
    bins: int | None = None,
) -> go.Figure:
    """Distributions as filled outlines in common bins; `x_title` with its unit. See `tables.histogram_table`."""
    table = histogram_table(values_by_name, bins)
    names = list(dict.fromkeys(table.name))
    figure = go.Figure()
    for name, color in zip(names, theme.category_colors(len(names)), strict=True):
        part = table[table.name == name]
        edges = np.repeat([*part.left, part.right.iloc[-1]], 2)
        percent = np.concatenate([[0], np.repeat(part.percent, 2), [0]])
        label = plain_text(name)
        figure.add_scatter(
            x=edges,
            y=percent,
            mode="lines",
            name=label,
            line={"color": color, "width": 2},
            fill="tozeroy",
            fillcolor=_translucent(color, 0.15),
            hovertemplate="%{x:.4g}: %{y:.2f} %<extra>" + label + "</extra>",
        )
    counts = ", ".join(f"{name} (n = {table[table.name == name]['count'].sum():,})" for name in names)
    _chart(figure, theme, title, x_title, "share of rows (%)", f"Histogram. {title}: {x_title} of {counts}.")
    figure.update_yaxes(rangemode="tozero")
    return figure


def spectrum_figure(
    singular_values_by_name: Mapping[str, np.ndarray], theme: Theme = LIGHT, title: str = "Spectrum of the anchors"
) -> go.Figure:
    """Singular values as shares of the largest, logarithmic; the legend says the condition (`tables.spectrum_table`)."""
    table = spectrum_table(singular_values_by_name)
    names = list(dict.fromkeys(table.name))
    figure, alt = go.Figure(), []
    for name, color in zip(names, theme.category_colors(len(names)), strict=True):
        part = table[table.name == name]
        alt.append(f"{name}: {len(part)} values, {condition(part)}")
        shown = part[part.relative > 0]
        figure.add_scatter(
            x=shown.component,
            y=shown.relative,
            mode="lines+markers",
            line={"color": color, "width": 2},
            marker={"size": 4},
            name=f"{plain_text(name)} · {condition(part)}",
            customdata=shown.singular_value,
            hovertemplate="component %{x}: %{y:.3g} of the largest (%{customdata:.4g})<extra>%{fullData.name}</extra>",
        )
    _chart(figure, theme, title, "component (rank)", "singular value / largest", f"Line chart. {title}. {'; '.join(alt)}.")
    figure.update_yaxes(type="log", exponentformat="power", dtick=1)
    return figure


def _chart(figure: go.Figure, theme: Theme, title: str, x_title: str, y_title: str, alt: str) -> None:
    figure.update_layout(template=relscope_template(theme), meta={"alt": alt}, showlegend=True, height=380, margin={"b": 96})
    figure.update_layout(title={"text": plain_text(title)}, legend={"y": 0.01, "yanchor": "bottom"})
    figure.update_xaxes(title={"text": plain_text(x_title)})
    figure.update_yaxes(title={"text": plain_text(y_title)})


def _domain(i: int, n_panes: int, title: float) -> tuple[list[float], list[float]]:
    """The room of pane `i` in shares of the plot, `title` left free above every row but the first, which has the margin."""
    rows, columns = grid_shape(n_panes)
    row, column = divmod(i, columns)
    gap = _GAP / 2
    wide, high = (1 - gap * (columns - 1)) / columns, (1 - title * (rows - 1)) / rows
    left, top = column * (wide + gap), 1 - row * (high + title)
    return [left, min(left + wide, 1)], [max(top - high, 0), top]


def _draw_plane(
    figure: go.Figure, pane: Pane, scene: Scene, i: int, domain: dict, categories: list[Group], ids: np.ndarray, theme: Theme
) -> None:
    number = "" if i == 0 else str(i + 1)
    plain = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "", "showline": True, "mirror": True}
    figure.update_layout(
        {
            f"xaxis{number}": {**plain, "domain": domain["x"], "anchor": f"y{number}"},
            f"yaxis{number}": {**plain, "domain": domain["y"], "anchor": f"x{number}", "scaleanchor": f"x{number}"},
        }
    )
    on = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    points = {"size": point_size(len(scene)), "opacity": 0.75}
    for order, group in enumerate(categories):
        x, y = pane.coordinates[group.rows].T
        figure.add_trace(
            go.Scattergl(
                x=x, y=y, mode="markers", marker={**points, "color": group.color}, **on, **_entry(group, order, i, ids)
            )
        )
    if not len(scene.anchors):
        return
    x, y = pane.coordinates[scene.anchors].T
    size, hover = star_size(len(scene.anchors)), _anchor_hover(scene, ids)
    ring = {
        "symbol": "circle",
        "size": size * 1.45,
        "color": theme.surface,
        "opacity": 0.9,
        "line": {"color": theme.text, "width": 1.4},
    }
    star = {
        "symbol": "star",
        "size": size,
        "color": row_colors(scene, theme)[scene.anchors],
        "line": {"color": theme.text, "width": 0.6},
    }
    # Scattergl too: the browser paints WebGL above all of SVG, so stars in SVG would lie beneath the points.
    figure.add_scattergl(x=x, y=y, mode="markers", marker=ring, showlegend=False, hoverinfo="skip", **on)
    text = {
        "text": anchor_numbers(scene),
        "textposition": "top right",
        "textfont": {"size": 12, "color": theme.text, "weight": "bold"},
    }
    figure.add_scattergl(x=x, y=y, mode="markers+text", marker=star, showlegend=False, **text, **hover, **on)


def _draw_cloud(
    figure: go.Figure, pane: Pane, scene: Scene, i: int, domain: dict, categories: list[Group], ids: np.ndarray, theme: Theme
) -> None:
    name = "scene" if i == 0 else f"scene{i + 1}"
    plain = {"showticklabels": False, "title": {"text": ""}, "showspikes": False, "zeroline": False}
    figure.update_layout({name: {"domain": domain, "aspectmode": "data", **{f"{axis}axis": plain for axis in "xyz"}}})
    points = {"size": point_size(len(scene)) * 0.7, "opacity": 0.8}
    for order, group in enumerate(categories):
        x, y, z = pane.coordinates[group.rows].T
        marker = {**points, "color": group.color}
        figure.add_scatter3d(x=x, y=y, z=z, mode="markers", marker=marker, scene=name, **_entry(group, order, i, ids))
    if not len(scene.anchors):
        return
    x, y, z = pane.coordinates[scene.anchors].T
    size = star_size(len(scene.anchors))
    # Plotly has no star in 3-D: a diamond in a ring is its stand-in there.
    ring = {"symbol": "circle-open", "size": size, "color": theme.text}
    star = {
        "symbol": "diamond",
        "size": size * 0.5,
        "color": row_colors(scene, theme)[scene.anchors],
        "line": {"color": theme.text, "width": 2},
    }
    figure.add_scatter3d(x=x, y=y, z=z, mode="markers", marker=ring, scene=name, showlegend=False, hoverinfo="skip")
    text = {"text": anchor_numbers(scene), "textposition": "top center", "textfont": {"size": 12, "color": theme.text}}
    figure.add_scatter3d(
        x=x, y=y, z=z, mode="markers+text", marker=star, scene=name, showlegend=False, **text, **_anchor_hover(scene, ids)
    )


def _hovers(scene: Scene) -> np.ndarray:
    """What a hover says of each row, (n,) of HTML: its id, its text in three lines at most, its note."""
    hovers = [plain_text(identifier) for identifier in scene.ids]
    if scene.texts is not None:
        lines = ("<br>".join(map(plain_text, wrap(text, 60, max_lines=3, placeholder=" …"))) for text in scene.texts)
        hovers = [f"{shown}<br>{identifier}" if shown else identifier for shown, identifier in zip(lines, hovers, strict=True)]
    if scene.notes is not None:
        notes = map(plain_text, scene.notes)
        hovers = [f"{hover}<br>{note}" if note else hover for hover, note in zip(hovers, notes, strict=True)]
    return np.array(hovers, dtype=object)


def _entry(group: Group, order: int, i: int, ids: np.ndarray) -> dict:
    """What a trace of points has beside its places: one legend entry for all panes, and what a hover says."""
    name = plain_text(group.name)
    hover = {"hovertext": ids[group.rows], "hovertemplate": "%{hovertext}<extra>" + (name if group.named else "") + "</extra>"}
    return {"name": name, "legendgroup": str(order), "showlegend": group.named and i == 0, **hover}


def _anchor_hover(scene: Scene, ids: np.ndarray) -> dict:
    texts = [f"{ids[row]}<br>anchor {number}" for number, row in enumerate(scene.anchors, start=1)]
    return {"hovertext": texts, "hovertemplate": "%{hovertext}<extra></extra>"}


def _label(figure: go.Figure, pane: Pane, x: float, y: float, theme: Theme) -> None:
    place = {"xref": "paper", "yref": "paper", "x": x, "y": y, "xanchor": "left", "yanchor": "bottom"}
    common = place | {"showarrow": False, "align": "left"}
    title = {"text": plain_text(pane.title), "font": {"size": 15, "weight": 600}, "yshift": 20 if pane.note else 4}
    figure.add_annotation(**common, **title)
    if pane.note:
        figure.add_annotation(**common, text=plain_text(pane.note), font={"size": 12, "color": theme.muted}, yshift=3)


def _translucent(color: str, alpha: float) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def plain_text(text: object) -> str:
    """A text that Plotly shows as it is: neither HTML nor, between dollar signs, mathematics."""
    return escape(str(text), quote=False).replace("$", "&#36;")
