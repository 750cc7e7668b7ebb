"""The tab New model of Migrate."""

from __future__ import annotations

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import jobs, results, session
from app.asking import Panel
from app.migrate.cheaper import cascade_price, cheaper_index
from app.migrate.judging import judge_blind, with_blind_verdict
from app.migrate.next_steps import export_adapter, queries_that_get_worse
from app.migrate.setup import MigrateSetup, belong, choose
from app.migrate.thresholds import thresholds
from app.migrate.verdict import show_verdict
from app.workspace import Workspace
from relcore.migrate.migration import starting_models
from relcore.migrate.result import MigrationResult
from relcore.migrate.verdict import NEIGHBOURS

_COMPARED = "relscope.migrate-compared"
_ABOUT = (
    "Should you change the embedding model? Five options are compared, each with its cost: keep the old one,"
    " translate new queries (bridge), query both models, let the new model rank what the old one finds"
    " (cascade), or re-embed all rows. They are scored on rows that both models have embedded. Your data stay"
    " as they are."
)
_EXAMPLE = (
    "An example: should a search in {n:,} sentences change its embedding model? Five options are compared."
    " Data, at the top left, loads your own vectors."
)
_AFTER = {
    "Judge here, blind": judge_blind,
    "Similarity thresholds": thresholds,
    "Queries that get worse": queries_that_get_worse,
    "Export adapter": export_adapter,
    "What a cascade costs": cascade_price,
    "A cheaper index": cheaper_index,
}


def draw(workspace: Workspace) -> None:
    about = st.empty()
    panel = Panel(
        partial(inputs, about),
        migration_of,
        report,
        "Choose other vectors or settings above. Load your own by Data, at the top left.",
    )
    if panel.draw(workspace) is None:
        about.caption(_ABOUT)


def inputs(about: DeltaGenerator, workspace: Workspace) -> MigrateSetup | None:
    """Draw the choosers. For the example, say so in `about` before anything is computed, so that the page
    does not move when the result comes."""
    setup = choose(workspace)
    if setup and setup.specs[:2] == starting_models(jobs.queue().store.finished):
        about.caption(_EXAMPLE.format(n=len(setup.old)))
    if setup and belong(workspace, setup):
        return setup
    return None


def migration_of(setup: MigrateSetup) -> MigrationResult | None:
    """The result of the migration. None while a job computes it."""
    # The first comparison of the user's own pair waits for a click. Later, a changed setting starts the
    # comparison by itself.
    unasked_seconds = 0.0
    if session.migrates_example() or st.session_state.get(_COMPARED) == setup.specs[:2]:
        unasked_seconds = results.UNASKED_SECONDS
    result = results.result_of(
        setup.task,
        setup.specs,
        spaces=setup.spaces,
        label="Compare the options",
        details=setup.details,
        unasked_seconds=unasked_seconds,
    )
    if result is not None:
        st.session_state[_COMPARED] = setup.specs[:2]
    return result


def report(setup: MigrateSetup, result: MigrationResult) -> None:
    unjudged = result.relevance == NEIGHBOURS
    result = with_blind_verdict(setup, result)
    show_verdict(setup, result)
    st.subheader("Next steps", anchor=False)
    for name, part in _AFTER.items():
        # Without judgements, the part for judging is open, because judging is the next step.
        look = {"expanded": unjudged and part is judge_blind, "key": f"migrate.{name}"}
        with st.expander(name, on_change="rerun", **look) as opened:
            if opened.open:
                part(setup, result)
