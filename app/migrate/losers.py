"""What goes wrong, by query: the worst losers with what each option finds, by class or cluster, and shown
in Compare.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from app import messages, session
from app.migrate.panel import MigrateSetup, texts_of
from app.tables import chosen_rows
from relcore.base.numbers import band, short, signed
from relcore.migrate.migration import TITLES, MigrationResult, clusters_of, losses_by_group
from relcore.runs.digest import digest_of

_KEEP = {"persist_state": "session"}
_LISTED = 200
_COMPARE = Path(__file__).parents[2] / "pages" / "compare.py"


def draw(setup: MigrateSetup, result: MigrationResult) -> None:
    """The tab."""
    measured = [name for name in TITLES if name in result.scores]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        usual = result.verdict.option if result.verdict.option not in ("keep",) else "bridge"
        option = _option("Option", [name for name in measured if name != "keep"], usual, "losers.option")
        to = _option(
            "Compared with", [name for name in measured if name != option], "keep", f"losers.to-{option}"
        )
    table = result.losers(option, to)
    lost, won = int((table.change < 0).sum()), int((table.change > 0).sum())
    st.markdown(
        f"**{lost:,} of {len(table):,} queries lose by “{TITLES[option]}” compared with “{TITLES[to]}”;"
        f" {won:,} win.** Select a query to see what each option finds."
    )
    shown = table.head(_LISTED).copy()
    texts = texts_of(setup.specs[0], list(shown["query"]))
    if any(texts):
        shown.insert(1, "text", texts)
    for column in (TITLES[to], TITLES[option], "change"):
        shown[column] = [short(value) for value in shown[column]]
    key = f"losers.table-{digest_of((option, to, result.queries[:50]))[:8]}"
    rows = chosen_rows(shown, key, height=300)
    if rows:
        _one_query(setup, result, str(table["query"].iloc[rows[0]]))
    _by_group(setup, result, option, to)


def _option(label: str, options: list[str], usual: str, key: str) -> str:
    first = usual if usual in options else options[0]
    return st.segmented_control(
        label,
        options,
        default=first,
        format_func=TITLES.get,
        key=f"{key}-{len(options)}-{first}",
        required=True,
        **_KEEP,
    )


def _one_query(setup: MigrateSetup, result: MigrationResult, query: str) -> None:
    """The rows that each option finds for one query; relevant ones are marked."""
    place = result.queries.index(query)
    relevant = set(result.relevant_row[result.relevant_query == place].tolist())
    old, columns = setup.old, {}
    for option, found in result.found.items():
        rows = found[place][found[place] >= 0]
        texts = texts_of(setup.specs[0], list(old.ids[rows]))
        named = [text or str(old.ids[row]) for row, text in zip(rows, texts, strict=True)]
        columns[TITLES[option]] = [
            f"{'✓' if row in relevant else '·'} {name}" for row, name in zip(rows, named, strict=True)
        ]
    longest = max(map(len, columns.values()), default=0)
    table = pd.DataFrame({name: cells + [""] * (longest - len(cells)) for name, cells in columns.items()})
    narrow = {name: st.column_config.TextColumn(width=260) for name in table.columns}
    st.dataframe(table, hide_index=True, key="losers.found", column_config=narrow)
    st.caption(f"✓ marks relevant rows; there are {len(relevant):,}.")
    ids = {str(old.ids[row]) for found in result.found.values() for row in found[place] if row >= 0}
    if query in old.index:
        ids.add(query)
    st.button(
        "Show in Compare",
        key="losers.compare",
        icon=":material/join_inner:",
        on_click=_show,
        args=(setup, tuple(sorted(ids))),
        help="Makes the two models source and target, and selects these rows in the linked panes.",
    )
    if st.session_state.pop("losers.go", False):
        st.switch_page(_COMPARE)


def _show(setup: MigrateSetup, ids: tuple[str, ...]) -> None:
    old, new = setup.specs[:2]
    workspace = session.workspace()
    spaces = tuple(dict.fromkeys((*workspace.spaces, old, new)))
    session.guarded(lambda: session.edit("compare the two models", spaces=spaces, source=old, target=new))
    session.select(ids)
    st.session_state["losers.go"] = True


def _by_group(setup: MigrateSetup, result: MigrationResult, option: str, to: str) -> None:
    """Classes of the queries, or clusters of their old vectors where rows have no labels."""
    rows = setup.old.index.get_indexer(pd.Index(result.queries, dtype=object))
    if (rows < 0).any():
        return
    change = np.asarray(result.scores[option], dtype=np.float64) - result.scores[to]
    labels = setup.old.labels
    groups = (
        labels[rows]
        if labels is not None
        else _clusters(setup.old.digest, digest_of(result.queries), setup, rows)
    )
    table = losses_by_group(change, groups)
    if table.empty:
        return
    st.markdown(f"#### By {'class' if labels is not None else 'cluster'}")
    worst = table[table.p < 0.05]
    if len(worst):
        messages.warning(
            f"{', '.join(worst.group)}: change for the worse, compared with random groups of queries of the"
            " same size."
        )
    shown = pd.DataFrame(
        {
            "group": table.group,
            "queries": table.queries,
            "mean change": [signed(value) for value in table.change],
            "random groups of that size, 95 %": [
                band(*ends) for ends in zip(table.low, table.high, strict=True)
            ],
            "p": [short(value) for value in table.p],
        }
    )
    st.dataframe(shown, hide_index=True, key="losers.groups")


@st.cache_data(max_entries=8, show_spinner=False)
def _clusters(digest: str, queries: str, _setup: MigrateSetup, _rows: np.ndarray) -> np.ndarray:
    return clusters_of(_setup.old.vectors[_rows], _setup.old.ids[_rows])
