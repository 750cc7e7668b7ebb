"""The rows: original and recovered in linked panes, the scores, the worst and best rows, and all errors.

The panes show the anchors, too; numbers, lists and histogram are of held-out rows only.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, exports, messages, session
from app.compare.inspector import inspector
from app.components.linked_scatter import linked_scatter
from app.items import hover_columns, items_of, sheet_of, with_items
from app.page_settings import kept
from app.panes import places_of_selected, select
from app.plain_text import plain_html
from app.tables import brushing_table
from app.widgets import bound, edit_setting
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.base.settings import settings_of
from relcore.figures.scene import Scene
from relcore.invert.figures import RecoveredRows, RecoveryErrors, inversion_scene
from relcore.invert.recovery import Inversion, InversionSpec, invert_pair, side_names
from relcore.maps.views import View, ViewSpec
from relcore.panes.payload import PaneEvent
from relcore.spaces.space import Match

# The choosers of the Invert page: one row in the tabs that need them; their values are in the workspace.

_SETTINGS = settings_of(InversionSpec)
_BY = {True: "Auto", False: "By hand"}
_BY_HELP = (
    "Auto: quarters of the anchors are held out in turn. Each setting of a grid is fitted on the other"
    " anchors, and the best on the held-out ones is fitted on all anchors. The rows that are scored are not"
    " used for this. By hand: your own numbers."
)
_CHOSEN = "relscope.invert-chosen"  # numbers that held-out anchors chose last, to begin with by hand


def choosers(workspace: Workspace) -> None:
    """The direction, the method and its settings."""
    spec, published = workspace.inversion, InversionSpec(workspace.inversion.route)
    with st.container(horizontal=True, vertical_alignment="bottom", key="invert-choosers"):
        edit_setting("inversion", _SETTINGS["route"], "invert.route", widget=st.selectbox, width=200)
        edit_setting("inversion", _SETTINGS["method"], "invert.method")
        look = {"options": list(_BY), "format_func": _BY.get, "required": True, "help": _BY_HELP}
        bound(st.segmented_control, "Settings", "invert.tuned", spec.tuned, _tune, **look)
        if not spec.tuned:
            _numbers(("delta", "omega", "random_state") if spec.method == "pruned" else ("ridge",))
        if spec != published:
            st.button(
                "As published",
                key="invert.published",
                icon=":material/menu_book:",
                help=f"Pruned, {published.settings()}: what Maiorca et al. 2024 use.",
                on_click=session.edit,
                args=("invert as published",),
                kwargs={"inversion": published},
            )


def numbers(fields: tuple[str, ...]) -> None:
    """These settings only, for a tab that runs every method."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="invert-numbers"):
        _numbers(fields)


def _numbers(fields: tuple[str, ...]) -> None:
    for field in fields:
        edit_setting("inversion", _SETTINGS[field], f"invert.{field}", width=135)


def _tune(tuned: bool) -> None:
    chosen = {} if tuned else st.session_state.get(_CHOSEN, {})
    session.edit_spec(f"settings {_BY[tuned].lower()}", "inversion", tuned=tuned, **chosen)


# Original and recovered rows are the large part: 20,000 rows of 300 dimensions are 48 MB.
@compute.cached(6, "Inverting …")
def inverted(pair: Match, anchors: tuple[str, ...], spec: InversionSpec) -> Inversion:
    """The pair's rows, inverted through these anchors."""
    return invert_pair(pair, anchors, spec)


@compute.cached(12)
def inverted_scene(
    pair: Match, anchors: tuple[str, ...], spec: InversionSpec, color_by: str, view: ViewSpec
) -> Scene:
    """Both panes, coloured."""
    return inversion_scene(pair, inverted(pair, anchors, spec), color_by, view)


STYLE = Path(__file__).parents[2] / "assets" / "invert.css"
LISTED = 200  # worst and best rows
_HIDDEN = "invert.hidden"  # classes that are not shown; the figure has them
_COLORS = {"error": "Error", "pivots": "Pivots", "labels": "Labels"}
_NO_ANCHORS = (
    "No anchors yet: choose some in the sidebar, or pick them on the Anchors page. Inversion needs at least"
    " two."
)


def draw(workspace: Workspace) -> None:
    """The whole tab; errors are shown with a remedy, and the choosers stay."""
    if not workspace.anchors:
        st.info(_NO_ANCHORS, icon=":material/star:")
        return
    pair = compute.matched(workspace.source, workspace.target)
    chosen = pair, workspace.anchors, workspace.inversion
    try:
        found = inverted(*chosen)
        color_by = _color(pair)
        scene = inverted_scene(*chosen, color_by, workspace.view if color_by != "error" else ViewSpec())
    except SpaceError as error:
        messages.error(error)
        st.caption(
            "Choose other anchors or spaces in the sidebar, or other settings above, or undo the last step."
        )
        return
    if found.choice:
        st.session_state[_CHOSEN] = found.choice.numbers()
    _warnings(found)
    recipe = workspace.recipe(pair.source.digest, pair.target.digest)
    picture, side = st.columns([2.9, 1], gap="medium")
    with picture:
        _color_chooser(pair)
        _panes(pair, found, workspace, scene, color_by)
        panes = RecoveredRows.of(recipe, inversion=found.spec, color_by=color_by)
        exports.export_bar(panes.draw((found, scene)), "invert-panes")
    with side:
        st.html(STYLE)
        st.html(_scores(pair, found))
    rows, one = st.columns([2.9, 1], gap="medium")
    with rows:
        _extremes(pair, found, workspace)
        st.subheader("Errors", anchor=False)
        errors = RecoveryErrors.of(recipe, inversion=found.spec).draw(found)
        drawn = errors.interactive(exports.theme())
        drawn.update_layout(title={"text": ""}, margin={"t": 12}, height=340)  # the heading says it
        exports.chart(drawn, "invert.errors")
        exports.export_bar(errors, "invert-errors")
    with one:
        inspector(pair)


def _warnings(found: Inversion) -> None:
    width = found.shape[1]
    if found.rank < width:
        messages.warning(
            f"Only {found.rank:,} of {width:,} directions can be recovered, because fewer anchors than"
            " dimensions are kept. Choose more anchors, or lower δ.",
            icon=":material/warning:",
        )
    elif found.spec.method == "pruned" and 0.8 * width <= found.kept <= 1.3 * width and found.condition > 20:
        messages.info(
            f"The number of anchors kept ({short(found.kept, 0)}) is close to the number of dimensions"
            f" ({width:,}). The inverse is least stable there: its condition number is"
            f" {short(found.condition, 0)}. Try another δ; the study of δ × ω compares them.",
            icon=":material/lightbulb:",
        )


def _colors(pair: Match) -> list[str]:
    return [name for name in _COLORS if name != "labels" or pair.source.labels is not None]


def _color(pair: Match) -> str:
    if st.session_state.setdefault("invert.color", "error") not in _colors(pair):
        st.session_state["invert.color"] = "error"
    return st.session_state["invert.color"]


def _color_chooser(pair: Match) -> None:
    kept(
        st.segmented_control,
        "Colour by",
        _colors(pair),
        format_func=_COLORS.get,
        key="invert.color",
        required=True,
        help="Error: 1 − cosine of recovered and true row after centring, in fixed steps.",
    )


def _panes(pair: Match, found: Inversion, workspace: Workspace, scene, color_by: str) -> None:
    view = View(found.rows, np.full(len(found.rows), -1), ())
    items = items_of(workspace)
    texts, notes = hover_columns(pair, view, items, color_by != "labels")
    look = {"named": workspace.look.named, "hidden": st.session_state.get(_HIDDEN, ())}
    linked_scatter(
        replace(scene, texts=texts, notes=notes, **look),
        key="invert",
        selected=places_of_selected(pair, found.rows),
        height=560,
        sheet=sheet_of(pair, view, items),
        on_event=lambda event: _receive(event, pair, found.rows),
    )
    rows, columns = found.shape
    st.caption(
        f"A matrix W, {rows:,} × {columns:,}, maps each centred row into the other space, for any ω. A row's"
        " length is lost: the recovered row has the anchors' mean length, reduced by the part of its"
        " direction that the anchors do not span. The panes include the anchors; the scores do not."
    )


def _receive(event: PaneEvent, pair: Match, rows: np.ndarray) -> None:
    if event.hidden is not None:
        st.session_state[_HIDDEN] = event.hidden[0]
    elif event.named is not None:
        session.edit_spec("show names" if event.named else "hide names", "look", named=event.named)
    else:
        select(pair, rows[event.rows])


def _scores(pair: Match, found: Inversion) -> str:
    """Mean cosine by each method with its chance level, and facts about the inverse."""
    source, target = side_names(pair, found.spec.route)
    way = f"{source}, back from its relative space" if source == target else f"{source} → {target}"
    lines = []
    for name, score in found.scores.items():
        own = name == found.spec.title
        knows = "" if own else "unchanged vectors, " if name == "absolute copy" else "uses both spaces, "
        chance = (
            f"{knows}chance level {short(score.null.low)} … {short(score.null.high)}" if score.null else knows
        )
        row = f"<th>{plain_html(name)}<small>{chance}</small></th><td><b>{short(float(score))}</b></td>"
        lines.append(f'<tr class="{"first" if own else ""}">{row}</tr>')
    pruned = found.spec.method == "pruned"
    facts = {
        "Settings": f"{found.spec.settings()}{', auto' if found.choice else ''}",
        "Anchors kept": (
            f"{short(found.kept, 1)} of {found.n_anchors:,}" if pruned else f"all {found.n_anchors:,}"
        ),
        "Condition number": short(found.condition, 1) if np.isfinite(found.condition) else "∞",
        "Directions recovered": f"{found.rank:,} of {found.shape[1]:,}",
    }
    lines += [f"<tr><th>{name}</th><td>{plain_html(value)}</td></tr>" for name, value in facts.items()]
    auto = found.choice and (
        f" Auto: the best of {found.choice.n_tried} settings on {found.choice.n_held_out:,} held-out anchors"
        f" at a time (mean cosine {short(found.choice.cosine)}), fitted on all anchors."
    )
    averaged = " Anchors and condition: means over the prunings." if pruned and found.spec.omega > 1 else ""
    return (
        '<table class="relscope-inversion"><caption>Recovered to true, mean cosine:'
        f" {plain_html(way)}</caption><tbody>"
        f"{''.join(lines)}</tbody></table>"
        f'<p class="relscope-facts">{scored_rows(found)}, after centring. Chance level: these rows permuted,'
        " 95 % band."
        f"{averaged}{auto or ''}</p>"
    )


def scored_rows(found: Inversion) -> str:
    """``"700 held-out rows"``: how many rows the scores are of."""
    left = found.n - found.n_anchors
    return (
        counted(found.n_scored, "held-out row")
        if found.n_scored == left
        else f"{found.n_scored:,} of {counted(left, 'held-out row')}"
    )


def _extremes(pair: Match, found: Inversion, workspace: Workspace) -> None:
    worst, best = st.tabs(["Worst rows", "Best rows"])
    errors = found.errors[found.spec.title]
    order = np.flatnonzero(found.scored)
    order = order[np.argsort(-errors[order], kind="stable")]
    for tab, chosen, key in ((worst, order[:LISTED], "worst"), (best, order[::-1][:LISTED], "best")):
        table = pd.DataFrame({"id": pair.ids[found.rows[chosen]]})
        labels = pair.source.labels[found.rows[chosen]] if pair.source.labels is not None else np.array([])
        if (labels != "").sum() > len(labels) / 2:
            table["label"] = labels
        for method, values in found.errors.items():
            if method != "absolute copy":
                table[method] = values[chosen]
        if pair.source.counts is not None:
            table["count"] = pair.source.counts[found.rows[chosen]]
        with tab:
            shown, look = with_items(workspace, table)
            for method in found.errors:
                look["column_config"][method] = st.column_config.NumberColumn(
                    format="%.3f", help="1 − cosine"
                )
            brushing_table(shown, f"invert.{key}", height=330, **look)
    st.caption(
        "1 − cosine of recovered and true row by each method, held-out rows only. Select rows to highlight"
        " them in the panes."
    )
