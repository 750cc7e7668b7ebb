"""The answer of the Migrate page: the verdict in one sentence, the figure, the table."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import exports, messages, results
from app.migrate.migrate_setup import Setup
from app.plain_text import plain_html
from relcore.migration.figures import MigrationChart
from relcore.migration.result import MigrationResult
from relcore.names import ADAPTERS
from relcore.numbers import band, counted, short, signed

_STARTS_ITSELF = 20.0  # seconds
_ICONS = {"keep": "Keep the old model", "bridge": "Bridge", "twice": "Ask twice", "re-embed": "Re-embed the corpus"}


def measured(setup: Setup) -> MigrationResult | None:
    """The result, or a job with its bar."""
    return results.computed(
        setup.task, setup.specs, label="Compare the four options", unasked_seconds=_STARTS_ITSELF, spaces=setup.spaces
    )


def draw(setup: Setup, result: MigrationResult) -> None:
    """Verdict, figure and table."""
    verdict = result.verdict
    head = _ICONS[verdict.option]
    st.html(
        f'<p class="relscope-lead"><strong>{head}.</strong> {plain_html(_rest(verdict.sentence, head) + _shares(result))}</p>'
    )
    for caution in result.cautions:
        messages.warning(caution)
    if not verdict.is_clear:
        st.caption("The intervals do not tell this option from every other one. More queries would.")
    figure = MigrationChart(spaces=setup.specs, digests=setup.digests, migration=setup.task).draw(result)
    exports.chart(figure.interactive(exports.theme()), "migrate.chart")
    exports.export_bar(figure, "migrate")
    st.dataframe(printed(result), hide_index=True, key="migrate.table")
    st.caption(_told(result))


def printed(result: MigrationResult) -> pd.DataFrame:
    """One row per option, as the page shows it."""
    rows = []
    for one, row in zip(result.options, result.table().itertuples(), strict=True):
        gains = {
            f"to {name}": "–" if gain is None else f"{signed(gain.value)} ({band(gain.low, gain.high)})"
            for name, gain in (("keep", one.to_keep), ("re-embed", one.to_reembed))
        }
        rows.append(
            {
                "option": row.option,
                result.metric: short(one.value),
                "95 %": band(one.low, one.high),
                f"recall@{result.k}": short(one.recall),
                **gains,
            }
        )
    return pd.DataFrame(rows)


def _rest(sentence: str, head: str) -> str:
    rest = sentence.removeprefix(head).lstrip(":, ")
    return rest[:1].upper() + rest[1:]


def _shares(result: MigrationResult) -> str:
    """How much of re-embedding the options without it reach; "" where it is not measured or not better than keeping."""
    best = result.option("re-embed")
    if best is None or best.to_keep is None or best.to_keep.low <= 0:
        return ""
    bridge, twice = (result.option(name).value / best.value for name in ("bridge", "twice"))
    return f" Without re-embedding, the bridge reaches {100 * bridge:.0f} % of its score, asking twice {100 * twice:.0f} %."


def _told(result: MigrationResult) -> str:
    queries = counted(len(result.queries), "query", "queries")
    chosen = ADAPTERS[result.adapter].title
    how = f"chosen by cross-validation among {len(result.candidates)}" if result.candidates else "as set"
    what = "judged queries" if result.truth == "judgements" else "held-out rows, none of them a pair"
    return (
        f"{queries}: {what}; {result.n_rows:,} rows searched; {result.n_pairs:,} pairs. Adapter: {chosen}, {how}. Asking twice "
        f"adds the bridged scores {short(result.weight, 2)} times. Intervals: bootstrap over queries, paired for differences. "
        "Bands of the curves: over queries, mean of the draws."
    )
