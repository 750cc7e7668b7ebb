"""Drift over a series of versions: one line per quantity, and a heat map of versions by versions."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, messages, results
from app.plain_text import plain, plain_html
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.drift.drift_series import AGAINST, MOST_VERSIONS, DriftSeries
from relcore.drift.figures import DriftLines, DriftMap
from relcore.numbers import short

_STARTS_ITSELF = 20.0  # seconds
_KEEP = {"persist_state": "session"}


def series(workspace: Workspace, choosers: DeltaGenerator) -> None:
    """Choosers of the versions and of what each is compared with, then both figures."""
    labels = space_labels(workspace.spaces)
    with choosers:
        specs = tuple(
            st.multiselect(
                "Versions, in their order",
                list(labels),
                list(labels)[:MOST_VERSIONS],
                format_func=labels.get,
                key=f"drift.versions-{results.place_of(workspace.spaces)}",
                max_selections=MOST_VERSIONS,
                **_KEEP,
            )
        )
        against = st.segmented_control(
            "Compare with",
            AGAINST,
            default="previous",
            format_func=lambda name: AGAINST[name].title,
            key="drift.against",
            required=True,
            **_KEEP,
        )
    if len(specs) < 2:
        messages.info("Choose two versions or more.", icon=":material/timeline:")
        return
    task = DriftSeries()
    found = results.computed(task, specs, label=f"Compare {len(specs)} versions", unasked_seconds=_STARTS_ITSELF)
    if found is None:
        return
    st.html(f'<p class="relscope-lead"><b>{plain_html(found.headline(against))}</b></p>')
    digests = tuple(compute.load_space(spec).digest for spec in specs)
    lines = DriftLines(spaces=specs, digests=digests, series=task, against=against).draw(found)
    heat = DriftMap(spaces=specs, digests=digests, series=task).draw(found)
    for figure, key in ((lines, "drift-lines"), (heat, "drift-map")):
        exports.chart(figure.interactive(exports.theme()), f"{key}.chart", tools=False)
        exports.export_bar(figure, key)
    st.caption(
        plain(
            f"{found.n:,} rows that all versions have, {found.n_queries:,} of them as queries, k = {found.k}. Churn: share of "
            f"the nearest neighbours that changed, by chance {short(found.chance_churn)}. ρ: what remains after shift, scale "
            "and rotation. Rows of the map are old versions, columns new ones."
        )
    )
