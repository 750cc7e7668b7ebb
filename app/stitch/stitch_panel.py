"""Every encoder with every head: the result in one sentence, a heat map a method, the summary, and one pair looked into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import streamlit as st

from app import exports
from app.page_settings import kept
from app.plain_text import plain, plain_name
from app.stitch import stitch_cell
from app.stitch.stitch_compute import StitchSetup, digests_of, stitched
from relcore.names import METHODS, STITCH_METRICS
from relcore.stitching.figures import (
    SHOWN,
    StitchMatrix,
    printed_summary,
    short,
    short_names,
    stitch_matrices,
    summary_table,
)
from relcore.stitching.result import StitchResult

_SHOWN_LABELS = {"score": "Score", "gap": "Gap"}


def draw(setup: StitchSetup | None) -> None:
    """The tab "Every pair"."""
    if setup is None:
        st.caption("Choose two or more encoders to score every encoder with every head.")
        return
    result = stitched(setup)
    if result is None:
        return
    sentence, choosers = st.columns([1.45, 1], gap="medium")
    with choosers:
        metric, show = _choosers(result)
    sentence.html(f'<p class="relscope-lead">{lead(result, metric)}</p>')
    cell = stitch_cell.chosen(result)
    _heat_maps(result, metric, show, cell)
    recipe = StitchMatrix(spaces=setup.specs, digests=digests_of(setup), stitching=setup.spec, metric=metric, show=show)
    exports.export_bar(recipe.draw(result), "stitch-matrix")
    stitch_cell.draw(setup, result)
    _summary(result, metric)


def _choosers(result: StitchResult) -> tuple[str, str]:
    look = {"required": True, "label_visibility": "collapsed"}
    names = {"accuracy": "Accuracy", "f1": "F1", "mae": "MAE"}
    ordered = len(result.metrics) > 2
    with st.container(horizontal=True, gap="small", horizontal_alignment="right"):
        metric = kept(
            st.segmented_control,
            "Measure",
            list(result.metrics),
            default="accuracy",
            format_func=names.get,
            key=f"stitch.metric-{ordered}",
            **look,
        )
        show = kept(
            st.segmented_control,
            "Show",
            list(SHOWN),
            default="score",
            format_func=_SHOWN_LABELS.get,
            key="stitch.show",
            **look,
        )
    return metric, show


def lead(result: StitchResult, metric: str = "accuracy") -> str:
    """The result in one sentence, as HTML."""
    table = summary_table(result, metric)
    most = int(table.pairs.max())
    able = table[table.pairs > 0]
    told = " · ".join(f"{escape(row.method)} <b>{short(row.stitched)}</b>" for row in able.itertuples())
    if not most:
        return "These methods cannot stitch any of these encoders: a head cannot read absolute rows of another dimension."
    owns = sorted({short(own) for own in table.own})
    chances = sorted({short(result.chance_level(method, metric)) for method in result.spec.methods})
    own, chance = (one[0] if len(one) == 1 else f"{one[0]} … {one[-1]}" for one in (owns, chances))
    return (
        f"<b>{most}</b> stitched pairs, {STITCH_METRICS[metric].title}: {told}. "
        f"Not stitched <b>{own}</b>, chance level <b>{chance}</b>."
    )


def _heat_maps(result: StitchResult, metric: str, show: str, cell: tuple[str, int, int] | None) -> None:
    """The figure; its key holds the cell, since one that is selected already would not hear a second click."""
    from relcore.figures.matrices_interactive import matrices_figure

    picked = (result.spec.methods.index(cell[0]), *cell[1:]) if cell else None
    figure = matrices_figure(stitch_matrices(result, metric, show), exports.theme(), width=1080, picked=picked)
    key = f"stitch.map-{'-'.join(map(str, picked or ()))}"
    exports.chart(figure, key, picked=lambda points: stitch_cell.pick(cell_of(points, result)), tools=False)
    _, common = short_names(result.encoders)
    common = f" All encoders: {plain_name(common)}." if common else ""
    lost = " Gap: accuracy of the head on its own encoder minus stitched accuracy." if show == "gap" else ""
    none = " Hatched cells have no answer, because the dimensions differ." if _some_missing(result) else ""
    st.caption(
        f"Rows are encoders, columns are the encoders that the heads were trained on. Dotted cells are not stitched.{none}"
        f"{lost}{common} {result.tested}, {_states(result)}. {plain(result.untested)} Click a cell for its details."
    )


def cell_of(points: Sequence[Mapping[str, Any]], result: StitchResult) -> tuple[str, int, int] | None:
    """Method, encoder and head of the cell that was clicked; None where nothing is picked."""
    if not points:
        return None
    panel, row, column = points[0]["customdata"]
    return result.spec.methods[int(panel)], int(row), int(column)


def _some_missing(result: StitchResult) -> bool:
    return any(bool(np.isnan(result.matrix(method)[0]).any()) for method in result.spec.methods)


def _states(result: StitchResult) -> str:
    n = len(result.runs)
    return f"mean of {n} random states" if n > 1 else f"random state {result.runs[0].random_state}"


def _summary(result: StitchResult, metric: str) -> None:
    st.markdown("#### All methods in one table")
    several = len(result.runs) > 1
    table = summary_table(result, metric)
    table["knows"] = [{"one": "one space", "both": "both spaces"}[METHODS[method].knows] for method in result.spec.methods]
    table["pairs"] = [f"{row.pairs} of {row.of}" for row in table.itertuples()]
    number = st.column_config.NumberColumn
    top = 1.0 if metric != "mae" else max(1.0, float(table[["stitched", "chance"]].max(axis=None)))
    bar = st.column_config.ProgressColumn("stitched", min_value=0, max_value=top, format="%.3f")
    columns = ["method", "knows", "stitched", "stitched_deviation", "own", "own_deviation", "chance", "permuted"]
    columns += ["pairs", "test_rows"]
    shown = [column for column in columns if several or not column.endswith("deviation")]
    st.dataframe(
        table[[*shown, "random_states"]],
        key="stitch.summary",
        hide_index=True,
        column_config={
            "method": st.column_config.TextColumn(width="medium"),
            "knows": st.column_config.TextColumn(help="Whether a method prepares each space alone or needs the two at once."),
            "stitched": bar,
            "stitched_deviation": number("±", format="%.3f", help="Deviation over the random states"),
            "own": number("not stitched", format="%.3f", help="Heads on their own encoders"),
            "own_deviation": number("± ", format="%.3f", help="Deviation over the random states"),
            "chance": number(format="%.3f", help="Chance level: always the most frequent class"),
            "permuted": number("permuted labels", format="%.3f", help="Chance level: the same answers, the labels permuted"),
            "test_rows": number("test rows", format="localized"),
            "random_states": number("random states"),
        },
    )
    download = {"type": "tertiary", "icon": ":material/download:", "on_click": "ignore"}
    csv = summary_table(result, metric).to_csv(index=False, lineterminator="\n").encode()
    latex = printed_summary(result).to_latex(index=False, escape=True).encode()
    with st.container(horizontal=True, gap="small"):
        st.download_button("CSV", csv, "relscope-stitching-summary.csv", "text/csv", key="stitch.summary-csv", **download)
        name, kind = "relscope-stitching-summary.tex", "application/x-tex"
        st.download_button("LaTeX", latex, name, kind, key="stitch.summary-tex", **download)
