"""The Migrate page above its tabs: the choosers, and the verdict with its figure and table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, jobs, messages, results, session
from app.glossary.card import caption
from app.items import Items, items_of
from app.plain_text import plain_html
from app.sharing import keep_upload
from app.widgets import setting_widget, space_labels
from app.workspace import BUNDLED, Workspace
from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS, STRATEGIES
from relcore.base.numbers import band, counted, short, signed
from relcore.base.settings import settings_of
from relcore.catalog.catalog import SpaceSpec
from relcore.migrate.evaluate import JudgedQuery, read_qrels
from relcore.migrate.migration import NEIGHBOURS, Migration, MigrationChart, MigrationResult, starting_models
from relcore.migrate.migration import TASK as EXAMPLE
from relcore.spaces.space import LatentSpace

KEEP: dict[str, Any] = {"persist_state": "session"}
STARTS_ITSELF = 20.0  # seconds
MOST_QRELS = 50_000_000  # bytes


@dataclass(frozen=True, eq=False)
class MigrateSetup:
    """Spaces of old, new and, where there are judged queries, both models' queries."""

    specs: tuple[SpaceSpec, ...]
    spaces: tuple[LatentSpace, ...]
    task: Migration
    details: DeltaGenerator

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(space.digest for space in self.spaces)

    @property
    def old(self) -> LatentSpace:
        return self.spaces[0]

    @property
    def new(self) -> LatentSpace:
        return self.spaces[1]

    def items(self, queries: bool = False) -> Items | None:
        """Texts and pictures of the corpus or, where they have spaces of their own, of the queries."""
        source, target = self.specs[-2:] if queries else self.specs[:2]
        return items_of(replace(Workspace(), source=source, target=target))


def choose(workspace: Workspace) -> MigrateSetup | None:
    """The choosers; None where they do not fit together, and the page shows why."""
    example = starting_models(jobs.engine().store.finished) or ()
    options = tuple(dict.fromkeys((*example, *workspace.spaces)))
    own = (workspace.source, workspace.target)
    usual = example if example and own == BUNDLED else own
    labels, place = space_labels(options), results.place_of(options, usual)

    def space(label: str, key: str, **look: Any) -> SpaceSpec | None:
        return st.selectbox(
            label, options, format_func=labels.get, key=f"migrate.{key}-{place}", **look, **KEEP
        )

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="migrate-choosers"):
        look = {
            "width": 300,
            "help": "Rows pair by id; the new model needs only some. Data, at the top left, loads your own.",
        }
        old = space("Old model's vectors", "old", index=options.index(usual[0]), **look)
        new = space("New model's vectors", "new", index=options.index(usual[1]), **look)
        with st.popover("Judged queries", icon=":material/quiz:"):
            st.caption(
                "Real queries decide better than rows. They need three things: the queries embedded by both"
                " models, and which rows are relevant, as a TREC qrels file (query, iteration, row, grade)."
            )
            sides = [
                space(f"Queries by the {side} model", f"queries-{side}", index=None, placeholder="None")
                for side in ("old", "new")
            ]
            queries, judgements = _judged(sides)
        details = st.popover("Method details", icon=":material/tune:", key="migrate.details")
        with details:
            specs = (old, new, *queries)
            settings = _settings(specs, (old, new) == example, bool(judgements))
    if old == new:
        messages.info(
            "Choose two different spaces: the old model's vectors and the new model's.",
            icon=":material/info:",
        )
        return None
    spaces = tuple(compute.load_space(spec) for spec in specs)
    return MigrateSetup(specs, spaces, Migration(**settings, judgements=judgements), details)


def _judged(queries: Sequence[SpaceSpec | None]) -> tuple[tuple[SpaceSpec, ...], tuple[JudgedQuery, ...]]:
    """The queries and their judgements; nothing until all three are there."""
    uploaded = st.file_uploader("Judgements (qrels)", ["txt", "qrels", "tsv", "test"], key="migrate.qrels")
    missing = [item is None for item in (*queries, uploaded)]
    if any(missing):
        if not all(missing):
            messages.info(
                "All three are needed; until then, held-out rows are the queries.", icon=":material/info:"
            )
        return (), ()
    if uploaded.size > MOST_QRELS:
        raise SpaceError(
            f"{uploaded.name}: expected at most {MOST_QRELS // 10**6} MB, got {uploaded.size:,} bytes"
        )
    return tuple(queries), _read(str(keep_upload(uploaded, session.uploads_folder())))


@st.cache_data(max_entries=4, show_spinner="Reading the judgements …")
def _read(path: str) -> tuple[JudgedQuery, ...]:
    return read_qrels(Path(path))


def _settings(specs: Sequence[SpaceSpec], example: bool, judged: bool) -> dict[str, Any]:
    old, new = (compute.load_space(spec) for spec in specs[:2])
    place = results.place_of(specs)
    start = EXAMPLE if example else Migration()
    strategies = [name for name in STRATEGIES if name != "class-balanced" or old.labels is not None]
    shown = {
        "n_pairs": (f"pairs-{place}", 0, min(len(old), len(new))),
        "adapter": ("adapter",),
        "strategy": ("strategy", *strategies),
        "relevance": (f"relevance-{place}",),
        "k": ("k", 1, 100),
        "random_state": ("random-state", 0, 10_000),
    }
    if (old.labels is None and new.labels is None) or judged:
        del shown["relevance"]
    fields = settings_of(Migration)
    return {
        name: setting_widget(fields[name], f"migrate.{key}", getattr(start, name), *limits)
        for name, (key, *limits) in shown.items()
    }


def measured(setup: MigrateSetup) -> MigrationResult | None:
    return results.computed(
        setup.task,
        setup.specs,
        label="Compare the four options",
        unasked_seconds=STARTS_ITSELF,
        spaces=setup.spaces,
        details=setup.details,
    )


def draw(setup: MigrateSetup, result: MigrationResult) -> None:
    head, rest = lead(result)
    messages.lead(f"<strong>{head}.</strong> {plain_html(rest)}")
    for caution in result.cautions:
        messages.warning(caution)
    figure = MigrationChart(spaces=setup.specs, digests=setup.digests, migration=setup.task).draw(result)
    exports.figure(figure, "migrate.chart")
    lines, columns = [], ["option", result.metric, "95 %", "chance", "to keep", "to re-embed"]
    for option in result.options:
        gains = [
            f"{signed(gain.value)} ({band(gain.low, gain.high)})" if gain else "–"
            for gain in (option.to_keep, option.to_reembed)
        ]
        interval, title = band(option.low, option.high), result.title_of(option.option)
        lines.append((title, short(option.value), interval, short(option.chance), *gains))
    for one in result.candidates if result.relevance == NEIGHBOURS else ():
        if one.adapter != result.adapter:
            cells = f"bridge, {ADAPTERS[one.adapter].title}", short(one.score), band(one.low, one.high)
            lines.append((*cells, *["–"] * 3))
    table = pd.DataFrame(lines, columns=columns)
    st.dataframe(table.loc[:, (table != "–").any()], hide_index=True, key="migrate.table")
    queries = counted(len(result.queries), "query", "queries")
    n, what = len(result.candidates), "held-out rows, none of them a pair"
    how = f"chosen by cross-validation over queries among {n}" if n > 1 else "as set"
    if result.relevance == "judgements":
        what = "judged queries"
    caption(
        f"{queries}: {what}; {result.n_rows:,} rows searched; {result.n_pairs:,} pairs. Adapter:"
        f" {ADAPTERS[result.adapter].title}, {how}. {result.weight_note} Intervals: over queries and draws of"
        " the pairs, paired for differences. Chance: what is found for other queries. Curves: means of three"
        " draws of the pairs."
    )


def lead(result: MigrationResult) -> tuple[str, str]:
    """What to do, and the sentence about it."""
    head, _, rest = result.verdict.sentence.partition(": ")
    rest = rest[:1].upper() + rest[1:]
    best = result.option("re-embed")
    if best and best.to_keep and best.to_keep.low > 0:
        bridge, both = (100 * result.option(name).value / best.value for name in ("bridge", "twice"))
        rest += (
            f" Without re-embedding, the bridge reaches {bridge:.0f} % of its score, and querying both models"
            f" {both:.0f} %."
        )
    return head, rest
