"""Anchors being found: the cost on the button, a live curve, what they are worth, the wrong ones, and a click to use them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from app import compute, exports, results, session
from app.bootstrap.bootstrap_setup import Setup
from app.jobs import engine
from app.score_table import score_table
from app.widgets import fit_to_pair, space_name
from relcore.bootstrapping.figures import draw_rounds, draw_scores
from relcore.bootstrapping.job import Outcome, bootstrap_job, estimated_seconds, read_outcome
from relcore.charts.lines import Line, Lines
from relcore.engine import Job
from relcore.sources.catalog import renamed_spec
from relcore.sources.encodings import put_space
from relcore.sources.renamed import put_pairing

_CURVES = ("share found", "share paired")
_SHOWN = {
    "fits": (st.success, "check_circle"),
    "nothing in common": (st.error, "error"),
    "cannot tell": (st.warning, "help"),
}
_NOT = {"fits": "", "nothing in common": "Nothing in common.", "cannot tell": "Cannot tell."}


def draw(setup: Setup) -> None:
    """The button, the bar, or the result."""
    outcome = _outcome(setup)
    if outcome is None:
        return
    result, spec = outcome.result, setup.spec
    show, icon = _SHOWN[result.verdict]
    show(f"**{_headline(outcome)}** {result.reason}", icon=f":material/{icon}:")
    st.button(
        "Use these anchors everywhere",
        key="bootstrap.use",
        icon=":material/star:",
        type="primary" if result.success else "secondary",
        help=f"{len(result.pairs):,} rows of {setup.target.name} take the ids of the rows that they were matched with, as a "
        "space of this session and its target; the anchors found become the session's. Undo brings the former back.",
        on_click=session.guarded,
        args=(use, setup, outcome),
    )
    arguments = (setup.source_spec, setup.target_spec, spec, outcome, setup.digests)
    if outcome.scores:
        st.subheader("What are they worth?", anchor=False)
        score_table(outcome.scores, head="Anchors")
        st.caption("On held-out rows: rows that are neither seeds nor anchors nor were taken for one.")
        exports.export_bar(draw_scores(*arguments), "bootstrap-scores")
    elif outcome.known:
        st.caption("No scores: all rows that both spaces have are anchors or were taken for one. Ask for fewer anchors.")
    rounds, listed = st.columns([1.4, 1], gap="large")
    with rounds:
        st.subheader("Round by round", anchor=False)
        figure = draw_rounds(*arguments)
        exports.chart(_by_rounds(figure.interactive(exports.theme()), len(result.history)), "bootstrap.rounds")
        exports.export_bar(figure, "bootstrap-rounds")
    with listed:
        _list(outcome)


def _by_rounds(figure: Any, n: int) -> Any:
    """A tick for every round where there are few of them: there is no half a round."""
    return figure.update_xaxes(dtick=1) if n <= 20 else figure


def _headline(outcome: Outcome) -> str:
    result = outcome.result
    n_hidden = len(result.anchors) - result.n_seeds
    if outcome.known and n_hidden:
        found = f"{outcome.share:.1%} of the {n_hidden:,} hidden anchors found."
    else:
        found = f"{len(result.anchors):,} anchors, {len(result.pairs):,} rows found each other."
    return f"{_NOT[result.verdict]} {found}".strip()


def _list(outcome: Outcome) -> None:
    result, wrong = outcome.result, outcome.wrong()
    if outcome.known:
        n_hidden = len(result.anchors) - result.n_seeds
        st.subheader("Wrong ones", anchor=False)
        st.caption(
            f"{len(wrong):,} of {n_hidden:,} hidden anchors; by chance {n_hidden / outcome.n_shared:.2f} would be right."
        )
        if not wrong:
            st.markdown("None.")
            return
        table = pd.DataFrame(wrong, columns=["anchor", "matched to"])
    else:
        st.subheader("Anchors", anchor=False)
        st.caption(
            f"The first {result.n_seeds:,} are the seeds. There is no truth to score against: look whether they make sense."
        )
        table = pd.DataFrame(result.anchors, columns=["anchor", "matched to"])
    st.dataframe(table, key="bootstrap.list", hide_index=True, height=360 if len(table) > 9 else "content")


def _outcome(setup: Setup) -> Outcome | None:
    """From the store, or None: then the page says what it costs, or how far it is."""
    spaces = (setup.source, setup.target)
    entry = results.result_of(
        "bootstrap",
        (setup.digests, setup.spec),
        bootstrap_job,
        lambda: {"inputs": tuple(put_space(engine().store, space) for space in spaces), "spec": setup.spec},
        title="Bootstrap",
        label="Find the anchors",
        # Anchors appear before one's eyes: never unasked, however quick.
        seconds=max(results.AT_ONCE_SECONDS, estimated_seconds(len(setup.source), len(setup.target), setup.spec)),
        below=_live,
    )
    return read_outcome(entry, engine().store) if entry else None


def _live(jobs: list[Job]) -> None:
    """The shares so far; of a few rounds the points, as a line of one point is none."""
    from relcore.figures.lines_interactive import lines_figure

    curve = jobs[0].status().curve
    names = [name for name in _CURVES if any(value == value for value in curve.get(name, ()))]
    if not names:
        return
    lines = tuple(Line(name, range(1, len(curve[name]) + 1), curve[name]) for name in names)
    chart = Lines(lines, "round", "share", y_range=(0, 1.02))
    figure = _by_rounds(lines_figure(chart, exports.theme(), height=320), len(curve[names[0]]))
    exports.chart(figure, "bootstrap.live")
    known = " Found: anchors that have their true partner, which the method is not told." if "share found" in names else ""
    st.caption(
        f"Paired: source rows of the round whose nearest target row chooses them too; published method: its anchors.{known}"
    )


def use(setup: Setup, outcome: Outcome) -> None:
    """Rename the target's rows after their partners, make that the target, and the found anchors the session's: one step.

    Raises
    ------
    SpaceError
        The renamed space cannot be read or compared.
    """
    result, workspace = outcome.result, session.workspace()
    key = put_pairing(engine().store, result.pairs)
    renamed = renamed_spec(setup.target_spec, key, f"{space_name(setup.target_spec)} · paired")
    spaces = workspace.spaces if renamed in workspace.spaces else (*workspace.spaces, renamed)
    pair = compute.matched(setup.source_spec, renamed)
    anchors = tuple(one for one, _ in result.anchors if one in pair.source.index)
    changed = replace(workspace, spaces=spaces, source=setup.source_spec, target=renamed).with_anchors(anchors)
    session.history().edit(f"use {len(anchors):,} bootstrapped anchors", fit_to_pair(changed, pair))
    session.announce(f"{len(anchors):,} anchors and {len(pair):,} paired rows: Compare, Anchors and Invert now stand on them.")
