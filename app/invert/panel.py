"""Invert: the original and the recovered rows in linked panes, the scores, the worst and best rows, and all
errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, exports, live, messages, session
from app.compare.choosers import color_name
from app.compare.inspector import inspector
from app.components.linked_scatter import linked_scatter
from app.glossary.card import caption
from app.items import Items, draw_rows, found_html, hover_columns, items_of, rows_html, sheet_of, with_items
from app.page_settings import remembered
from app.panes import places_of_selected, select
from app.plain_text import plain
from app.tables import brushing_table, report_table
from app.widgets import bound, choose_anchors, edit_setting
from app.workspace import MOST_ANCHORS, Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, general, percent, short
from relcore.base.settings import settings_of
from relcore.figures.scene import Scene
from relcore.invert.inversion import Inversion, InversionSpec, PairedRows, side_names
from relcore.invert.recovery import (
    COLORS,
    RecoveredRows,
    Recovery,
    RecoveryErrors,
    error_edges,
    inversion_scene,
    recovered_rows,
)
from relcore.invert.sliders import LiveInversion, SlidAnswers
from relcore.maps.pane_maps import View, ViewSpec
from relcore.panes.payload import PaneEvent
from relcore.spaces.ids import GuessedIds
from relcore.spaces.matching import Match

_SETTINGS = settings_of(InversionSpec)
_BY = {True: "Auto", False: "By hand"}
_BY_HELP = (
    "Auto: each setting of a grid is cross-validated on the anchors (four folds), and the best is fitted on"
    " all anchors. No scored row is used. By hand: you set the numbers. The map follows the slider; colours"
    " and scores follow when you release it."
)
_RIDGES = tuple(float(f"{10**power:.2g}") for power in np.arange(-3, 3.01, 0.125))
_CHOSEN = "relscope.invert-chosen"  # the values that Auto found last
_AUTO = "relscope.invert-auto"  # the spec for which Auto found its last values, and the result in words
_EDGES = "relscope.invert-edges"
_HIDDEN = "invert.hidden"  # widget key: the classes that the legend hides
LISTED = 200  # maximum number of rows at each end of the table, which is sorted by error


def method_details(workspace: Workspace, result: Inversion | None = None) -> None:
    spec = workspace.inversion
    published = InversionSpec(workspace.inversion.route)
    with st.popover("Method details", icon=":material/tune:", key="invert.details"):
        edit_setting("inversion", _SETTINGS["route"], "invert.route", widget=st.selectbox)
        edit_setting("inversion", _SETTINGS["method"], "invert.method")
        if spec != published:
            st.button(
                "As published",
                key="invert.published",
                icon=":material/menu_book:",
                help=f"Pruned, {published.settings()}: the settings of Maiorca et al. 2024.",
                on_click=session.edit,
                args=("invert as published",),
                kwargs={"inversion": published},
            )
        if result:
            st.caption(result.about_matrix)


def numbers(spec: InversionSpec) -> None:
    """Draw the choice between automatic settings and settings by hand and, by hand, the widgets that set
    them. While a slider moves, the panes show its effect."""
    bound(
        st.segmented_control,
        "Settings",
        "invert.tuned",
        spec.tuned,
        _tune,
        options=list(_BY),
        format_func=_BY.get,
        required=True,
        help=_BY_HELP,
    )
    if spec.tuned:
        return
    ridges = _ridges(spec)
    ends = {ridges[0]: f"{general(ridges[0])}, weak", ridges[-1]: f"{general(ridges[-1])}, strong"}
    widgets = {
        "delta": {"widget": st.slider, "step": 0.01, "width": 210},
        "omega": {"widget": st.slider, "width": 210},
        "random_state": {"width": 130},
        "ridge": {
            "widget": st.select_slider,
            "options": ridges,
            "format_func": lambda ridge: ends.get(ridge, general(ridge)),
            "width": 300,
        },
    }
    for field in ("delta", "omega", "random_state") if spec.method == "pruned" else ("ridge",):
        edit_setting("inversion", _SETTINGS[field], f"invert.{field}", **widgets[field])


@dataclass(frozen=True, eq=False, kw_only=True)
class SliderOffer(live.Offer):
    """Offers the panes new maps of the recovered rows while the user moves a slider of the method."""

    pair: Match
    anchors: tuple[str, ...]
    spec: InversionSpec

    @property
    def content(self) -> tuple[Any, ...]:
        return compute.pair_key(self.pair), self.anchors, self.spec

    @property
    def header(self) -> dict[str, Any]:
        sliders = [
            {"key": f"st-key-invert-{name}", "label": _SETTINGS[name].label} for name in self._sliders()
        ]
        return {"panes": [1], "many": 0, "sliders": sliders}

    def _sliders(self) -> dict[str, Sequence[float] | None]:
        return {"delta": None, "omega": None, "ridge": _ridges(self.spec)}

    def answers(self) -> SlidAnswers:
        rows = _paired(self.pair, self.anchors, self.spec.route)
        return SlidAnswers(LiveInversion(rows, self.spec), self._sliders())


def _ridges(spec: InversionSpec) -> list[float]:
    return sorted({*_RIDGES, spec.ridge})


def _tune(tuned: bool) -> None:
    if tuned:
        chosen = {}
    else:
        chosen = st.session_state.get(_CHOSEN, {})
    session.edit_spec(f"settings {_BY[tuned].lower()}", "inversion", tuned=tuned, **chosen)


# Few results are cached, because the original and recovered rows are large: 48 MB for 20,000 rows of 300
# dimensions.
_paired = compute.cached(3)(PairedRows)


@compute.cached(6)
def inversion_of(pair: Match, anchors: tuple[str, ...], spec: InversionSpec) -> Inversion:
    return _paired(pair, anchors, spec.route).invert(spec)


@compute.cached(12)
def examples(pair: Match, anchors: tuple[str, ...], spec: InversionSpec, shown: int) -> Recovery:
    return recovered_rows(pair, inversion_of(pair, anchors, spec), shown)


@compute.cached(12)
def _scene(
    pair: Match,
    anchors: tuple[str, ...],
    spec: InversionSpec,
    color_by: str,
    view: ViewSpec,
    edges: tuple[float, ...],
) -> Scene:
    return inversion_scene(pair, inversion_of(pair, anchors, spec), color_by, view, edges)


def _edges(pair: Match, anchors: tuple[str, ...], result: Inversion) -> tuple[float, ...]:
    """The bounds between the error classes that colour the rows. They stay fixed while the numbers of one
    method change, so that colours can be compared. Another method has errors of another size."""
    spec = result.spec
    place = (*compute.pair_key(pair), anchors, spec.route, spec.method, spec.tuned)
    if st.session_state.get(_EDGES, ((), ()))[0] != place:
        errors = result.errors[result.spec.title][result.scored]
        st.session_state[_EDGES] = place, error_edges(errors)
    return st.session_state[_EDGES][1]


def draw(workspace: Workspace) -> None:
    if not workspace.anchors:
        messages.no_anchors()
        return
    pair = compute.matched_models(workspace.source, workspace.target)
    if isinstance(pair.ids, GuessedIds) and not compute.can_be_scored(pair, workspace.anchors):
        messages.info(compute.too_few_held_out(pair, workspace.anchors), ":material/hub:")
        return
    chosen = pair, workspace.anchors, workspace.inversion
    colors = {
        name: color_name(name, pair) for name in COLORS if name != "labels" or pair.source.labels is not None
    }
    usual = "error"
    if "labels" in colors and workspace.view.color_by == "labels":
        usual = "labels"
    if (color_by := st.session_state.setdefault("invert.color", usual)) not in colors:
        color_by = st.session_state["invert.color"] = "error"
    items = items_of(workspace)
    st.caption(_idea(pair, workspace))
    if not pair.others and compute.is_paired_by_order(workspace.source, workspace.target):
        st.caption(":material/link: Paired by row order. If that is wrong, Link finds the pairs.")
    try:
        with st.spinner(f"Recovering {counted(len(pair), 'row')} …"):
            result = inversion_of(*chosen)
            if color_by != "error":
                view = workspace.view
            else:
                view = ViewSpec()
            scene = _scene(*chosen, color_by, view, _edges(pair, workspace.anchors, result))
            found = examples(*chosen, 3 if items is not None and items.has_texts else 5)
    except SpaceError as error:
        messages.error(error)
        st.caption("Choose other anchors or spaces, or other settings, or undo the last step.")
        numbers(workspace.inversion)
        method_details(workspace)
        return
    cosine = short(float(result.scores[result.spec.title]))
    tuned_for = compute.pair_key(pair), workspace.anchors, result.spec.route, result.spec.method
    if result.choice:
        st.session_state[_CHOSEN] = result.choice.numbers()
        st.session_state[_AUTO] = (
            tuned_for,
            f"Auto ({result.spec.settings()}, chosen on the anchors): {cosine}.",
        )
    known, auto = st.session_state.get(_AUTO, ((), ""))
    messages.lead(lead(pair, result, found))
    draw_rows(_recovered_tables(pair, result, found, items))
    _draw_notes(pair, result, workspace)
    recipe = workspace.recipe(pair)
    picture, side = st.columns([2.9, 1], gap="medium")
    with picture:
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            remembered(
                st.segmented_control,
                "Colour by",
                list(colors),
                format_func=colors.get,
                key="invert.color",
                required=True,
                help="Error: 1 − cosine of recovered and true row. The example rows are those of Explore.",
            )
            method_details(workspace, result)
            numbers(workspace.inversion)
        _panes(pair, result, workspace, scene, color_by)
        panes = RecoveredRows.of(recipe, inversion=result.spec, color_by=color_by)
        exports.export_bar(panes.draw((result, scene)), "invert-panes")
        _extremes(pair, result, workspace)
    with side:
        if known == tuned_for and not workspace.inversion.tuned:
            st.caption(f"By hand: mean cosine {cosine}. {auto}")
        report_table(result.report(side_names(pair, result.spec.route)).tables[0])
        inspector(pair)
    st.subheader("Errors", anchor=False)
    errors = RecoveryErrors.of(recipe, inversion=result.spec).draw(result)
    figure = errors.interactive(exports.theme())
    figure.update_layout(title={"text": ""}, margin={"t": 12}, height=340)  # the page has a heading above
    exports.chart(figure, "invert.errors")
    exports.export_bar(errors, "invert-errors")


def _draw_notes(pair: Match, result: Inversion, workspace: Workspace) -> None:
    width = result.shape[1]
    (strategy, _, state) = session.anchors_origin(workspace)
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


def _panes(pair: Match, result: Inversion, workspace: Workspace, scene: Scene, color_by: str) -> None:
    view = View(result.rows, np.full(len(result.rows), -1), ())
    items = items_of(workspace)
    texts, notes = hover_columns(pair, view, items, color_by != "labels")
    look = {"named": workspace.look.named, "hidden": st.session_state.get(_HIDDEN, ())}

    def receive(event: PaneEvent) -> None:
        if event.hidden is not None:
            st.session_state[_HIDDEN] = event.hidden[0]
        elif event.named is not None:
            step = "hide names"
            if event.named:
                step = "show names"
            session.edit_spec(step, "look", named=event.named)
        else:
            select(pair, result.rows[event.rows])

    linked_scatter(
        replace(scene, texts=texts, notes=notes, **look),
        key="invert",
        selected=places_of_selected(pair, result.rows),
        height=560,
        sheet=sheet_of(pair, view, items),
        live=live.channel_of("invert", SliderOffer(pair=pair, anchors=workspace.anchors, spec=result.spec)),
        on_event=receive,
    )
    rows, columns = result.shape
    original, recovered = (pane.coordinates[result.scored] for pane in scene.panes)
    along = [short(np.corrcoef(*pair)[0, 1], 2) for pair in zip(original.T, recovered.T, strict=True)]
    caption(
        f"The maps show 2 of {columns:,} dimensions, each pane to its own scale. The recovered coordinates"
        f" correlate with the original ones: {' and '.join(along)}. The scores use all"
        f" dimensions. The recovery is one matrix of {rows:,} × {columns:,}. It recovers directions, not"
        " lengths."
    )


def _idea(pair: Match, workspace: Workspace) -> str:
    """A sentence on what this page does, for the time until the result is computed."""
    source, target = map(plain, side_names(pair, workspace.inversion.route))
    rows = "row" if pair.source.counts is None else "word"
    same = source == target
    anchors = counted(len(workspace.anchors), "anchor")
    where = "" if same else f" of {target}"
    place = "there"
    if same:
        place = "in its space"
    return (
        f"Take only the similarities of each {rows} to {anchors} in {source}, and turn them back into a"
        f" vector{where}. Is it the vector that this {rows} has {place}?"
    )


def lead(pair: Match, result: Inversion, found: Recovery) -> str:
    """A sentence as HTML that says which share of the rows inversion recovers here, and on how many rows this
    was measured."""
    alike = ""
    if found.labelled:
        labelled, chance = map(percent, found.labelled)
        alike = f" Nearest to a row of the same label: {labelled} (by chance {chance})."
    cosine = short(float(result.scores[result.spec.title]), 2)
    others = {name: float(score) for name, score in result.scores.items() if name != result.spec.title}
    if others and others[best := max(others, key=others.get)] > result.scores[result.spec.title]:
        cosine += f"; of {best}, fitted directly, {short(others[best], 2)}"
    rows = "words"
    if pair.source.counts is None:
        rows = "rows"
    return (
        f"For <b>{percent(found.first)}</b> of {found.n:,} held-out {rows}, the true vector is nearest to"
        f" the recovered one, among {found.among:,} (by chance {percent(1 / found.among)})."
        f" <small>Mean cosine of recovered and true vector: {cosine}.{alike}</small>"
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
            f'<td class="number">{short(1 - errors[row], 2)}</td></tr>'
            for row, other in pairs
        )
        head = '<th>original</th><th>nearest to the recovered</th><th class="number">cosine</th>'
        parts += (
            f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
        )
    return parts


def _extremes(pair: Match, result: Inversion, workspace: Workspace) -> None:
    source = pair.source
    errors = result.errors[result.spec.title]
    order = np.flatnonzero(result.scored)
    order = order[np.argsort(-errors[order], kind="stable")]
    number = st.column_config.NumberColumn(format="%.3f", help="Cosine of recovered and true row")
    if len(order) <= 2 * LISTED:
        chosen = order
    else:
        chosen = np.concatenate([order[:LISTED], order[-LISTED:]])
    rows = result.rows[chosen]
    table = pd.DataFrame({"id": pair.ids[rows]})
    if source.labels is not None and 2 * np.count_nonzero(source.labels[rows] != "") > len(rows):
        table["label"] = source.labels[rows]
    methods = {name: 1 - values[chosen] for name, values in result.errors.items() if name != "absolute copy"}
    table = table.assign(**methods)
    if source.counts is not None:
        table["count"] = source.counts[rows]
    st.subheader("Worst and best rows", anchor=False)
    shown, look = with_items(workspace, table)
    look["column_config"] |= dict.fromkeys(methods, number)
    brushing_table(shown, "invert.extremes", height=330, **look)
    few = len(chosen) == len(order)
    if few:
        which = "every held-out row"
    else:
        which = f"the {LISTED} worst and the {LISTED} best held-out rows"
    caption(f"Cosine of recovered and true row by each method; {which}. Select rows to see them in the maps.")
