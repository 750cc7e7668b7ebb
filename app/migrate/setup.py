"""The choosers of Migrate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, jobs, messages, results, session
from app.items import Items, items_of
from app.link.unpaired import draw_unpaired_rows
from app.widgets import setting_widget, space_labels
from app.workspace import Workspace
from relcore.base.errors import NoCommonId, SpaceError
from relcore.base.names import STRATEGIES
from relcore.base.numbers import short
from relcore.base.settings import settings_of
from relcore.catalog.catalog import SpaceSpec
from relcore.migrate.migration import TASK as EXAMPLE
from relcore.migrate.migration import Migration, starting_models
from relcore.migrate.pairing import FEWEST_PAIRS, Pairing, check_pairs
from relcore.runs.entries import digest_of
from relcore.scores.relevance import JudgedQuery, read_qrels
from relcore.spaces.ids import GuessedIds
from relcore.spaces.matching import Match
from relcore.spaces.space import LatentSpace

KEEP: dict[str, Any] = {"persist_state": "session"}
MOST_QRELS = 50_000_000  # bytes of a file of relevance judgements


@dataclass(frozen=True, eq=False)
class MigrateSetup:
    """The spaces of the old and the new model and, if queries are chosen, the spaces of the queries by both
    models. `details` and `waiting` are places of the page: for seldom choices, and below the choosers, for
    what the page waits for."""

    specs: tuple[SpaceSpec, ...]
    spaces: tuple[LatentSpace, ...]
    task: Migration
    details: DeltaGenerator
    waiting: DeltaGenerator

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(space.digest for space in self.spaces)

    @property
    def digest(self) -> str:
        """What tells these spaces from others, in the names of widgets and of saved answers."""
        return digest_of(self.digests)

    @property
    def old(self) -> LatentSpace:
        return self.spaces[0]

    @property
    def new(self) -> LatentSpace:
        return self.spaces[1]

    def items(self, queries: bool = False) -> Items | None:
        """Texts and pictures of the corpus. With `queries`, texts and pictures of the queries, if these are
        separate spaces."""
        if queries and self.task.judgements:
            source, target = self.specs[2:]
        else:
            source, target = self.specs[:2]
        return items_of(replace(Workspace(), source=source, target=target))

    def texts(self, ids: Sequence[str], queries: bool = False) -> list[str]:
        """The text of each row of the corpus, or of each of the queries; "" for those without a text."""
        items = self.items(queries)
        if items is not None and items.has_texts:
            return items.texts(list(ids))
        return [""] * len(ids)


def choose(workspace: Workspace) -> MigrateSetup | None:
    """Draw the choosers. If the choices do not fit together, the page shows why, and None is returned."""
    example = starting_models(jobs.queue().store.finished) or ()
    options = tuple(dict.fromkeys((*example, *workspace.spaces)))
    if example and session.migrates_example():
        usual = example
    else:
        usual = (workspace.source, workspace.target)
    labels = space_labels(options)
    place = results.place_of(options, usual)

    def space(label: str, key: str, **look: Any) -> SpaceSpec | None:
        return st.selectbox(
            label, options, format_func=labels.get, key=f"migrate.{key}-{place}", **look, **KEEP
        )

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="migrate-choosers"):
        look = {
            "width": 380,
            "help": "Rows are paired by id. The new model needs only some of the rows. Load spaces in Data.",
        }
        old = space("Old model's vectors", "old", index=options.index(usual[0]), **look)
        new = space("New model's vectors", "new", index=options.index(usual[1]), **look)
        with st.popover("Queries", icon=":material/quiz:"):
            st.caption(
                "A log of queries, embedded by both models, tells how many rows a cascade embeds. Queries"
                " with judgements (a TREC qrels file: query, iteration, row, grade) also decide the verdict,"
                " better than rows do."
            )
            sides = [
                space(f"Queries by the {side} model", f"queries-{side}", index=None, placeholder="None")
                for side in ("old", "new")
            ]
            queries, judgements = _queries_and_judgements(sides)
        details = st.popover("Method details", icon=":material/tune:", key="migrate.details")
        with details:
            specs = (old, new, *queries)
            settings = _settings(specs, (old, new) == example, bool(judgements))
    waiting = st.container(key="migrate-reading")  # floats, so that its message moves no field
    if old == new:
        messages.info(
            "Choose two different spaces: the old model's vectors and the new model's.",
            icon=":material/info:",
        )
        return None
    spaces = tuple(compute.load_space(spec) for spec in specs)
    return MigrateSetup(specs, spaces, Migration(**settings, judgements=judgements), details, waiting)


def _queries_and_judgements(
    queries: Sequence[SpaceSpec | None],
) -> tuple[tuple[SpaceSpec, ...], tuple[JudgedQuery, ...]]:
    """The spaces of the queries, and their judgements. Both are empty until the queries of both models are
    chosen."""
    uploaded = st.file_uploader("Judgements (qrels)", ["txt", "qrels", "tsv", "test"], key="migrate.qrels")
    if None in queries:
        if uploaded or any(queries):
            messages.info("The queries of both models are needed.", icon=":material/info:")
        return (), ()
    if uploaded is None:
        return tuple(queries), ()
    if uploaded.size > MOST_QRELS:
        raise SpaceError(
            f"{uploaded.name}: expected at most {MOST_QRELS // 10**6} MB, got {uploaded.size:,} bytes"
        )
    return tuple(queries), _read(str(session.keep_upload(uploaded)))


@st.cache_data(max_entries=4, show_spinner="Reading the judgements …")
def _read(path: str) -> tuple[JudgedQuery, ...]:
    return read_qrels(Path(path))


def _settings(specs: Sequence[SpaceSpec], example: bool, judged: bool) -> dict[str, Any]:
    old = compute.load_space(specs[0])
    new = compute.load_space(specs[1])
    place = results.place_of(specs)
    start = EXAMPLE if example else Migration()
    strategies = [name for name in STRATEGIES if name != "class-balanced" or old.labels is not None]
    shown = {
        "n_pairs": (f"pairs-{place}", 0, min(len(old), len(new))),
        "adapter": ("adapter",),
        "strategy": ("strategy", *strategies),
        "relevance": (f"relevance-{place}",),
        "candidates": ("candidates",),
        "n_candidates": ("n-candidates", 1, 1000),
        "k": ("k", 1, 100),
        "random_state": ("random-state", 0, 10_000),
    }
    if (old.labels is None and new.labels is None) or judged:
        del shown["relevance"]
    return {
        name: setting_widget(settings_of(Migration)[name], f"migrate.{key}", getattr(start, name), *limits)
        for name, (key, *limits) in shown.items()
    }


@compute.cached(16)
def _pairing(pair: Match, random_state: int) -> Pairing:
    rows = pair.target.vectors, pair.source.vectors
    return check_pairs(*rows, random_state, (pair.source.name, pair.target.name))


def belong(workspace: Workspace, setup: MigrateSetup) -> bool:
    """Whether rows with the same id are the same item. If not, the page says so and offers to link the
    rows."""
    old, new = setup.specs[:2]
    label = "Link the rows"
    try:
        with setup.waiting, st.spinner("Checking the pairs …"):
            pair = compute.matched_models(old, new)
            found = _pairing(pair, setup.task.random_state)
        guesses = isinstance(pair.ids, GuessedIds)
    except NoCommonId:
        told = "The two models share no row ids."
        why = "Migrate needs rows that both models have embedded."
    else:
        if guesses and not setup.task.judgements:
            missing = FEWEST_PAIRS - len(pair.ids.marks)
        else:
            missing = 0
        if found.is_clear and not found.shift and missing <= 0:
            return True
        told = "Rows of the same id are not the same thing in these two models."
        why = (
            "An adapter fitted on half of the rows pairs the other half no better than by chance"
            f" (MRR {short(found.score)}, chance {short(found.chance)}, n = {found.n:,})."
        )
        if found.shift:
            told = f"The rows are shifted by {found.shift:+d}."
            why = "Look for a header or a missing row in one of the files."
        elif found.is_clear:
            told = "Link guessed how these rows are paired."
            why = f"Only links that you confirm are scored. Confirm {missing} more of {len(pair):,}."
            label = "Confirm links"
    draw_unpaired_rows(
        workspace, (old, new), f"**{told}** {why}", "migrate", partial(session.migrate_example, True), label
    )
    return False
