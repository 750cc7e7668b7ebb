"""Invert: the original and the recovered rows in linked panes, the scores, the worst and best rows, and all
errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from app import exports, messages, session
from app.asking import Panel
from app.glossary.card import caption
from app.invert.charts import draw_charts
from app.invert.inputs import WIDTHS, InvertInputs, inputs
from app.invert.maps import draw_panes, scene_of
from app.invert.recovered import Recovered, recovered
from app.invert.selected_row import draw_selected
from app.items import Items, draw_rows, found_html, rows_html, with_items
from app.plain_text import plain
from app.tables import brushing_table, report_table
from app.widgets import choose_anchors
from app.workspace import MOST_ANCHORS, Workspace
from relcore.base.numbers import counted, percent, short
from relcore.invert.inversion import Inversion, side_names
from relcore.invert.recovery import Recovery, RecoveryErrors
from relcore.scores.score import share_interval
from relcore.spaces.matching import Match

LISTED = 200  # maximum number of rows at each end of the table, which is sorted by error


def draw(workspace: Workspace) -> None:
    _PANEL.draw(workspace)


def report(asked: InvertInputs, result: Recovered) -> None:
    pair = asked.pair
    places = asked.places
    inversion = result.inversion
    with places.found, st.spinner(f"Recovering {counted(len(pair), 'row')} …"):
        scene = scene_of(pair, asked.recipe, inversion)
    with places.found:
        messages.lead(lead(pair, inversion, result.nearest))
        _draw_notes(pair, asked.anchors_from, inversion)
    with places.details:
        st.caption(inversion.about_matrix)
    with places.maps:
        draw_panes(asked, inversion, scene)
        drawn = replace(asked.recipe, inversion=inversion.spec).draw((inversion, scene))
        exports.export_bar(drawn, "invert-panes")
        _extremes(pair, inversion, asked.items)
    with places.side:
        draw_charts(asked.recipe, result)
        draw_selected(pair, asked.items, inversion)
    examples, methods = st.columns(WIDTHS, gap="medium")
    with examples:
        st.subheader("Examples, before and after", anchor=False)
        draw_rows(_recovered_tables(pair, inversion, result.nearest, asked.items))
    with methods:
        st.subheader("Other methods", anchor=False)
        if result.by_hand:
            st.caption(result.by_hand)
        st.caption("Mean cosine is 1 − mean error: high is good.")
        report_table(inversion.report(side_names(pair, inversion.spec.route)).tables[0])
    errors = RecoveryErrors.of(asked.recipe, inversion=inversion.spec).draw(inversion)
    figure = errors.interactive(exports.theme())
    figure.update_layout(title={"text": ""}, margin={"t": 12}, height=340)  # the page has a heading above
    exports.chart(figure, "invert.errors")
    exports.export_bar(errors, "invert-errors")


_PANEL = Panel(
    inputs,
    recovered,
    report,
    "Choose other anchors or spaces, or other settings, or undo the last step.",
)


def lead(pair: Match, result: Inversion, found: Recovery) -> str:
    """A sentence as HTML that says which share of the rows inversion recovers here, with its interval, the
    chance level, and on how many rows this was measured."""
    alike = ""
    if found.labelled:
        labelled, chance = map(percent, found.labelled)
        alike = f" Nearest to a row of the same label: {labelled} (by chance {chance})."
    rows = "words"
    if pair.source.counts is None:
        rows = "rows"
    low, high = share_interval(found.first, found.n)
    return (
        f"{counted(result.n_anchors, 'anchor')} recover <b>{percent(found.first)}</b> of the {rows}"
        f" (95 %: {percent(low)} to {percent(high)}): of"
        f" {found.among:,} true vectors, the right one is nearest to the recovered one. By chance,"
        f" {percent(1 / found.among)}."
        f" <small>Measured on {found.n:,} held-out {rows}.{alike}</small>"
    )


def _recovered_tables(pair: Match, result: Inversion, found: Recovery, items: Items | None) -> str:
    """Tables of rows, each beside the row nearest to its recovered vector. Rows are shown as pictures,
    sentences or names."""
    places = np.unique(np.concatenate(list(found.groups.values())))
    errors = result.errors[result.spec.title]
    labels = pair.source.labels
    if labels is None:
        labels = np.full(len(result.rows), "")
    else:
        labels = labels[result.rows]
    ids = [str(pair.ids[row]) for row in result.rows[places]]
    shown = dict(zip(places, rows_html(items, ids), strict=True))
    parts = ""
    for title, pairs in found.groups.items():
        lines = "".join(
            f"<tr><td>{shown[row]}</td>"
            f"{found_html(shown[other], row == other, labels[row] != '' and labels[row] == labels[other])}"
            f'<td class="number">{short(errors[row], 2)}</td></tr>'
            for row, other in pairs
        )
        head = '<th>original</th><th>nearest to the recovered</th><th class="number">error</th>'
        parts += (
            f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
        )
    return parts


def _extremes(pair: Match, result: Inversion, items: Items | None) -> None:
    source = pair.source
    errors = result.errors[result.spec.title]
    order = np.flatnonzero(result.scored)
    order = order[np.argsort(-errors[order], kind="stable")]
    number = st.column_config.NumberColumn(format="%.3f", help="1 − cosine of recovered and true row")
    if len(order) <= 2 * LISTED:
        chosen = order
    else:
        chosen = np.concatenate([order[:LISTED], order[-LISTED:]])
    rows = result.rows[chosen]
    table = pd.DataFrame({"id": pair.ids[rows]})
    if source.labels is not None and 2 * np.count_nonzero(source.labels[rows] != "") > len(rows):
        table["label"] = source.labels[rows]
    methods = {name: values[chosen] for name, values in result.errors.items() if name != "absolute copy"}
    table = table.assign(**methods)
    if source.counts is not None:
        table["count"] = source.counts[rows]
    st.subheader("Worst and best rows", anchor=False)
    shown, look = with_items(items, table)
    look["column_config"] |= dict.fromkeys(methods, number)
    brushing_table(shown, "invert.extremes", height=330, **look)
    few = len(chosen) == len(order)
    if few:
        which = "every held-out row"
    else:
        which = f"the {LISTED} worst and the {LISTED} best held-out rows"
    caption(
        f"Error of each method, 1 − cosine of recovered and true row: low is good. Listed: {which}. Select"
        " rows to see them in the maps."
    )


def _draw_notes(pair: Match, anchors_from: tuple[str, int, int], result: Inversion) -> None:
    width = result.shape[1]
    (strategy, _, state) = anchors_from
    n = min(2 * width, len(pair) // 2, MOST_ANCHORS)
    more = result.n_anchors < min(n, width)
    if not more:
        for note in result.notes:
            messages.warning(note)
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="invert.few"):
        st.markdown(f":material/warning: {plain(' '.join(result.notes))}", width="stretch")
        st.button(
            f"Replace the {result.n_anchors:,} anchors by {n:,}",
            key="invert.more",
            icon=":material/star:",
            help="All pages use the new anchors. Undo brings the old ones back.",
            on_click=session.guarded,
            args=(choose_anchors, pair, strategy, n, state),
        )
