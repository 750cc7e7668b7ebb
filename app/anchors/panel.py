"""The anchors panel. The user chooses single anchors, sets or lists of anchors here, and sees what is good or
bad about them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, exports, messages, results, session
from app.anchors import lists
from app.glossary.card import caption
from app.items import items_of, with_items
from app.plain_text import plain
from app.tables import chosen_rows
from app.workspace import Workspace
from relcore.audit.anchor_audit import ALL, KEPT, AnchorAudit, AuditOutcome, PairAudit
from relcore.base.names import METRICS
from relcore.base.numbers import counted, short
from relcore.compare.agreement import centred_neighbours
from relcore.maps.pane_maps import View
from relcore.represent.diagnostics import AnchorDiagnostics
from relcore.represent.pair_audit import FEWEST_PAIRS
from relcore.runs.entries import digest_of
from relcore.spaces.matching import Match, distinct_names

_SHOWN_NEIGHBOURS = 6
_STARTS_ITSELF = 5.0  # seconds; an audit that takes longer waits for a click
_MOST_LISTED = 200


def audit(workspace: Workspace, pair: Match) -> None:
    if len(workspace.anchors) < FEWEST_PAIRS:
        messages.info(f"An audit needs {FEWEST_PAIRS} anchors or more.", icon=":material/star:")
        return
    specs = (workspace.source, workspace.target)
    task = PairAudit(
        workspace.anchors, projection=workspace.projection, k=workspace.k, convention=workspace.convention
    )
    outcome = results.result_of(task, specs, label="Audit the pairs", unasked_seconds=_STARTS_ITSELF)
    if outcome is None:
        return
    if outcome.decided:
        st.markdown(
            f"**{plain(outcome.headline)}** A suspect agrees no better than anchors that are mismatched on"
            f" purpose. On average, at most {100 * task.false_share:.0f} % of the suspects are right pairs,"
            " if all right pairs agree about equally well. Wrong pairs that agree by chance are not found."
        )
    else:
        messages.warning(outcome.headline)
    if len(outcome.suspects):
        _suspects(workspace, pair, outcome)
    elif len(doubtful := outcome.doubtful()):
        st.dataframe(doubtful[["anchor", "partner", "agreement"]], hide_index=True, key="audit.least")
    listed, drawn = st.columns([1.5, 1], gap="large")
    with listed:
        if outcome.scores:
            _scores(outcome)
    with drawn:
        recipe = AnchorAudit(source=specs[0], target=specs[1], digests=compute.digests(specs), audit=task)
        exports.figure(recipe.draw(outcome), "audit.chart")


def _suspects(workspace: Workspace, pair: Match, outcome: AuditOutcome) -> None:
    ids = tuple(outcome.anchors[position] for position in outcome.suspects)
    names = distinct_names((pair.source, pair.target))
    found = _neighbours(compute.pair_key(pair), digest_of(ids[:_MOST_LISTED]), pair, ids[:_MOST_LISTED])
    table = pd.DataFrame(
        {"id": list(ids[:_MOST_LISTED]), "agreement": outcome.agreement[outcome.suspects][:_MOST_LISTED]}
    )
    near = {f"near in {name}": column for name, column in zip(names, found, strict=True)}
    shown, look = with_items(items_of(workspace), table.assign(**near))
    look.setdefault("column_config", {})["agreement"] = st.column_config.NumberColumn(width=100)
    look["height"] = "content" if len(ids) < 9 else 340
    key = f"audit.table-{digest_of(ids)[:8]}"
    chosen = tuple(shown["id"].iloc[chosen_rows(shown, key, several=True, places=3, **look)])
    with st.container(horizontal=True):
        label = "Remove it"
        if len(ids) > 1:
            label = f"Remove all {len(ids):,}"
        st.button(
            label,
            key="audit.remove-all",
            icon=":material/delete_sweep:",
            type="primary",
            on_click=session.remove_suspects,
            args=(ids,),
            help="Removes all suspects except pinned anchors. No page scores removed rows. Can be undone.",
        )
        for label, icon, call in (
            ("Remove", ":material/delete:", session.remove_suspects),
            ("Show in panes", ":material/visibility:", session.select),
        ):
            st.button(
                f"{label} {len(chosen) or ''}",
                key=f"audit.{label.split()[0].lower()}",
                icon=icon,
                disabled=not chosen,
                on_click=call,
                args=(chosen,),
            )


@st.cache_data(max_entries=32, show_spinner=False)
def _neighbours(key: str, ids_key: str, _pair: Match, _ids: tuple[str, ...]) -> tuple[list[str], list[str]]:
    rows = _pair.source.rows(_ids)
    order = np.argsort(rows)  # `centred_neighbours` needs ascending row numbers
    found = centred_neighbours(_pair, rows[order], _SHOWN_NEIGHBOURS)
    back = np.argsort(order)
    return tuple([", ".join(_pair.ids[row] for row in lists[place]) for place in back] for lists in found)


def _scores(outcome: AuditOutcome) -> None:
    before = outcome.scores[ALL]
    after = outcome.scores.get(KEPT, {})
    rows = []
    for metric, score in before.items():
        row = {"score": METRICS[metric].title, ALL: short(score)}
        if after:
            change = outcome.differences.get(metric)
            row |= {KEPT: short(after[metric]), "change, 95 %": change.describe() if change else "–"}
        rows.append(row)
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="audit.scores")
    rows_scored = counted(next(iter(before.values())).n, "held-out row")
    if after:
        caption_text = (
            f"Both columns: relative scores on the same {rows_scored}; none is an anchor or a suspect."
            " Change: with the 95 % interval of the paired difference. No page scores suspects that you"
            " remove."
        )
    else:
        caption_text = f"Relative scores on {rows_scored}; none is an anchor."
    caption(caption_text)


TABLE_ROWS = 5000  # maximum number of rows of the table; in longer tables, the browser loses selections


def show_table(workspace: Workspace, pair: Match) -> None:
    rows = pair.source.rows(workspace.anchors)
    table = pd.DataFrame({"number": range(1, len(rows) + 1), "id": workspace.anchors})
    table["pinned"] = table["id"].isin(workspace.pinned)
    if pair.source.counts is not None:
        table["count"] = pair.source.counts[rows]
    if pair.source.labels is not None and any(pair.source.labels[rows]):
        table["label"] = pair.source.labels[rows]
    if len(table) > TABLE_ROWS:
        st.caption(f"The first {TABLE_ROWS:,} of {len(table):,} anchors; download the list for all.")
    shown, look = with_items(items_of(workspace), table.head(TABLE_ROWS))
    look["column_config"]["pinned"] = st.column_config.CheckboxColumn(
        help="Pinned anchors stay when you choose a new strategy"
    )
    # The table's key depends on the anchors, so a table of other anchors begins without a selection.
    key = f"anchors.table-{digest_of(workspace.anchors)}"
    chosen = tuple(shown["id"].iloc[chosen_rows(shown, key, several=True, height=380, **look)])
    with st.container(horizontal=True):
        for label, icon, call in (
            ("Remove", "delete", session.remove_anchors),
            ("Pin", "keep", session.pin_anchors),
            ("Unpin", "keep_off", session.unpin_anchors),
            ("Show in panes", "visibility", session.select),
        ):
            look = {"icon": f":material/{icon}:", "disabled": not chosen}
            st.button(f"{label} {len(chosen) or ''}", on_click=call, args=(chosen,), **look)
        st.button(
            "Remove all but pinned",
            disabled=len(workspace.anchors) < 2,
            on_click=session.remove_anchors,
            args=(workspace.anchors,),
        )


def show_diagnostics(workspace: Workspace, pair: Match) -> None:
    if not workspace.anchors:
        return
    spaces = (pair.source, pair.target)
    diagnosed = [compute.diagnose(space, workspace.anchors) for space in spaces]
    by_name = dict(zip(distinct_names(spaces), diagnosed, strict=True))
    table = pd.DataFrame({name: _diagnosis(diagnostics) for name, diagnostics in by_name.items()})
    st.dataframe(table.rename_axis("diagnostic").reset_index(), hide_index=True)
    caption(
        "All rows are centred and scaled to length 1. A large condition number means that inverting a space"
        " amplifies noise. Coverage is the mean cosine of a row to its nearest anchor; in brackets, that of"
        " the same number of random anchors."
    )
    rows = [(name, *ids) for name, diagnostics in by_name.items() for ids in diagnostics.near_duplicates]
    if rows:
        st.markdown(f"**{len(rows)} near-duplicates** are almost redundant:")
        duplicates = pd.DataFrame(rows, columns=["space", "anchor", "almost the same as", "cosine"])
        st.dataframe(duplicates, hide_index=True, height=200)


def _diagnosis(diagnostics: AnchorDiagnostics) -> dict[str, str]:
    if diagnostics.condition_number == float("inf"):
        condition = "∞"
    else:
        condition = short(diagnostics.condition_number, 1)
    return {
        "anchors": f"{diagnostics.n_anchors:,}",
        "rank": f"{diagnostics.rank:,} of {len(diagnostics.singular_values):,}",
        "effective rank": short(diagnostics.effective_rank, 1),
        "condition number": condition,
        "coverage": f"{short(diagnostics.coverage)} (random: {short(diagnostics.coverage_random)})",
        "near-duplicates, cosine > .9": f"{len(diagnostics.near_duplicates):,}",
    }


PARTS = {
    "sets": ("Named sets and lists", lists.named_sets),
    "diagnostics": ("Diagnostics", show_diagnostics),
    "audit": ("Are anchor pairs wrong?", audit),
}


def draw(workspace: Workspace, pair: Match, _: View) -> None:
    lists.pickers(workspace, pair)
    if workspace.anchors:
        show_table(workspace, pair)
    for name, (title, part) in PARTS.items():
        with st.expander(title, key=f"anchors.{name}", on_change="rerun") as opened:
            if opened.open:  # a closed part is not computed, because some parts are slow
                part(workspace, pair)
