"""Choose anchors by lasso, click, search, list or strategy, and see how each change moves the scores."""

from __future__ import annotations

import dataclasses

import pandas as pd
import streamlit as st

from app import compute, exports, messages, panes, session, sidebar
from app.anchors import lists
from app.anchors.audit import audit
from app.anchors.lists import compare_sets, headline_metric, step_between
from app.compare.inspector import inspector
from app.items import with_items
from app.jobs import scores
from app.tables import chosen_rows
from app.workspace import Workspace
from relcore.base.names import METRICS
from relcore.base.numbers import counted, short
from relcore.catalog.catalog import with_unscored
from relcore.compare.scene import Spectrum
from relcore.represent.anchors import AnchorDiagnostics
from relcore.runs.digest import digest_of
from relcore.scores.score import Difference, Score
from relcore.spaces.space import Match, distinct_names

TABLE_ROWS = 5000  # above that many the browser's table gives up selections; the downloaded list has them all


def _scored_by(workspace: Workspace) -> tuple:
    """What scores depend on beside the anchors; suspects that a step removes were anchors before it."""
    ends = (with_unscored(end, ()) for end in (workspace.source, workspace.target))
    return *ends, workspace.projection, workspace.k, workspace.convention


def effect(
    workspace: Workspace, pair: Match
) -> tuple[dict[str, Score], dict[str, Score], dict[str, Difference]]:
    """Scores with these anchors in the lower panes' representation, those before the last step, and their
    paired differences.
    """
    form, anchors, before = workspace.form, workspace.anchors, session.history().before
    settings = workspace.projection, workspace.k, workspace.convention
    now = scores(pair, form, anchors, *settings, alone=True)
    if (
        not before
        or before.anchors in ((), anchors)
        or _scored_by(before) != _scored_by(workspace)
        or any(identifier not in pair.source.index for identifier in before.anchors)
        or not compute.can_be_scored(pair, before.anchors, anchors)
    ):
        return now, {}, {}
    sampled = any(score.interval for score in now.values())
    earlier = (compute.live_scores if sampled else scores)(pair, form, before.anchors, *settings, alone=True)
    return now, earlier, compute.score_differences(pair, form, before.anchors, anchors, *settings)


def show_effect(workspace: Workspace, pair: Match) -> None:
    form, (now, before, moved) = workspace.form, effect(workspace, pair)
    first, left = headline_metric(now), ""
    if before and (earlier := session.history().before.anchors):
        kept = len({*earlier} & {*workspace.anchors})
        left = f" The last step kept {kept:,} of {counted(len(earlier), 'anchor')}."
    for column, (metric, score) in zip(st.columns(len(now)), now.items(), strict=True):
        change, help_ = moved.get(metric), score.describe()
        step = step_between(before[metric], score, change) if change and metric in before else None
        if change:
            help_ += f". Last step, on rows that are anchors neither before nor after: {change.describe()}"
        look = {"delta": step, "delta_color": "normal" if metric == first else "off", "help": help_}
        column.metric(f"{METRICS[metric].title}, {form}", short(score), border=True, **look)
    st.caption(
        f"{'; '.join(score.describe() for score in now.values())}. Only held-out rows are scored, never an"
        " anchor. An arrow shows the score before the last step and how much it changed, if the 95 % interval"
        f" of the paired difference, on at most {compute.DIFFERENCE_ROWS:,} rows, excludes 0."
        f" Only {METRICS[first].title} has a colour: cosine and CKA can rise with fewer anchors, although"
        f" fewer neighbours are found.{left}"
    )


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
    spaces = (pair.source, pair.target)
    diagnosed = [compute.diagnose(space, workspace.anchors) for space in spaces]
    by_name = dict(zip(distinct_names(spaces), diagnosed, strict=True))
    table = pd.DataFrame({name: _diagnosis(diagnostics) for name, diagnostics in by_name.items()})
    st.dataframe(table.rename_axis("diagnostic").reset_index(), hide_index=True)
    st.caption(
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


workspace = session.workspace()
pair = compute.matched(workspace.source, workspace.target)
with st.container(key="above-anchors"):
    # not in an `st.empty`, which each run replaces: popovers would close, and fields lose the keyboard
    bar = st.container()
    st.empty()  # a block with nothing in it takes no room before `above` is drawn


def above() -> None:
    with bar:
        lists.pickers(workspace, pair)


scored = bool(workspace.anchors) and compute.can_be_scored(pair, workspace.anchors)
quickly = scored and compute.is_scored_quickly(pair)
with sidebar.panes_first(above, scored_quickly=quickly):
    view = dataclasses.replace(workspace.view, everything=True, show_anchors=True)
    forms = workspace.panes if workspace.form in workspace.panes else (workspace.panes[0], workspace.form)
    drawing = panes.draw(pair, dataclasses.replace(workspace, view=view, panes=forms))
    picture, side = st.columns([3.3, 1], gap="medium")
    with picture:
        panes.show(pair, drawing, "anchors", height=620)
    if quickly:
        # meanwhile the browser draws the panes: whatever else it had got, it would draw first
        effect(workspace, pair)
with picture:
    panes.export_bar(drawing, "anchors")
with side:
    inspector(pair)
if scored:
    show_effect(workspace, pair)
elif workspace.anchors:
    messages.info(compute.too_few_held_out(pair, workspace.anchors), icon=":material/info:")
else:
    st.info(
        "No anchors yet. Click a point and make it one, draw with the lasso, type names above, or choose a"
        " strategy."
    )
titles = ["All anchors", "Named sets and lists", "Diagnostics", "Audit", "Compare sets"]
listed, sets, judged, audited, compared = st.tabs(titles, key="anchors.tabs", on_change="rerun")
with listed:
    show_table(workspace, pair)
with sets:
    lists.named_sets(workspace, pair)
with judged:
    if judged.open and workspace.anchors:  # what takes time is worked out when it is looked at
        show_diagnostics(workspace, pair)
with audited:
    if audited.open:
        audit(workspace, pair)
with compared:
    if compared.open:
        compare_sets(workspace, pair)
