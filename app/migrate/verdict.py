"""The verdict of Migrate and its cost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import exports, messages
from app.glossary.card import caption
from app.glossary.terms import linked_html
from app.migrate.setup import MigrateSetup
from app.page_settings import remembered
from app.plain_text import plain_html
from relcore.base.numbers import counted
from relcore.base.report import Cells, Table
from relcore.migrate.charts import MigrationChart
from relcore.migrate.migration import LEFT_OUT
from relcore.migrate.price import UNKNOWN, Rate
from relcore.migrate.result import TITLES, MigrationResult, change_text
from relcore.migrate.verdict import NEIGHBOURS


def show_verdict(setup: MigrateSetup, result: MigrationResult) -> None:
    # The number fields stand above the verdict, because its length changes with these numbers.
    waiting = st.container(key="migrate-reading")  # floats, so that its message moves no field
    n_corpus, rate = _corpus(setup, result, waiting)
    with waiting, st.spinner("Computing the recommendation …"):
        scaled, note = result.scaled(n_corpus, rate)
        here = scaled
        if n_corpus != result.n_corpus:
            here = result.decided(rate)
        for_corpus = result.sentence_at(n_corpus, rate)
    st.session_state[RATE] = rate
    told = [one for one in result.cautions if LEFT_OUT in one]
    _headline(here, for_corpus, scaled.cost_sentence())
    for caution in result.cautions:
        if caution not in told:
            messages.warning(caution)
    _lead_to_thresholds()
    if result.next_note:
        with st.expander(f"{result.n_pairs:,} pairs are few: rows to embed next"):
            st.code("\n".join(result.embed_next), language=None)
    _options(scaled, rate, note)
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
        cells_table(scaled.details(), "migrate.details-table")
        caption(
            f"Adapter: {how}. {result.rewriting_note} {result.weight_note} Intervals: over queries, for this"
            " adapter; for differences, paired. Other pairs: how much an adapter from other pairs changes the"
            " score, 95 %. Chance: each query scored with another query's results. Curves: means of three"
            " draws of the pairs."
        )


def _headline(result: MigrationResult, for_corpus: str, cost: str) -> None:
    """Draw the verdict and its cost. If the verdict for the size of the user's corpus is given
    (`for_corpus`), it comes first, and the verdict for the loaded rows stands below it."""
    head, rest = lead(result)
    by_label = ""
    if result.relevance == "labels":
        by_label = " <small>Rows of the same label count as relevant.</small>"
    if for_corpus:
        first, _, more = for_corpus.partition(". ")
        messages.lead(f"<strong>{plain_html(first.rstrip('.'))}.</strong> {plain_html(cost)}{by_label}")
        caption(f"{more} For the {result.n_corpus:,} rows here: {head[:1].lower()}{head[1:]}.")
    else:
        messages.lead(f"<strong>{head}.</strong> {plain_html(f'{rest} {cost}')}{by_label}")


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


# Cells of `MigrationResult.overview` in the order of the page: what is gained stands beside what it costs.
_COLUMNS = (0, 1, 2, 3, 5, 4, 6)


def _options(result: MigrationResult, rate: Rate, note: str) -> None:
    cells = [[row[place] for place in _COLUMNS] for row in result.overview(rate)]
    told = f"Bars: {_basis(rate)} of a year, on one scale."
    if result.verdict.option:
        told = f"▸ is recommended. {told}"
    html = Table(shown=cells, caption=told).html()
    for name, told in result.explained.items():
        html = html.replace(f"{TITLES[name]}</td>", f"{TITLES[name]}<small>{told}</small></td>", 1)
    for change, bar in _interval_bars(result):
        html = html.replace(f"{change}</td>", f"{change}{bar}</td>", 1)
    for told, bar in _cost_bars(result, rate, [row[_COLUMNS.index(5)] for row in cells[1:]]):
        html = html.replace(f">{told}</td>", f">{told}{bar}</td>", 1)
    with st.container(key="migrate-options"):
        more = f"<summary>How to read this table</summary>{plain_html(note)}"
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


def _cost_bars(result: MigrationResult, rate: Rate, told: list[str]) -> list[tuple[str, str]]:
    """For each option, its cost of a year as text (`told`), and the HTML of a bar of this length, on one
    scale."""
    sizes = [rate.size_of_year(result.cost_of(option), result.n_corpus) for option in result.shown]
    largest = max(sizes, default=0.0) or 1.0
    shares = [f"{100 * size / largest:.1f}%" for size in sizes]
    bars = [f'<span class="relscope-cost"><i style="width:{share}"></i></span>' for share in shares]
    return list(zip(told, bars, strict=True))


def _interval_bars(result: MigrationResult) -> list[tuple[str, str]]:
    """For each option that is compared with "keep", the text of its change, and the HTML of a dot and a bar:
    the change and its interval. All bars have the same scale, and a line marks no change."""
    changes = [one.to_keep for one in map(result.option, result.shown) if one and one.to_keep]
    if not changes:
        return []
    low = min(0.0, *(one.low for one in changes))
    width = max(0.0, *(one.high for one in changes)) - low
    if not width:
        return []

    def place(value: float) -> str:
        return f"{3 + 94 * (value - low) / width:.1f}%"

    bars = []
    for one in changes:
        places = {"low": one.low, "value": one.value, "high": one.high, "keep": 0.0}
        style = ";".join(f"--{name}:{place(value)}" for name, value in places.items())
        bars.append((change_text(one), f'<span class="relscope-interval" style="{style}"><i></i></span>'))
    return bars


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


def lead(result: MigrationResult) -> tuple[str, str]:
    """Split the verdict into the answer and the reason. In a verdict from blind judgements, the first
    sentence is the answer, and all other sentences are the reason."""
    if result.verdict.headline:
        head, _, rest = result.verdict.headline.partition(". ")
        return head, rest
    head, _, rest = result.verdict.sentence.partition(": ")
    return head, rest[:1].upper() + rest[1:]


TOKENS_PER_WORD = 1.3  # average for English
RATE = "relscope.migrate-rate"
THRESHOLDS = "migrate.Similarity thresholds"  # key of the part in which the new cut-off is found
ROWS = "migrate.rows-{}"  # widget key, with the number of rows loaded here


def advised(result: MigrationResult) -> str:
    """The option that the page recommends, for the user's corpus and its price."""
    n_corpus = int(st.session_state.get(ROWS.format(result.n_corpus), result.n_corpus))
    scaled, _ = result.scaled(n_corpus, st.session_state.get(RATE, UNKNOWN))
    return scaled.verdict.option


def _corpus(setup: MigrateSetup, result: MigrationResult, waiting: DeltaGenerator) -> tuple[int, Rate]:
    """Draw fields for the number of rows in the user's corpus and for the price of embedding them. Returns
    both. While texts are read, `waiting` says so."""
    encoder = setup.specs[1].encoder
    seconds = 0.0
    if encoder:
        seconds = (encoder.seconds(result.n_corpus) or 0.0) / result.n_corpus
    with st.container(horizontal=True, vertical_alignment="bottom", key="migrate-corpus"):
        n = remembered(
            st.number_input,
            "Rows of your corpus",
            1,
            None,
            result.n_corpus,
            key=ROWS.format(result.n_corpus),
            width=240,
            help="Costs and recommendation are for this number of rows. Scores are for the rows loaded here.",
        )
        with st.popover("Time and price", icon=":material/payments:", key="migrate.rate"):
            rate = _rate(setup, seconds, waiting)
    return int(n), rate


def _rate(setup: MigrateSetup, seconds: float, waiting: DeltaGenerator) -> Rate:
    """Draw fields for the time and the price of embedding rows. `seconds` is the initial value for a row.
    While texts are read, `waiting` says so."""
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
    with waiting:
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
        placeholder="unknown",
    )
    return value or 0.0
