"""The anchors one by one, by name, as sets and lists; diagnostics, audit, and two sets compared."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import compute, exports, session
from app.anchors import lists
from app.anchors.audit import audit
from app.glossary.card import caption
from app.items import with_items
from app.tables import chosen_rows
from app.workspace import Workspace
from relcore.base.numbers import short
from relcore.compare.scene import Spectrum
from relcore.represent.anchors import AnchorDiagnostics
from relcore.runs.digest import digest_of
from relcore.spaces.space import Match, distinct_names

TABLE_ROWS = 5000  # above that many the browser's table gives up selections; the downloaded list has them all


def show_table(workspace: Workspace, pair: Match) -> None:
    rows = pair.source.rows(workspace.anchors)
    table = pd.DataFrame({"number": range(1, len(rows) + 1), "id": workspace.anchors})
    table["pinned"] = table["id"].isin(workspace.pinned)
    if pair.source.counts is not None:
        table["count"] = pair.source.counts[rows]
    if pair.source.labels is not None:
        table["label"] = pair.source.labels[rows]
    if len(table) > TABLE_ROWS:
        st.caption(f"The first {TABLE_ROWS:,} of {len(table):,} anchors; download the list for all.")
    shown, look = with_items(workspace, table.head(TABLE_ROWS))
    look["column_config"]["pinned"] = st.column_config.CheckboxColumn(
        help="Pinned anchors stay when you choose a new strategy"
    )
    key = f"anchors.table-{digest_of(workspace.anchors)}"  # another list, another selection
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
        few = len(workspace.anchors) < 2
        remove = {"on_click": session.remove_anchors, "args": (workspace.anchors,)}
        st.button("Remove all but pinned", disabled=few, **remove)


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
        " amplifies noise. Coverage is the mean cosine of a row to its nearest anchor; in brackets for the"
        " same number of random anchors."
    )
    drawn = Spectrum.of(workspace.recipe(pair.source.digest, pair.target.digest)).draw(by_name)
    exports.figure(drawn, "anchors.spectrum", "spectrum")
    rows = [(name, *ids) for name, diagnostics in by_name.items() for ids in diagnostics.near_duplicates]
    if rows:
        st.markdown(f"**{len(rows)} near-duplicates** are almost redundant:")
        duplicates = pd.DataFrame(rows, columns=["space", "anchor", "almost the same as", "cosine"])
        st.dataframe(duplicates, hide_index=True, height=200)


def _diagnosis(diagnostics: AnchorDiagnostics) -> dict[str, str]:
    return {
        "anchors": f"{diagnostics.n_anchors:,}",
        "rank": f"{diagnostics.rank:,} of {len(diagnostics.singular_values):,}",
        "effective rank": short(diagnostics.effective_rank, 1),
        "condition number": (
            "∞" if diagnostics.condition_number == float("inf") else short(diagnostics.condition_number, 1)
        ),
        "coverage": f"{short(diagnostics.coverage)} (random: {short(diagnostics.coverage_random)})",
        "near-duplicates, cosine > .9": f"{len(diagnostics.near_duplicates):,}",
    }


PARTS = {
    "sets": ("Named sets and lists", lists.named_sets),
    "diagnostics": ("Diagnostics", show_diagnostics),
    "audit": ("Are there wrong pairs among them?", audit),
    "compared": ("Compare two sets", lists.compare_sets),
}


def draw(workspace: Workspace, pair: Match) -> None:
    lists.pickers(workspace, pair)
    if workspace.anchors:
        show_table(workspace, pair)
    for name, (title, part) in PARTS.items():
        with st.expander(title, key=f"anchors.{name}", on_change="rerun") as opened:
            if opened.open:  # what takes time is worked out when it is looked at
                part(workspace, pair)
