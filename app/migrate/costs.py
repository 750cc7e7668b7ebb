"""Costs of the four options in the user's own numbers."""

from __future__ import annotations

import streamlit as st

from app import messages, results
from app.migrate.panel import MigrateSetup
from relcore.base.errors import SpaceError
from relcore.base.numbers import general, short
from relcore.migrate.costs import EncoderPace, Prices, cost_table, option_costs
from relcore.migrate.migration import MigrationResult

_KEEP = {"persist_state": "session"}
_USUAL_SECONDS = 10.0


def draw(setup: MigrateSetup, result: MigrationResult) -> None:
    """The tab."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        rows = int(
            st.number_input(
                "Rows of the corpus", 1, 10**12, len(setup.old), 1000, **_look(f"rows-{len(setup.old)}")
            )
        )
        there = 0 if len(setup.new) >= len(setup.old) else len(setup.new)
        n_embedded = int(
            st.number_input(
                "Rows with a new vector already", 0, 10**12, there, 1000, **_look(f"embedded-{there}")
            )
        )
        queries = int(st.number_input("Queries per month", 0, 10**12, 0, 1000, **_look("queries")))
    columns = st.columns(2, gap="large")
    numbers = {}
    for side, column, place in zip(("new", "old"), columns, (1, 0), strict=True):
        with column:
            st.markdown(f"**{side.capitalize()} model, per thousand rows or queries**")
            seconds = _measured(setup, place, side)
            with st.container(horizontal=True, vertical_alignment="bottom"):
                numbers[f"{side}_seconds"] = float(
                    st.number_input(
                        "Seconds",
                        0.0,
                        1e9,
                        _USUAL_SECONDS if seconds is None else seconds,
                        format="%.3f",
                        **_look(f"{side}-seconds-{seconds}"),
                    )
                )
                numbers[f"{side}_price"] = float(
                    st.number_input("Price", 0.0, 1e9, 0.0, format="%.4f", **_look(f"{side}-price"))
                )
    n_embedded = min(n_embedded, rows)
    try:
        costs = option_costs(
            Prices(rows=rows, queries=queries, **numbers), min(result.n_pairs, rows), n_embedded
        )
    except SpaceError as error:
        messages.error(error)
        return
    table = cost_table(costs, {one.option: one for one in result.options}, result.metric)
    for column in (result.metric, "low", "high", "gain per thousand rows"):
        table[column] = [short(value) for value in table[column]]
    for column in ("rows to embed", "seconds, once", "price, once", "seconds a month", "price a month"):
        table[column] = [general(value, 6) for value in table[column]]
    st.dataframe(table, hide_index=True, key="costs.table")
    st.caption(
        f"Rows with a new vector cost nothing more. Bridging needs {result.n_pairs:,} pairs. Asking twice"
        " embeds each query with both models. Scores are those measured above, on the rows that both models"
        " know; a larger corpus gives lower ones."
    )


def _measured(setup: MigrateSetup, place: int, side: str) -> float | None:
    """Seconds per thousand, measured here once a button is clicked; None where there is no encoder."""
    spec = setup.specs[place]
    if spec.encoder is None or spec.dataset is None:
        st.caption("No encoder at hand: enter what you know.")
        return None
    asked = f"costs.asked-{side}-{spec.option('key')}"
    if not st.session_state.get(asked):
        st.button(
            f"Measure {spec.encoder.title} here",
            key=f"costs.measure-{side}",
            icon=":material/timer:",
            on_click=lambda: st.session_state.update({asked: True}),
            help="Encodes 64 rows on this machine.",
        )
        return None
    task = EncoderPace(spec.dataset, spec.encoder)
    found = results.computed(task, (), label="Measure", spaces=(), unasked_seconds=600)
    if found is None:
        return None
    st.caption(f"Measured: {general(found.seconds)} s per thousand on this machine.")
    return round(found.seconds, 3)


def _look(name: str) -> dict:
    return {"key": f"costs.{name}", "width": 200, **_KEEP}
