"""What follows a verdict: queries that get worse, and the export of the adapter."""

from __future__ import annotations

import io
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, exports, messages
from app.migrate.setup import MigrateSetup
from app.migrate.verdict import advised
from app.page_settings import segments
from app.plain_text import plain
from app.tables import chosen_rows
from relcore.base.names import ADAPTERS
from relcore.base.numbers import band, short, signed
from relcore.base.writing import temporary
from relcore.compare.clusters import clusters_of
from relcore.explain.items import items_of
from relcore.migrate.adapter_files import CASCADE, GRAPHS, SNIPPET
from relcore.migrate.changed_queries import changed_queries_in_words
from relcore.migrate.migration import FEWEST_OF_GROUP, losses_by_group
from relcore.migrate.result import TITLES, MigrationResult, export_result
from relcore.runs.entries import digest_of
from relcore.studies.paper_runs import commit_of

_LISTED = 200
_CODES = {
    "bridge": """from apply import corpus, queries  # the file apply.py needs NumPy and nothing else

scores = queries(new_queries) @ corpus(old_vectors).T  # cosines""",
    "twice": """from apply import both, corpus  # the file apply.py needs NumPy and nothing else

# the same queries by both models, as one search: the sum of both scores
scores = both(old_queries, new_queries, old_vectors) @ corpus(old_vectors).T""",
    "cascade": """from cascade import Cache, ListIndex, ranked  # the files need NumPy and nothing else

search = ListIndex(ids, old_vectors)  # or your index: see cascade.py
cache = Cache("cache.npy", embed)  # embed(ids) calls the new model
best = ranked(old_query, new_query, search, cache)
cache.save()""",
}
_REWRITTEN = """import numpy as np
from apply import both, corpus, unit  # the file apply.py needs NumPy and nothing else

# the same queries by both models, as one search: the sum of both scores
rows = np.column_stack([unit(old_vectors), corpus(old_vectors)])
scores = both(old_queries, new_queries, old_vectors) @ rows.T"""


def queries_that_get_worse(setup: MigrateSetup, result: MigrationResult) -> None:
    measured = [name for name in TITLES if name in result.scores]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if result.verdict.option == "keep":
            usual = "bridge"
        else:
            usual = result.verdict.option
        others = [name for name in measured if name != "keep"]
        option = _option("Option", others, usual, "worse.option")
        others = [name for name in measured if name != option]
        to = _option("Compared with", others, "keep", f"worse.to-{option}")
    table = result.worst_queries(option, to)
    lost = int((table.change < 0).sum())
    won = int((table.change > 0).sum())
    st.markdown(
        f"**{lost:,} of {len(table):,} queries get worse by “{TITLES[option]}” compared with “{TITLES[to]}”;"
        f" {won:,} get better.** Select a query to see what each option finds."
    )
    shown = table.head(_LISTED).copy()
    texts = setup.texts(shown["query"], queries=True)
    if any(texts):
        shown.insert(1, "text", texts)
    for column in (TITLES[to], TITLES[option], "change"):
        shown[column] = [short(value) for value in shown[column]]
    if rows := chosen_rows(
        shown, f"worse.table-{digest_of((option, to, result.queries[:50]))[:8]}", height=300
    ):
        _one_query(setup, result, str(table["query"].iloc[rows[0]]))
    _by_group(setup, result, option, to)
    if option in result.found:
        st.markdown("### By kind of query")
        st.markdown(plain(_by_kind(setup, result, option)))


@compute.cached(8, key=lambda setup, result, option: (setup.specs, setup.digest, result.queries, option))
def _by_kind(setup: MigrateSetup, result: MigrationResult, option: str) -> str:
    items = items_of(setup.specs[2:] or setup.specs)
    return changed_queries_in_words(result, option, items)


def _option(label: str, names: list[str], usual: str, key: str) -> str:
    first = usual if usual in names else names[0]
    titles = {name: TITLES[name] for name in names}
    return segments(label, titles, f"{key}-{len(names)}-{first}", first)


def _one_query(setup: MigrateSetup, result: MigrationResult, query: str) -> None:
    place = result.queries.index(query)
    old = setup.old
    relevant = set(result.relevant_row[result.relevant_query == place].tolist())
    columns = {}
    for option, lists in result.found.items():
        rows = lists[place][lists[place] >= 0]
        columns[TITLES[option]] = pd.Series(
            [
                f"{'✓' if row in relevant else '·'} {text or old.ids[row]}"
                for row, text in zip(rows, setup.texts(old.ids[rows]), strict=True)
            ],
            dtype=object,
        )
    table = pd.DataFrame(columns).fillna("")
    narrow = {name: st.column_config.TextColumn(width=260) for name in table.columns}
    st.dataframe(table, hide_index=True, key="worse.found", column_config=narrow)
    st.caption(f"✓ marks relevant rows; there are {len(relevant):,}.")


def _by_group(setup: MigrateSetup, result: MigrationResult, option: str, to: str) -> None:
    """Draw the scores of `option` less those of `to`, averaged over each class or cluster of queries."""
    rows = setup.old.index.get_indexer(pd.Index(result.queries, dtype=object))
    labels = setup.old.labels
    if (rows < 0).any():
        return
    if labels is None:
        groups = _clusters(setup.old.digest, digest_of(rows), setup, rows)
    else:
        groups = labels[rows]
    table = losses_by_group(np.asarray(result.scores[option], np.float64) - result.scores[to], groups)
    if table.empty:
        return
    noun = "class"
    if labels is None:
        noun = "cluster"
    st.markdown(f"### By {noun}")
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
    space = _setup.old.take(_rows)
    numbers, names = clusters_of(space, max(1, min(8, len(space) // FEWEST_OF_GROUP)))
    return np.array(names, dtype=object)[numbers]


def export_adapter(setup: MigrateSetup, result: MigrationResult) -> None:
    option = advised(result)
    unneeded = ""
    if option in ("keep", "re-embed"):
        unneeded = f"The recommended “{TITLES.get(option)}” needs no adapter. "
    carried = "bridge, query both models and cascade"
    if option in _CODES:
        carried = f"the recommended “{TITLES[option]}”"
    st.markdown(f"{unneeded}These files carry out {carried}.")
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
    graphs = " and ".join(list(GRAPHS.values())[: 1 + result.rewrites_corpus])
    if find_spec("onnx"):
        onnx = f"As ONNX: {graphs}."
    else:
        onnx = f"With the package onnx installed, also {graphs}."
    st.caption(
        "adapter.safetensors holds the adapter's steps and its card: widths, digests, models, settings,"
        f" scores with intervals, date and commit. {SNIPPET} applies the adapter with NumPy alone. {CASCADE}"
        f" ranks the rows that an index finds: faiss, LanceDB or a list. {onnx}"
    )
    code = _CODES.get(option, _CODES["bridge"])
    if option == "twice" and result.rewrites_corpus:
        code = _REWRITTEN
    st.code(code, language="python")
    if "corpus(" in code and not result.rewrites_corpus:
        st.caption("corpus(…) only scales the old vectors to length 1. The index stays as it is.")


def archive(setup: MigrateSetup, result: MigrationResult) -> bytes:
    with temporary() as folder, io.BytesIO() as file:
        paths = export_result(result, setup.old, setup.new, Path(folder) / "adapter", commit_of())
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in paths:
                packed.writestr(zipfile.ZipInfo(path.name, (2026, 1, 1, 0, 0, 0)), path.read_bytes())
        return file.getvalue()
