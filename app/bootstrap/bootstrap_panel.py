"""Run the bootstrap: a button with its time, a live curve, the scores of the anchors, and a button to use them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from app import compute, exports, results, session
from app.bootstrap.bootstrap_setup import Setup
from app.fitting import fit_to_pair
from app.jobs import engine
from app.plain_text import plain, plain_name
from app.score_table import score_table
from app.widgets import space_name
from app.workspace import BOOTSTRAPPED, Workspace
from relcore.bootstrapping.figures import BootstrapRounds, BootstrapScores
from relcore.bootstrapping.result import Outcome
from relcore.charts.lines import Line, Lines
from relcore.engine import Job
from relcore.numbers import counted, short
from relcore.sources.catalog import renamed_spec
from relcore.sources.renamed import put_pairing

_USED = "relscope.bootstrap-used"
_CURVES = ("share found", "share paired")
_SHOWN = {
    "fits": (st.success, "check_circle"),
    "nothing in common": (st.error, "error"),
    "cannot tell": (st.warning, "help"),
}


def in_use(workspace: Workspace) -> Setup | None:
    """What the pairing of this workspace's target was bootstrapped with, where this session did it."""
    target, setup = st.session_state.get(_USED, (None, None))
    return setup if target is not None and workspace.target == target else None


def draw(setup: Setup, used: bool = False) -> None:
    """The button, the bar, or the result; `used` where the session's spaces and anchors are already those found."""
    specs = (setup.source_spec, setup.target_spec)
    outcome = results.computed(setup.spec, specs, label="Find the anchors", below=_live)
    if outcome is None:
        return
    result = outcome.result
    show, icon = _SHOWN[result.verdict]
    told, button = st.columns([3, 1], vertical_alignment="center")
    with told:
        show(f"**{plain(outcome.headline)}** {plain(result.reason)}", icon=f":material/{icon}:")
    button.button(
        "Use them everywhere",
        key="bootstrap.use",
        icon=":material/star:",
        disabled=used,
        type="primary" if result.success else "secondary",
        help=(
            f"Adds a copy of {plain_name(setup.target.name)} whose {len(result.pairs):,} matched rows have the ids of their "
            "partners, makes it the target, and replaces the session's anchors by those found. Undo restores the former ones."
        ),
        on_click=session.guarded,
        args=(use, setup, outcome),
    )
    recipe = {"source": setup.source_spec, "target": setup.target_spec, "digests": setup.digests, "bootstrap": setup.spec}
    rounds, listed = st.columns([1.4, 1], gap="large")
    with rounds:
        st.subheader("Round by round", anchor=False)
        figure = BootstrapRounds(**recipe).draw(outcome)
        exports.chart(_by_rounds(figure.interactive(exports.theme()), len(result.history)), "bootstrap.rounds")
        exports.export_bar(figure, "bootstrap-rounds")
    with listed:
        _list(outcome)
    if outcome.scores:
        st.subheader("Scores of the anchors", anchor=False)
        score_table(outcome.scores, head="Anchors")
        st.caption("On held-out rows: not seeds, not anchors, and not matched with an anchor.")
        exports.export_bar(BootstrapScores(**recipe).draw(outcome), "bootstrap-scores")
    elif outcome.known:
        st.caption("No scores: all rows in both spaces are anchors or were matched with one. Choose fewer anchors.")


def _by_rounds(figure: Any, n: int) -> Any:
    """A tick for every round if there are few of them."""
    return figure.update_xaxes(dtick=1) if n <= 20 else figure


def _list(outcome: Outcome) -> None:
    result, wrong = outcome.result, outcome.wrong()
    if outcome.known:
        st.subheader("Wrong anchors", anchor=False)
        by_chance = short(outcome.n_hidden / outcome.n_shared, 2)
        st.caption(f"{len(wrong):,} of {outcome.n_hidden:,} hidden anchors; {by_chance} would be right by chance.")
        if not wrong:
            st.markdown("None.")
            return
        table = pd.DataFrame(wrong, columns=["anchor", "matched to"])
    else:
        st.subheader("Anchors", anchor=False)
        st.caption(
            f"The first {result.n_seeds:,} are the seeds. The true pairing is unknown, so there are no scores: check the pairs "
            "by eye."
        )
        table = pd.DataFrame(result.anchors, columns=["anchor", "matched to"])
    st.dataframe(table, key="bootstrap.list", hide_index=True, height=360 if len(table) > 9 else "content")


def _live(jobs: list[Job]) -> None:
    """The shares so far."""
    from relcore.figures.lines_interactive import lines_figure

    curve = jobs[0].status().curve
    names = [name for name in _CURVES if any(value == value for value in curve.get(name, ()))]
    if not names:
        return
    lines = tuple(Line(name, range(1, len(curve[name]) + 1), curve[name]) for name in names)
    chart = Lines(lines, "round", "share", y_range=(0, 1.02))
    figure = _by_rounds(lines_figure(chart, exports.theme(), height=320), len(curve[names[0]]))
    exports.chart(figure, "bootstrap.live")
    known = " Found: anchors with their true partner, which the method does not know." if "share found" in names else ""
    st.caption(
        "Paired: source rows that are mutual nearest neighbours with a target row; for the published method, its "
        f"anchors.{known}"
    )


def use(setup: Setup, outcome: Outcome) -> None:
    """As one step: rename the target's rows after their partners, make the result the target, and take the anchors found.

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
    changed = replace(workspace, spaces=spaces, source=setup.source_spec, target=renamed).with_anchors(anchors, BOOTSTRAPPED)
    st.session_state[_USED] = renamed, setup
    session.become(f"use {len(anchors):,} bootstrapped anchors", fit_to_pair(changed, pair))
    session.announce(
        f"Compare, Anchors and Invert now use {counted(len(anchors), 'anchor')} and {counted(len(pair), 'paired row')}."
    )
