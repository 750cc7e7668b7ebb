"""Training curves: loss and held-out accuracy by epoch, one line an encoder, on screen, on paper and as
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.figures.export import Exportable
from relcore.figures.style import COLUMN, LIGHT, PAPER, Style, Theme

if TYPE_CHECKING:  # each library is loaded on demand
    import plotly.graph_objects as go
    from matplotlib.figure import Figure

Curves = Mapping[str, Mapping[str, Sequence[float]]]  # {encoder: {"loss": by epoch, "accuracy": by epoch}}
_PANELS = {"loss": "training loss", "accuracy": "held-out accuracy"}


def curve_of(training: Mapping[str, Any]) -> dict[str, list[float]]:
    """Loss and accuracy by epoch from what an encoding's metadata tell of its training; empty where it had
    no epochs.
    """
    names = {"loss": ("loss", "losses"), "accuracy": ("held_out_accuracy", "accuracies")}
    found = {
        name: next((training[one] for one in known if one in training), None) for name, known in names.items()
    }
    return {name: list(values) for name, values in found.items() if values is not None}


def training_table(curves: Curves) -> pd.DataFrame:
    """Columns name, epoch (from 1), loss, accuracy; NaN where one was not measured.

    Raises
    ------
    SpaceError
        No curve, or one without an epoch.
    """
    parts = [
        pd.DataFrame(
            {column: pd.Series(list(curve.get(column, ())), dtype=float) for column in _PANELS}
        ).assign(name=str(name))
        for name, curve in curves.items()
    ]
    if not parts or not all(len(part) for part in parts):
        raise SpaceError(
            "training: expected the loss of one epoch or more, got none; only trained encoders have a curve"
        )
    for part in parts:
        part["epoch"] = np.arange(1, len(part) + 1)
    return pd.concat(parts, ignore_index=True)[["name", "epoch", *_PANELS]]


def training_exportable(
    curves: Curves, recipe: Mapping[str, Any] | None = None, name: str = "training"
) -> Exportable:
    """Both curves of each encoder, the loss beside the accuracy."""
    return Exportable(
        name,
        interactive=lambda theme: training_figure(curves, theme),
        publication=lambda style: printed_training_figure(curves, style),
        table=lambda: training_table(curves),
        recipe=recipe,
    )


def training_figure(curves: Curves, theme: Theme = LIGHT) -> go.Figure:
    """For the screen: two panels over the same epochs, one colour an encoder."""
    import plotly.graph_objects as go

    from relcore.figures.interactive import plain_text, relscope_template

    table = training_table(curves)
    names = list(dict.fromkeys(table.name))
    figure, told = go.Figure(), []
    for name, color in zip(names, theme.category_colors(len(names)), strict=True):
        part = table[table.name == name]
        last = part.iloc[-1]
        told.append(
            f"{name}: loss {short(last.loss)}, held-out accuracy {short(last.accuracy)} after"
            f" {counted(len(part), 'epoch')}"
        )
        label = plain_text(name)
        for number, column in enumerate(_PANELS, start=1):
            figure.add_scatter(
                x=part.epoch,
                y=part[column],
                mode="lines+markers",
                name=label,
                legendgroup=name,
                showlegend=number == 1,
                line={"color": color, "width": 2},
                marker={"size": 5},
                text=[short(value) for value in part[column]],
                hovertemplate="epoch %{x}: %{text}<extra>" + label + "</extra>",
                xaxis=f"x{number}",
                yaxis=f"y{number}",
            )
    epochs = {
        "title": {"text": "epoch"},
        "rangemode": "tozero",
        "dtick": 1 if table.epoch.max() <= 15 else None,
    }
    figure.update_layout(
        template=relscope_template(theme),
        meta={"alt": f"Line chart of training by epoch. {'; '.join(told)}."},
        height=320,
        margin={"l": 64, "r": 16, "t": 16, "b": 88},
        hovermode="x unified",
        xaxis={**epochs, "domain": [0, 0.46], "anchor": "y"},
        xaxis2={**epochs, "domain": [0.54, 1], "anchor": "y2"},
        yaxis={"title": {"text": _PANELS["loss"]}, "rangemode": "tozero"},
        yaxis2={"title": {"text": _PANELS["accuracy"]}, "range": [0, 1.02], "anchor": "x2"},
        legend={"y": 0.01, "yanchor": "bottom"},
    )
    return figure


def printed_training_figure(curves: Curves, style: Style = PAPER) -> Figure:
    """For the paper: two panels beside each other, in one column above each other."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    from relcore.figures.publication import blank_figure, height_of, legend_below, quiet_ticks, settings

    table = training_table(curves)
    names = list(dict.fromkeys(table.name))
    colors = dict(zip(names, style.theme.category_colors(len(names)), strict=True))
    line = style.line
    stacked = style.width <= COLUMN
    left, gap, high = 3.4 * line, 4.2 * line, style.width * (0.5 if stacked else 0.3)
    with settings(style):
        figure = blank_figure(style, 1)
        below = height_of(
            legend_below(figure, [Line2D([], [], color=colors[n], lw=1, label=n) for n in names], style)
        )
        bottom, above, between = below + 3.2 * line, 1.4 * line, 4.2 * line
        total = bottom + above + high + (high + between if stacked else 0)
        wide = style.width - left - 0.1 if stacked else (style.width - left - gap - 0.1) / 2
        figure.set_figheight(total)
        for i, (column, title) in enumerate(_PANELS.items()):
            x, y = (
                (left, total - above - high - i * (high + between))
                if stacked
                else (left + i * (wide + gap), bottom)
            )
            axes = figure.add_axes((x / style.width, y / total, wide / style.width, high / total))
            for name, color in colors.items():
                part = table[table.name == name]
                axes.plot(part.epoch, part[column], color=color, lw=1, marker="o", ms=1.8)
            axes.set(xlabel="epoch", ylabel=title, ylim=(0, 1.02) if column == "accuracy" else (0, None))
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(visible=True)
            quiet_ticks(axes, style)
            if style.panel_letters:
                place = {
                    "transform": axes.transAxes,
                    "fontweight": "bold",
                    "fontsize": style.font_size + 1,
                    "va": "bottom",
                }
                axes.text(0, 1.02, "ab"[i], **place)
        return figure
