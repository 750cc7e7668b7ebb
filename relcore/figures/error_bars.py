"""Error bars: the errors of models with their own decoder and with another's, on a logarithmic axis,
beside a floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.base.numbers import general
from relcore.figures.export import Exportable
from relcore.figures.picture_grid import error_text
from relcore.figures.style import LIGHT, PAPER, Style, Theme

if TYPE_CHECKING:  # each library is loaded on demand
    import plotly.graph_objects as go
    from matplotlib.figure import Figure

_FORMS = {"own": "own decoder", "stitched": "another run's decoder"}
_Y = "MSE × 10³, smaller is better"
_FLOOR = "the mean picture for each"


def errors_exportable(
    table: pd.DataFrame, recipe: Mapping[str, Any] | None = None, name: str = "errors"
) -> Exportable:
    """Bars of a `Reconstructions.table`; printed as LaTeX with mean ± deviation."""
    return Exportable(
        name,
        interactive=lambda theme: errors_figure(table, theme),
        publication=lambda style: printed_errors_figure(table, style),
        table=lambda: table,
        recipe=recipe,
        latex=lambda: readable(table),
    )


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """The printed table: model, own, stitched (mean ± deviation), the mean picture."""
    return pd.DataFrame(
        {
            "model": table.model,
            "not stitched": [
                f"{a:.2f} ± {b:.2f}" for a, b in zip(table.own, table.own_deviation, strict=True)
            ],
            "stitched": [
                f"{a:.2f} ± {b:.2f}" for a, b in zip(table.stitched, table.stitched_deviation, strict=True)
            ],
            "mean picture": [f"{floor:.2f}" for floor in table.mean_picture],
        }
    )


def alt_text(table: pd.DataFrame) -> str:
    told = "; ".join(
        f"{row.model}: own {error_text(row.own)}, stitched {error_text(row.stitched)}"
        for row in table.itertuples()
    )
    return f"Bar chart, logarithmic, of {_Y}. {told}; {_FLOOR}: {error_text(table.mean_picture.iloc[0])}."


def errors_figure(table: pd.DataFrame, theme: Theme = LIGHT) -> go.Figure:
    """For the screen."""
    import plotly.graph_objects as go

    from relcore.figures.interactive import plain_text, relscope_template

    figure = go.Figure()
    for (form, label), color in zip(_FORMS.items(), theme.category_colors(2), strict=True):
        figure.add_bar(
            x=[plain_text(model) for model in table.model],
            y=table[form],
            error_y={"array": table[f"{form}_deviation"], "thickness": 1, "width": 3, "color": theme.muted},
            name=label,
            marker={"color": color},
            text=[error_text(value) for value in table[form]],
            textposition="inside",
            insidetextanchor="start",
            textangle=0,
            hovertemplate="%{x}, " + label + ": %{text}<extra></extra>",
        )
    floor = table.mean_picture.iloc[0]
    dash = {"color": theme.muted, "width": 1.5, "dash": "dash"}
    figure.add_hline(floor, line=dash, name=f"{_FLOOR}: {error_text(floor)}", showlegend=True)
    figure.update_layout(
        template=relscope_template(theme),
        meta={"alt": alt_text(table)},
        height=360,
        margin={"l": 64, "r": 16, "t": 16, "b": 84},
        barmode="group",
        bargap=0.3,
        legend={"y": 0.01, "yanchor": "bottom"},
    )
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(type="log", title={"text": _Y}, range=_exponents(table), tickvals=[1, 10, 100, 1000])
    return figure


def printed_errors_figure(table: pd.DataFrame, style: Style = PAPER) -> Figure:
    """For the paper."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from relcore.figures.publication import blank_figure, height_of, legend_below, settings

    with settings(style):
        theme, line = style.theme, 1.35 * style.font_size / 72
        figure = blank_figure(style, 1)
        colors = dict(zip(_FORMS, theme.category_colors(2), strict=True))
        floor = table.mean_picture.iloc[0]
        handles = [Patch(color=colors[form], label=label) for form, label in _FORMS.items()]
        handles.append(
            Line2D([], [], color=theme.muted, lw=1, ls="--", label=f"{_FLOOR}: {error_text(floor)}")
        )
        below = height_of(legend_below(figure, handles, style)) + 3.4 * line
        total = below + 0.38 * style.width + 0.1
        figure.set_figheight(total)
        left = 3.6 * line
        axes = figure.add_axes(
            (left / style.width, below / total, 1 - (left + 0.1) / style.width, 1 - (below + 0.1) / total)
        )
        places = np.arange(len(table))
        for shift, (form, color) in zip((-0.2, 0.2), colors.items(), strict=True):
            deviation = {
                "yerr": table[f"{form}_deviation"],
                "error_kw": {"lw": 0.7, "ecolor": theme.text, "capsize": 1.5},
            }
            axes.bar(places + shift, table[form], 0.38, color=color, **deviation)
        axes.axhline(floor, color=theme.muted, lw=1, ls="--")
        axes.set(yscale="log", ylabel=_Y, ylim=[10.0**exponent for exponent in _exponents(table)])
        axes.yaxis.set_major_formatter(lambda value, _: general(value))
        axes.yaxis.set_minor_formatter("")
        axes.set_xticks(places, [model.replace(", ", "\n") for model in table.model])
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(
            length=2, width=0.6, labelsize=style.font_size - 1, labelcolor=theme.muted, color=theme.border
        )
        return figure


def _exponents(table: pd.DataFrame) -> tuple[float, float]:
    """The axis in powers of ten, a little below the smallest bar and above the largest."""
    values = np.concatenate([table.own, table.stitched, table.mean_picture])
    return float(np.log10(values.min() / 3)), float(
        np.log10((values.max() + table.stitched_deviation.max()) * 1.3)
    )
