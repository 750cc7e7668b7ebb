"""The heat map of pairs for the screen: Plotly, each cell with its number, chance beneath it, all the rest on hover."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from relcore.figures.heat_cells import color_bar, hatch, pick_cells, picked_by_cell, plotly_ramp
from relcore.figures.interactive import plain_text, relscope_template
from relcore.figures.pair_cells import PairCells, cell_color, text_on
from relcore.figures.palette import LIGHT, Theme

_LONGEST_NAME = 36
_HATCHES = 11  # lines through a cell without a score


def pairs_figure(
    table: pd.DataFrame, title: str, theme: Theme = LIGHT, height: int | None = None, marked: tuple[str, str] | None = None
) -> go.Figure:
    """Every space with every other (`pair_cells.PairCells.of`): the deeper, the more alike; rows named, columns numbered.

    Cells without a score are hatched and say why on hover. Above the cells lies one invisible point for each, since Plotly
    lets no cell of a heat map be picked: its ``customdata`` holds the two names. `marked` frames a pair.
    """
    cells = PairCells.of(table)
    n = len(cells)
    figure = go.Figure()
    off_diagonal = np.where(np.eye(n, dtype=bool), np.nan, cells.scores)
    places = {"x": list(range(n)), "y": list(range(n)), "hoverinfo": "skip", "xgap": 2, "ygap": 2}
    low, high = cells.scale
    bar = color_bar(title, theme, {"len": 1}, {})
    figure.add_heatmap(z=off_diagonal, zmin=low, zmax=high, colorscale=plotly_ramp(theme), colorbar=bar, **places)
    itself = np.where(np.eye(n, dtype=bool) & ~np.isnan(cells.scores), 0.0, np.nan)
    figure.add_heatmap(z=itself, colorscale=[[0, theme.grid], [1, theme.grid]], showscale=False, **places)
    for cell in cells.missing:
        hatch(figure, [cell], theme, _HATCHES, showlegend=False)
    _number(figure, cells, theme)
    pick_cells(
        figure,
        (n, n),
        lambda i, j: [cells.names[i], cells.names[j]],
        lambda i, j: "<br>".join(map(plain_text, cells.explain(i, j))),
        showlegend=False,
    )
    if marked and set(marked) <= set(cells.names):
        i, j = map(cells.names.index, marked)
        for row, column in {(i, j), (j, i)}:
            _frame(figure, row, column, theme)
    names = [name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…" for name in cells.names]
    axis = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "range": [-0.5, n - 0.5], "fixedrange": True}
    label = {"color": theme.text, "size": 13}
    rows = [f"{plain_text(name)}  <b>{number}</b>" for number, name in enumerate(names, start=1)]
    figure.update_xaxes(
        **axis, side="top", tickvals=places["x"], ticktext=[f"<b>{i + 1}</b>" for i in range(n)], tickfont=label
    )
    figure.update_yaxes(**axis | {"range": [n - 0.5, -0.5]}, tickvals=places["y"], ticktext=rows, tickfont=label)
    figure.update_layout(
        template=relscope_template(theme),
        height=height or 42 + n * max(34, min(84, 400 // n)),
        margin={"l": 8, "r": 8, "t": 34, "b": 8},
        meta={"alt": cells.alt(title)},
        **picked_by_cell(),
    )
    return figure


def _number(figure: go.Figure, cells: PairCells, theme: Theme) -> None:
    for i in range(len(cells)):
        for j in range(len(cells)):
            text, chance = cells.number(i, j), cells.chance(i, j)
            if not text:
                continue
            ink = theme.muted if i == j else text_on(cell_color(cells.scores[i, j], cells.scale, theme))
            small = f'<br><span style="font-size: 11px">{chance}</span>' if chance else ""
            font = {"color": ink, "size": 15 if len(cells) <= 8 else 12}
            figure.add_annotation(x=j, y=i, text=text + small, showarrow=False, font=font)


def _frame(figure: go.Figure, row: int, column: int, theme: Theme) -> None:
    corners = {"x0": column - 0.485, "x1": column + 0.485, "y0": row - 0.475, "y1": row + 0.475}
    figure.add_shape(type="rect", **corners, line={"color": theme.text, "width": 2}, fillcolor="rgba(0,0,0,0)")
