"""The verdict of Migrate and its cost, as drawn on the page."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app import exports, messages
from app.glossary.card import caption
from app.glossary.terms import linked_html
from app.migrate.recommendation import Recommendation, recommendation_of
from app.migrate.setup import MigrateSetup
from app.page_settings import remembered
from app.plain_text import plain_html
from relcore.base.numbers import counted
from relcore.base.report import Cells, Table
from relcore.migrate.charts import MigrationChart
from relcore.migrate.migration import LEFT_OUT
from relcore.migrate.price import UNKNOWN, Rate
from relcore.migrate.result import MigrationResult
from relcore.migrate.verdict import NEIGHBOURS


def show_verdict(setup: MigrateSetup, result: MigrationResult) -> None:
    # The number fields stand above the verdict, because its length changes with these numbers.
    n_corpus, rate = _corpus(setup, result.n_corpus)
    with setup.waiting, st.spinner("Computing the recommendation …"):
        advice = recommendation_of(result, n_corpus, rate)
    st.session_state[RATE] = rate
    told = [one for one in result.cautions if LEFT_OUT in one]
    _headline(advice, result)
    for caution in result.cautions:
        if caution not in told:
            messages.warning(caution)
    _lead_to_thresholds()
    if result.next_note:
        with st.expander(f"{result.n_pairs:,} pairs are few: rows to embed next"):
            st.code("\n".join(result.embed_next), language=None)
    _options(advice, rate)
    figure = MigrationChart(spaces=setup.specs, digests=setup.digests, migration=setup.task).draw(result)
    exports.figure(figure, "migrate.chart")
    n = len(result.candidates)
    n_queries = len(result.queries)
    how = "as set"
    if n > 1:
        how = f"chosen by cross-validation over queries among {n}"
    kind = "held-out rows as"
    if result.relevance == "judgements":
        kind = "judged"
    relevant = _RELEVANT[result.relevance].format(k=result.k)
    caption(
        f"{n_queries:,} {kind} queries search {result.n_rows:,} rows. {relevant} The adapter is fitted on"
        f" {counted(result.n_pairs, 'other row')} that both models have embedded (pairs)."
        f" {' '.join([*told, 'Scores are rounded; differences are of unrounded scores.'])}"
    )
    with setup.details:
        cells_table(advice.details, "migrate.details-table")
        caption(
            f"Adapter: {how}. {result.rewriting_note} {result.weight_note} Intervals: over queries, for this"
            " adapter; for differences, paired. Other pairs: how much an adapter from other pairs changes the"
            " score, 95 %. Chance: each query scored with another query's results. Curves: means of three"
            " draws of the pairs."
        )


def _headline(advice: Recommendation, result: MigrationResult) -> None:
    """Draw the verdict and its cost. If there is a verdict for the size of the user's corpus, it comes first,
    and the verdict for the loaded rows stands below it."""
    by_label = ""
    if result.relevance == "labels":
        by_label = " <small>Rows of the same label count as relevant.</small>"
    if advice.for_corpus:
        first, _, more = advice.for_corpus.partition(". ")
        messages.lead(
            f"<strong>{plain_html(first.rstrip('.'))}.</strong> {plain_html(advice.cost)}{by_label}"
        )
        here = f"{advice.answer[:1].lower()}{advice.answer[1:]}"
        caption(f"{more} For the {result.n_corpus:,} rows here: {here}.")
    else:
        reason = plain_html(f"{advice.reason} {advice.cost}")
        messages.lead(f"<strong>{advice.answer}.</strong> {reason}{by_label}")


def _lead_to_thresholds() -> None:
    """Draw a button that opens the part Similarity thresholds. The script of the page scrolls to it."""
    st.button(
        "Do you keep only results above a similarity? Find the new cut-off",
        icon=":material/arrow_downward:",
        key="migrate.to-thresholds",
        type="tertiary",
        on_click=st.session_state.update,
        args=({THRESHOLDS: True},),
    )


def _options(advice: Recommendation, rate: Rate) -> None:
    """Draw the table of the options. A bar below a change shows it with its interval, and a line marks no
    change. A bar below a cost shows its size."""
    about = f"Bars: {_basis(rate)} of a year, on one scale."
    if advice.option:
        about = f"▸ is recommended. {about}"
    html = Table(shown=advice.cells, caption=about).html()
    for title, told in advice.explained.items():
        html = html.replace(f"{title}</td>", f"{title}<small>{told}</small></td>", 1)
    for change, places in advice.intervals:
        style = ";".join(f"--{name}:{place}" for name, place in places.items())
        bar = f'<span class="relscope-interval" style="{style}"><i></i></span>'
        html = html.replace(f"{change}</td>", f"{change}{bar}</td>", 1)
    for cost, share in advice.costs:
        bar = f'<span class="relscope-cost"><i style="width:{share}"></i></span>'
        html = html.replace(f">{cost}</td>", f">{cost}{bar}</td>", 1)
    with st.container(key="migrate-options"):
        more = f"<summary>How to read this table</summary>{plain_html(advice.note)}"
        st.html(
            f'<div class="relscope-report">{linked_html(html)}</div>'
            f'<details class="relscope-details">{more}</details>'
        )


def _basis(rate: Rate) -> str:
    """What the bars of the costs compare; see `Rate.size_of_year`."""
    if rate.has_price:
        return "price"
    if rate.seconds:
        return "time"
    return "rows to embed"


_RELEVANT = {
    "judgements": "Relevant for a query: the rows that your judgements name.",
    "labels": "Relevant for a query: the rows of its label, as no judged queries are loaded.",
    NEIGHBOURS: "Relevant for a query: its {k} nearest rows by the new model.",
}


def cells_table(cells: Cells, key: str) -> None:
    """Draw a table of texts, whose first row is the head. Columns that contain only dashes are left out."""
    columns, *lines = cells
    table = pd.DataFrame(lines, columns=columns)
    st.dataframe(table.loc[:, (table != "–").any()], hide_index=True, key=key)


TOKENS_PER_WORD = 1.3  # average for English
RATE = "relscope.migrate-rate"
THRESHOLDS = "migrate.Similarity thresholds"  # key of the part in which the new cut-off is found
ROWS = "migrate.rows-{}"  # widget key, with the number of rows loaded here


def advised(result: MigrationResult) -> str:
    """The option that the page recommends, for the user's corpus and its price."""
    n_corpus = int(st.session_state.get(ROWS.format(result.n_corpus), result.n_corpus))
    scaled, _ = result.scaled(n_corpus, st.session_state.get(RATE, UNKNOWN))
    return scaled.verdict.option


def _corpus(setup: MigrateSetup, n_rows: int) -> tuple[int, Rate]:
    """Draw fields for the number of rows in the user's corpus, at first the `n_rows` here, and for the price
    of embedding them. Returns both."""
    encoder = setup.specs[1].encoder
    seconds = 0.0
    if encoder:
        seconds = (encoder.seconds(n_rows) or 0.0) / n_rows
    with st.container(horizontal=True, vertical_alignment="bottom", key="migrate-corpus"):
        n = remembered(
            st.number_input,
            "Rows of your corpus",
            1,
            None,
            n_rows,
            key=ROWS.format(n_rows),
            width=240,
            help="Costs and recommendation are for this number of rows. Scores are for the rows loaded here.",
        )
        with st.popover("Time and price", icon=":material/payments:", key="migrate.rate"):
            rate = _rate(setup, seconds)
    return int(n), rate


def _rate(setup: MigrateSetup, seconds: float) -> Rate:
    """Draw fields for the time and the price of embedding rows. `seconds` is the initial value for a row."""
    seconds = _number(
        "seconds",
        "Seconds per row",
        seconds,
        "Seconds to embed a row. The table then says how long embedding takes.",
        setup,
    )
    price = _number(
        "price",
        "Price of a million tokens",
        0.0,
        "The table then says what embedding costs, and the smallest saving that counts can be set.",
        setup,
    )
    currency = remembered(
        st.text_input,
        "Currency",
        UNKNOWN.currency,
        8,
        key="migrate.currency",
        width=110,
        help="A symbol or a name, such as € or EUR. All prices on this page have it.",
    )
    queries = _number(
        "queries",
        "Queries in a year",
        float(UNKNOWN.queries),
        "Each query is embedded, and a cascade embeds the rows that it finds.",
        setup,
    )
    rate = Rate(seconds=seconds, price=price, queries=int(queries), currency=currency)
    if not price:  # savings are counted in rows
        return rate
    with setup.waiting:
        usual = _tokens(setup)
    tokens = _number(
        "tokens",
        "Tokens per row",
        usual,
        "Default, if the texts are loaded: 1.3 tokens per English word.",
        setup,
    )
    least = _number(
        "least_money",
        "Smallest saving that counts",
        UNKNOWN.least_money,
        "In the currency of the price. A simpler option comes first if another one saves less.",
        setup,
    )
    return rate._replace(tokens=tokens, least_money=least)


def _tokens(setup: MigrateSetup) -> float:
    """The mean number of tokens of a row. It is only asked for with a price, because loading the texts takes
    seconds."""
    words = [len(text.split()) for text in setup.texts(setup.old.ids[:1000])]
    return float(np.mean(words)) * TOKENS_PER_WORD


def rate_key(name: str, setup: MigrateSetup) -> str:
    """The key of the field for this number of the rate."""
    return f"migrate.rate-{name}-{setup.digest[:8]}"


def _number(name: str, label: str, usual: float, told: str, setup: MigrateSetup) -> float:
    """A field for a number of the rate; 0 if it is empty."""
    value = remembered(
        st.number_input,
        label,
        0.0,
        None,
        usual or None,
        None,
        "%.3g",
        key=rate_key(name, setup),
        help=told,
        placeholder="Type a number",
    )
    return value or 0.0
