"""Partial re-embedding: quality by the share of rows embedded again, and the order to embed them in."""

from __future__ import annotations

import streamlit as st

from app import exports, messages, results
from app.migrate.panel import MigrateSetup
from app.plain_text import plain
from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.migrate.figures import PartialCurves
from relcore.migrate.migration import MigrationResult
from relcore.migrate.partial import ORDERS, PartialReembedding, full_order
from relcore.spaces.space import LatentSpace

_STARTS_ITSELF = 20.0  # seconds
_KEEP = {"persist_state": "session"}


def draw(setup: MigrateSetup, result: MigrationResult) -> None:
    """The tab."""
    gain = st.number_input(
        f"Gain that pays, {result.metric}",
        0.001,
        0.5,
        0.01,
        0.005,
        format="%.3f",
        key="partial.gain",
        width=220,
        help="The stop sign stands where the rows that are left do not clearly add this much.",
        **_KEEP,
    )
    task = PartialReembedding(
        migration=setup.task, adapter=result.adapter, truth=result.truth, gain=float(gain)
    )
    try:
        outcome = results.computed(
            task,
            setup.specs,
            label="Embed rows again step by step",
            unasked_seconds=_STARTS_ITSELF,
            spaces=setup.spaces,
        )
    except SpaceError as error:
        messages.error(error)
        return
    if outcome is None:
        return
    st.markdown(f"**{plain(outcome.describe())}**")
    figure = PartialCurves(spaces=setup.specs, digests=setup.digests, task=task).draw(outcome)
    exports.chart(figure.interactive(exports.theme()), "partial.chart")
    exports.export_bar(figure, "partial")
    st.caption(
        "New queries search rows that are embedded again directly, and the others through the adapter;"
        " scores are brought to one scale by least squares. Residual: 1 − cosine of a row and its mapped new"
        " vector, known for pairs by cross-validation, elsewhere predicted from the ten nearest pairs. Skill"
        f" of that prediction: {short(outcome.skill, 2)} (1 is perfect, 0 no better than the mean)."
    )
    _list(setup, result)


def _list(setup: MigrateSetup, result: MigrationResult) -> None:
    left = len(setup.old) - int(setup.old.index.isin(setup.new.index).sum())
    if not left:
        st.caption("Every row has a new vector here, so there is no list of rows to embed.")
        return
    orders = [order for order in ORDERS if order != "traffic" or setup.old.counts is not None]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        order = st.segmented_control(
            "Order",
            orders,
            default="residual",
            format_func=ORDERS.get,
            key="partial.order",
            required=True,
            **_KEEP,
        )
        ids = _ordered(setup.old.digest, setup.new.digest, result.adapter, order, setup.old, setup.new)
        st.download_button(
            f"Download the list of {left:,} rows",
            "\n".join(ids) + "\n",
            "embed-in-this-order.txt",
            "text/plain",
            key="partial.download",
            icon=":material/download:",
            on_click="ignore",
        )


@st.cache_data(max_entries=4, show_spinner="Ordering the rows …")
def _ordered(old: str, new: str, adapter: str, order: str, _old: LatentSpace, _new: LatentSpace) -> list[str]:
    return list(full_order(_old, _new, adapter, order))
