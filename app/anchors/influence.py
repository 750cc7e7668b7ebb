"""Influence of each anchor on the scores, and which anchors to drop and to add, with buttons."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from app import compute, exports, messages, results, session
from app.compare.selection import FULL_HELP, offered
from app.items import with_items
from app.plain_text import plain
from app.tables import chosen_rows
from app.workspace import Workspace
from relcore.base.names import METRICS
from relcore.base.numbers import short
from relcore.compare.audit_figures import InfluenceChart
from relcore.compare.influence import CANDIDATES, AnchorInfluence, InfluenceOutcome
from relcore.runs.digest import digest_of
from relcore.scores.score import Difference
from relcore.spaces.space import Match

_FEWEST = 3
_STARTS_ITSELF = 5.0  # seconds
_TABLE_ROWS = 2000


def influence(workspace: Workspace, pair: Match) -> None:
    """The tab."""
    if len(workspace.anchors) < _FEWEST:
        messages.info(f"Influence needs {_FEWEST} anchors or more.", icon=":material/star:")
        return
    candidates = st.segmented_control(
        "Rows that may be added",
        CANDIDATES,
        default=CANDIDATES[0],
        key="influence.candidates",
        required=True,
        persist_state="session",
        help="A hundred rows are chosen this way; those that raise CKA most are suggested.",
    )
    settings = {"projection": workspace.projection, "k": workspace.k, "convention": workspace.convention}
    task, specs = (
        AnchorInfluence(workspace.anchors, candidates=candidates, **settings),
        (
            workspace.source,
            workspace.target,
        ),
    )
    outcome = results.computed(task, specs, label="Compute the influence", unasked_seconds=_STARTS_ITSELF)
    if outcome is None:
        return
    listed, drawn = st.columns([1.5, 1], gap="large")
    with listed:
        _table(workspace, outcome)
        for name, ids, label, call in (
            ("drop", outcome.drop, "Drop", session.remove_anchors),
            ("add", outcome.add, "Add", session.add_anchors),
        ):
            _suggestion(name, ids, label, call, outcome)
    with drawn:
        digests = tuple(compute.load_space(spec).digest for spec in specs)
        figure = InfluenceChart(source=specs[0], target=specs[1], digests=digests, influence=task).draw(
            outcome
        )
        exports.chart(figure.interactive(exports.theme()), "influence.chart")
        exports.export_bar(figure, "influence")


def _table(workspace: Workspace, outcome: InfluenceOutcome) -> None:
    head = f", stitched accuracy {short(outcome.accuracy)}" if outcome.classes else ""
    st.caption(
        f"With all anchors: linear CKA {short(outcome.cka)}, cosine {short(outcome.cosine)}, Jaccard"
        f" {short(outcome.jaccard)}, MRR {short(outcome.mrr)}{head}. Each column is the score with the anchor"
        f" less the score without it, exactly, on {outcome.n_choosing:,} held-out rows; for Jaccard and MRR,"
        f" {outcome.n_queries:,} queries among {outcome.n_searched:,} of them"
        + (
            f"; accuracy is that of a ridge head of the source on {outcome.n_labelled:,} other rows of the"
            " target with a label"
            if head
            else ""
        )
        + ". Negative: the score is higher without the anchor. This does not find wrong pairs; Audit does."
    )
    shown, look = with_items(workspace, outcome.table().rename(columns={"anchor": "id"}).head(_TABLE_ROWS))
    for column in shown.select_dtypes("number"):
        look["column_config"][column] = st.column_config.NumberColumn(format="%.5f")
    key = f"influence.table-{digest_of(outcome.anchors)[:8]}"
    chosen = tuple(shown["id"].iloc[chosen_rows(shown, key, several=True, height=300, **look)])
    with st.container(horizontal=True):
        for label, icon, call in (
            ("Remove", ":material/delete:", session.remove_anchors),
            ("Show in panes", ":material/visibility:", session.select),
        ):
            place = {"key": f"influence.{label.split()[0].lower()}", "icon": icon, "disabled": not chosen}
            st.button(f"{label} {len(chosen) or ''}", on_click=call, args=(chosen,), **place)


def _suggestion(name: str, ids: tuple[str, ...], label: str, call, outcome: InfluenceOutcome) -> None:
    what = "drop" if name == "drop" else "add next"
    if not ids:
        st.caption(f"Nothing to {what}: no change raises CKA.")
        return
    with st.container(border=True):
        st.markdown(f"**To {what}:** {plain(', '.join(ids))}")
        st.caption(
            f"On {outcome.n_judging:,} other held-out rows, with 95 % intervals:"
            f" {_told(outcome.after.get(name, {}))}. Chosen one after the other by the exact gain in CKA."
        )
        with st.container(horizontal=True):
            number = f"{len(ids)}" if len(ids) > 1 else "it"
            full = name == "add" and len(offered(ids, outcome.anchors)) < len(ids)
            shown = {"disabled": full, "help": FULL_HELP if full else None}
            st.button(f"{label} {number}", key=f"influence.{name}-all", on_click=call, args=(ids,), **shown)
            st.button("Show in panes", key=f"influence.{name}-show", on_click=session.select, args=(ids,))


def _told(changes: Mapping[str, Difference]) -> str:
    return "; ".join(f"{METRICS[metric].title} {change.describe()}" for metric, change in changes.items())
