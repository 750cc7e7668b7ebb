"""The tabs below a migration's verdict: thresholds, queries that get worse, the adapter as files."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from app import exports, messages, results
from app.migrate.panel import STARTS_ITSELF, MigrateSetup
from app.page_settings import kept, segments
from app.plain_text import plain
from app.tables import chosen_rows
from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS
from relcore.base.numbers import band, short, signed
from relcore.base.writing import temporary
from relcore.migrate.adapters import GRAPHS, SNIPPET
from relcore.migrate.migration import (
    AFTER,
    TITLES,
    MigrationResult,
    ThresholdChange,
    ThresholdScores,
    clusters_of,
    export_result,
    losses_by_group,
    printed,
)
from relcore.papers.runs import commit_of
from relcore.runs.digest import digest_of

_LISTED = 200
_CODE = """from apply import corpus, queries  # the file apply.py needs NumPy and nothing else

scores = queries(new_vectors) @ corpus(old_vectors).T  # cosines; search the two sides with any index"""


def thresholds(setup: MigrateSetup, result: MigrationResult) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        system = segments("Scores", AFTER, "threshold.system", "bridge")
        threshold = kept(
            st.number_input,
            "Threshold of the old model",
            -1.0,
            1.0,
            None,
            0.01,
            key="threshold.value",
            placeholder="Ten rows per query",
            width=240,
            help="Rows with at least this cosine count as found. Empty: what ten rows per query reach.",
        )
    settings = {"migration": setup.task, "adapter": result.adapter}
    task = ThresholdChange(**settings, system=system, threshold=threshold)
    try:
        outcome = results.computed(
            task,
            setup.specs,
            label="Restore the threshold",
            unasked_seconds=STARTS_ITSELF,
            spaces=setup.spaces,
        )
    except SpaceError as error:
        messages.error(error)
        return
    if outcome is None:
        return
    st.markdown(f"**{plain(outcome.describe())}**")
    figure = ThresholdScores(spaces=setup.specs, digests=setup.digests, task=task).draw(outcome)
    exports.figure(figure, "threshold.chart")
    table = printed(outcome)
    for column in table.columns[1:]:
        table[column] = [short(value, 1 if column == "rows per query" else 3) for value in table[column]]
    st.dataframe(table, hide_index=True, key="threshold.table")
    st.caption(
        f"A monotone map: isotonic regression of sorted scores, fitted on {outcome.n_fitted:,} queries and"
        f" judged on {outcome.n_queries:,} others. Wrong decisions: of the rows that the old or the new"
        " decision accepts, the share on which they differ. The map keeps the number of rows that pass; which"
        " ones pass changes with the model."
    )
    knots = pd.DataFrame({"new score": outcome.map.new, "old score": outcome.map.old})
    exports.download(
        "Download the map (CSV)",
        knots.to_csv(index=False, lineterminator="\n"),
        "score-map.csv",
        "text/csv",
        "threshold.download",
        help="numpy.interp(score, new, old) applies it.",
    )


def queries_that_get_worse(setup: MigrateSetup, result: MigrationResult) -> None:
    measured = [name for name in TITLES if name in result.scores]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        usual = "bridge" if result.verdict.option == "keep" else result.verdict.option
        others = [name for name in measured if name != "keep"]
        option = _option("Option", others, usual, "worse.option")
        others = [name for name in measured if name != option]
        to = _option("Compared with", others, "keep", f"worse.to-{option}")
    table = result.worst_queries(option, to)
    lost, won = int((table.change < 0).sum()), int((table.change > 0).sum())
    st.markdown(
        f"**{lost:,} of {len(table):,} queries get worse by “{TITLES[option]}” compared with “{TITLES[to]}”;"
        f" {won:,} get better.** Select a query to see what each option finds."
    )
    shown = table.head(_LISTED).copy()
    texts = _texts(setup, shown["query"], queries=True)
    if any(texts):
        shown.insert(1, "text", texts)
    for column in (TITLES[to], TITLES[option], "change"):
        shown[column] = [short(value) for value in shown[column]]
    key = f"worse.table-{digest_of((option, to, result.queries[:50]))[:8]}"
    if rows := chosen_rows(shown, key, height=300):
        _one_query(setup, result, str(table["query"].iloc[rows[0]]))
    _by_group(setup, result, option, to)


def _option(label: str, names: list[str], usual: str, key: str) -> str:
    first = usual if usual in names else names[0]
    titles = {name: TITLES[name] for name in names}
    return segments(label, titles, f"{key}-{len(names)}-{first}", first)


def _texts(setup: MigrateSetup, ids, queries: bool = False) -> list[str]:
    items = setup.items(queries)
    return items.texts(list(ids)) if items is not None and items.has_texts else [""] * len(ids)


def _one_query(setup: MigrateSetup, result: MigrationResult, query: str) -> None:
    place, old = result.queries.index(query), setup.old
    relevant = set(result.relevant_row[result.relevant_query == place].tolist())
    columns = {}
    for option, lists in result.found.items():
        rows = lists[place][lists[place] >= 0]
        columns[TITLES[option]] = pd.Series(
            [
                f"{'✓' if row in relevant else '·'} {text or old.ids[row]}"
                for row, text in zip(rows, _texts(setup, old.ids[rows]), strict=True)
            ],
            dtype=object,
        )
    table = pd.DataFrame(columns).fillna("")
    narrow = {name: st.column_config.TextColumn(width=260) for name in table.columns}
    st.dataframe(table, hide_index=True, key="worse.found", column_config=narrow)
    st.caption(f"✓ marks relevant rows; there are {len(relevant):,}.")


def _by_group(setup: MigrateSetup, result: MigrationResult, option: str, to: str) -> None:
    rows, labels = setup.old.index.get_indexer(pd.Index(result.queries, dtype=object)), setup.old.labels
    if (rows < 0).any():
        return
    groups = _clusters(setup.old.digest, digest_of(rows), setup, rows) if labels is None else labels[rows]
    table = losses_by_group(np.asarray(result.scores[option], np.float64) - result.scores[to], groups)
    if table.empty:
        return
    st.markdown(f"### By {'cluster' if labels is None else 'class'}")
    worst = table[table.p < 0.05]
    if len(worst):
        messages.warning(f"{', '.join(worst.group)}: worse than random groups of queries of the same size.")
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
    st.dataframe(shown, hide_index=True, key="worse.groups")


@st.cache_data(max_entries=8, show_spinner=False)
def _clusters(digest: str, queries: str, _setup: MigrateSetup, _rows: np.ndarray) -> np.ndarray:
    return clusters_of(_setup.old.vectors[_rows], _setup.old.ids[_rows])


def export_adapter(setup: MigrateSetup, result: MigrationResult) -> None:
    st.markdown(
        f"**{ADAPTERS[result.adapter].title}**, fitted on {result.n_pairs:,} pairs: maps"
        f" {setup.new.dimension:,}-dimensional new queries to the space in which the"
        f" {setup.old.dimension:,}-dimensional old vectors are searched."
    )
    exports.download(
        "Download the adapter (ZIP)",
        lambda: archive(setup, result),
        "adapter.zip",
        "application/zip",
        "export-adapter.zip",
        type="primary",
    )
    st.caption(
        "adapter.safetensors holds the steps and a card: widths, digests, models, settings, scores with"
        f" intervals, date and commit. {SNIPPET} applies it with NumPy alone. {' and '.join(GRAPHS.values())}"
        " are the same as ONNX, where the package onnx is installed."
    )
    st.code(_CODE, language="python")


def archive(setup: MigrateSetup, result: MigrationResult) -> bytes:
    new, old = setup.new, setup.old
    rows = new.vectors[new.rows(old.ids[result.pairs])], old.vectors[result.pairs]
    with temporary() as folder, io.BytesIO() as file:
        paths = export_result(result, rows, (new.name, old.name), Path(folder) / "adapter", commit_of())
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in paths:
                packed.writestr(zipfile.ZipInfo(path.name, (2026, 1, 1, 0, 0, 0)), path.read_bytes())
        return file.getvalue()
