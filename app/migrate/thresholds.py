"""Similarity thresholds: what the change of model does to one, and the map that restores it."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import exports, messages, results
from app.migrate.panel import MigrateSetup
from app.plain_text import plain
from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.migrate.figures import ThresholdScores
from relcore.migrate.migration import MigrationResult
from relcore.migrate.thresholds import SYSTEMS, ThresholdChange, printed

_STARTS_ITSELF = 20.0  # seconds
_KEEP = {"persist_state": "session"}
_TITLES = {"bridge": "After bridging", "re-embed": "After re-embedding"}


def draw(setup: MigrateSetup, result: MigrationResult) -> None:
    """The tab."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        system = st.segmented_control(
            "Scores",
            list(SYSTEMS),
            default="bridge",
            format_func=_TITLES.get,
            key="threshold.system",
            required=True,
            **_KEEP,
        )
        threshold = st.number_input(
            "Threshold of the old model",
            -1.0,
            1.0,
            None,
            0.01,
            key="threshold.value",
            placeholder="Ten rows per query",
            width=240,
            help=(
                "Rows with at least this cosine count as found. Empty: what ten rows per query reach on"
                " average."
            ),
            **_KEEP,
        )
    settings = {"migration": setup.task, "adapter": result.adapter, "truth": result.truth}
    task = ThresholdChange(**settings, system=system, threshold=threshold)
    try:
        outcome = results.computed(
            task,
            setup.specs,
            label="Restore the threshold",
            unasked_seconds=_STARTS_ITSELF,
            spaces=setup.spaces,
        )
    except SpaceError as error:
        messages.error(error)
        return
    if outcome is None:
        return
    st.markdown(f"**{plain(outcome.describe())}**")
    figure = ThresholdScores(spaces=setup.specs, digests=setup.digests, task=task).draw(outcome)
    exports.chart(figure.interactive(exports.theme()), "threshold.chart")
    exports.export_bar(figure, "threshold")
    table = printed(outcome)
    for column in table.columns[1:]:
        table[column] = [short(value, 1 if column == "rows per query" else 3) for value in table[column]]
    st.dataframe(table, hide_index=True, key="threshold.table")
    st.caption(
        f"A monotone map, isotonic regression of sorted scores, fitted on {outcome.n_fitted:,} queries and"
        f" judged on {outcome.n_queries:,} others. Wrong decisions: of the rows that the old or the new"
        " decision accepts, the share on which they differ. The map keeps how many rows pass; which ones"
        " pass changes with the model."
    )
    knots = pd.DataFrame({"new score": outcome.map.new, "old score": outcome.map.old})
    st.download_button(
        "Download the map (CSV)",
        knots.to_csv(index=False, lineterminator="\n"),
        "score-map.csv",
        "text/csv",
        key="threshold.download",
        icon=":material/download:",
        on_click="ignore",
        help="Knots of the map; interpolate linearly between them: numpy.interp(score, new, old).",
    )
