"""The parts of Migrate on costs: what a cascade embeds, and smaller indexes."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app import exports, messages, results
from app.glossary.card import caption
from app.migrate.setup import MigrateSetup
from app.migrate.verdict import RATE, ROWS, cells_table, rate_key
from app.plain_text import plain
from app.widgets import bound
from relcore.figures.export import Exportable
from relcore.migrate.charts import CascadePrice, CheaperIndexChart
from relcore.migrate.cheaper_index import CheaperIndex
from relcore.migrate.price import UNKNOWN
from relcore.migrate.result import MigrationResult
from relcore.migrate.unlogged import DAYS, CascadeEstimate

_HEIGHT = 340  # pixels of a chart
_A_DAY = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)


def cascade_price(setup: MigrateSetup, result: MigrationResult) -> None:
    if result.price is None:
        _without_log(setup, result)
        return
    described = result.price.describe()
    st.markdown(f"**{plain(described[:1].upper() + described[1:])}.**")
    recipe = CascadePrice(spaces=setup.specs, digests=setup.digests, migration=setup.task)
    exports.figure(recipe.draw(result), "migrate.price", bar="migrate-price")
    cells_table(result.price.cells(), "migrate.needs")


def _without_log(setup: MigrateSetup, result: MigrationResult) -> None:
    """The cost by the number of queries a day, as long as there is no log of queries."""
    rate = st.session_state.get(RATE, UNKNOWN)
    n_corpus = int(st.session_state.get(ROWS.format(result.n_corpus), result.n_corpus))
    here = rate.queries / DAYS
    if here >= 1:
        here = round(here)
    bound(
        st.select_slider,
        "Queries a day",
        "migrate.a-day",
        here,
        partial(_set_queries, setup),
        options=sorted({here, *_A_DAY}),
        format_func=lambda number: f"{number:,.3g}" if number < 1 else f"{number:,.0f}",
        width=420,
        help="Also changes “Queries in a year” above, and so the costs in the table.",
    )
    cost = result.cost_of("cascade")
    estimate = CascadeEstimate(
        n_rows=n_corpus,
        rows_now=min(cost.rows_now, n_corpus),
        n_candidates=result.n_candidates,
        queries_a_day=float(here),
    )
    told = estimate.describe()
    if rate.is_known:
        embedding = rate.of(float(estimate.most(DAYS)), 2 * rate.queries)
        told += f" Embedding rows and queries: at most {embedding}."
    st.markdown(f"**{plain(told)}**")
    _figure(estimate.draw(), "migrate-estimate")
    st.caption(
        f"Each query finds {result.n_candidates:,} rows, and a row is embedded when it is found first. Real"
        " queries find popular rows again and again, so they usually need fewer than the dashed line says. A"
        " log of queries, embedded by both models, tells how many: add it under Queries, above."
    )


def _figure(drawn: Exportable, key: str) -> None:
    exports.chart(drawn.interactive(exports.theme()).update_layout(height=_HEIGHT), f"{key}.chart")
    exports.export_bar(drawn, key)


def _set_queries(setup: MigrateSetup, number: float) -> None:
    st.session_state[rate_key("queries", setup)] = float(round(number * DAYS))


def cheaper_index(setup: MigrateSetup, result: MigrationResult) -> None:
    task = CheaperIndex(migration=setup.task, adapter=result.adapter, weight=result.weight)
    outcome = results.result_of(
        task,
        setup.specs,
        label="Compare cheaper indexes",
        unasked_seconds=results.UNASKED_SECONDS,
        spaces=setup.spaces,
    )
    if outcome is None:
        return
    report = outcome.report()
    st.markdown(f"**{plain(report.sentence)}**")
    for note in report.notes:
        messages.warning(note)
    recipe = CheaperIndexChart(spaces=setup.specs, digests=setup.digests, task=task)
    _figure(recipe.draw(outcome), "migrate-indexes")
    (table,) = report.tables
    with st.expander("All numbers", icon=":material/table_rows:"):
        cells_table(table.shown, "migrate.compressed")
    caption(table.caption)
