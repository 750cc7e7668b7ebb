"""Run the bootstrap: a button, a live curve, the scores of the anchors, and a button to use them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from app import compute, exports, messages, results, session
from app.jobs import engine
from app.page_settings import kept, segments
from app.plain_text import plain, plain_name
from app.session import fit_to_pair
from app.tables import score_table
from app.widgets import setting_widget, space_name
from app.workspace import BOOTSTRAPPED, MOST_ANCHORS, Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.base.settings import settings_of
from relcore.bootstrap.spec import BootstrapRounds, BootstrapScores, BootstrapSpec, Outcome, read_pairs
from relcore.catalog.catalog import SpaceSpec, put_pairing, renamed_spec
from relcore.figures.charts import Line, Lines
from relcore.represent.bootstrap import LEARNING_RATE
from relcore.runs.jobs import Job
from relcore.spaces.space import LatentSpace

FEWEST_SHARED = 20
_MODES = {"hide": "Experiment", "real": "Real use"}
_SEEDS = {"random": "Random", "anchors": "Anchors", "typed": "Typed", "none": "None"}
_ROWS = (500, 1000, 2000, 3000, 4000, 10_000, 20_000, 50_000)
_MODE_HELP = (
    "Experiment: the target's rows are shuffled and only the seeds are known; the ids are used to score the"
    " result. Real use: two spaces whose rows may have no ids in common."
)
_SEEDS_HELP = (
    "Pairs that are known to belong together: at least three; the paper uses 15. Random pairs, the session's"
    " anchors, or pairs that you type. Without seeds, both spaces need word counts or at most 4,000 rows."
)


@dataclass(frozen=True, eq=False)
class BootstrapSetup:
    source_spec: SpaceSpec
    target_spec: SpaceSpec
    source: LatentSpace
    target: LatentSpace
    spec: BootstrapSpec


def choose(workspace: Workspace) -> BootstrapSetup | None:
    """The choosers; None if the settings are invalid, and the page shows why."""
    source, target = (compute.load_space(spec) for spec in (workspace.source, workspace.target))
    if workspace.source == workspace.target:
        return messages.info(
            "Source and target are the same space. Choose two different spaces in the sidebar.",
            ":material/info:",
        )
    guessed = any(spec.rows_of.source == "renamed" for spec in (workspace.source, workspace.target))
    if guessed:
        tell_in_use()
    n_shared = 0 if guessed else _shared(source.digest, target.digest, source, target)  # such ids are guesses
    fields, experiments = settings_of(BootstrapSpec), n_shared >= FEWEST_SHARED

    def number(name: str, key: str, low: float, high: float, usual: float, **look: Any) -> Any:
        return setting_widget(fields[name], f"bootstrap.{key}", usual, low, high, width=140, **look)

    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="bootstrap-choosers"):
        modes = [mode for mode in _MODES if experiments or mode == "real"]
        mode = segments("Purpose", modes, "bootstrap.mode", help=_MODE_HELP, format_func=_MODES.get)
        starts = [seeds for seeds in _SEEDS if experiments or seeds in ("typed", "none")]
        starts = [seeds for seeds in starts if seeds != "random" or mode == "hide"]
        start = segments(
            "Seeds (known pairs)",
            starts,
            f"bootstrap.start-{'-'.join(starts)}",
            help=_SEEDS_HELP,
            format_func=_SEEDS.get,
        )
        method = setting_widget(fields["method"], "bootstrap.method")
        numbers = st.popover("Numbers", icon=":material/tune:")
    with numbers:
        rows = _rows(min(len(source), len(target)), source.counts is not None, method)
        most = min(rows or len(source), len(target), MOST_ANCHORS)
        n_anchors = number("n_anchors", f"anchors-{most}", 1, most, min(300, max(1, most // 2)))
        settings = {"n_anchors": n_anchors, "n_seeds": 0}
        if start in ("random", "anchors"):
            most = max(3, n_anchors - 1)
            settings["n_seeds"] = number("n_seeds", f"seeds-{most}", 3, most, min(15, most))
        if method == "paper":
            settings["learning_rate"] = number(
                "learning_rate", "learning-rate", 0.001, 1.0, LEARNING_RATE, format="%.3f"
            )
        settings["random_state"] = number("random_state", "random-state", 0, 10_000, 0)
    pairs: tuple[tuple[str, str], ...] = ()
    if start == "anchors":
        if len(workspace.anchors) < 3:
            return messages.info(
                "At least three anchors are needed. Choose some in the sidebar, or other seeds.",
                ":material/star:",
            )
        pairs = tuple((anchor, anchor) for anchor in workspace.anchors[: settings["n_seeds"]])
    elif start == "typed":
        text = kept(
            st.text_area,
            "One pair per line: id of the source, then a tab or “=”, then id of the target",
            placeholder="river = fluss\nmountain = berg\nsea = meer",
            key="bootstrap.typed",
            height=120,
        )
        try:
            pairs = read_pairs(text)
        except SpaceError as error:
            messages.warning(error)
            return None
        if not pairs:
            st.caption("Type at least three pairs to start.")
            return None
    if method == "paper" and not (pairs or settings["n_seeds"]):
        return messages.info(
            "The published method needs seeds. Choose some, or use self-learning.", ":material/info:"
        )
    spec = BootstrapSpec(method, pairs=pairs, rows=rows, hide=mode == "hide", k=workspace.k, **settings)
    return BootstrapSetup(workspace.source, workspace.target, source, target, spec)


def tell_in_use() -> None:
    st.info(
        "This pairing was bootstrapped, and Compare, Anchors and Invert use it. To bootstrap again, choose"
        " the original space in the sidebar, or undo.",
        icon=":material/hub:",
    )


def _rows(n: int, has_counts: bool, method: str) -> int | None:
    """All rows (None), or the most frequent: each step of the published method compares all pairs."""
    options = [0, *(rows for rows in _ROWS if rows < n)]  # 0 for all: a chooser of None could be emptied
    usual = max((rows for rows in options if rows <= 2000), default=0) if method == "paper" else 0
    which = "most frequent" if has_counts else "first"
    chosen = kept(
        st.selectbox,
        "Rows",
        options,
        index=options.index(usual),
        format_func=lambda rows: f"{which} {rows:,}" if rows else f"all {n:,}",
        key=f"bootstrap.rows-{n}-{method}",
        width=200,
    )
    return chosen or None


@st.cache_data(max_entries=32, show_spinner=False)
def _shared(source_digest: str, target_digest: str, _source: LatentSpace, _target: LatentSpace) -> int:
    return int((_target.index.get_indexer(_source.index) >= 0).sum())


_USED = "relscope.bootstrap-used"
_CURVES = ("share found", "share paired")
_SHOWN = {
    "fits": (st.success, "check_circle"),
    "nothing in common": (st.error, "error"),
    "cannot tell": (st.warning, "help"),
}


def in_use(workspace: Workspace) -> BootstrapSetup | None:
    """What this workspace's target was bootstrapped with, where this session did it."""
    target, setup = st.session_state.get(_USED, (None, None))
    return setup if target is not None and workspace.target == target else None


def draw(setup: BootstrapSetup, used: bool = False) -> None:
    """`used` where the session's spaces and anchors are already those found."""
    specs = (setup.source_spec, setup.target_spec)
    outcome = results.computed(setup.spec, specs, label="Find the anchors", below=_live)
    if outcome is None:
        return
    result = outcome.result
    show, icon = _SHOWN[result.verdict]
    verdict, button = st.columns([3, 1], vertical_alignment="center")
    with verdict:
        show(f"**{plain(outcome.headline)}** {plain(result.reason)}", icon=f":material/{icon}:")
    button.button(
        "Use them everywhere",
        key="bootstrap.use",
        icon=":material/star:",
        disabled=used,
        type="primary" if result.success else "secondary",
        help=(
            f"Adds a copy of {plain_name(setup.target.name)} whose {len(result.pairs):,} matched rows have"
            " the ids of their partners, makes it the target, and replaces the session's anchors by those"
            " found. Undo restores the former ones."
        ),
        on_click=session.guarded,
        args=(use, setup, outcome),
    )
    digests = setup.source.digest, setup.target.digest
    recipe = {"source": specs[0], "target": specs[1], "digests": digests, "bootstrap": setup.spec}
    rounds, listed = st.columns([1.4, 1], gap="large")
    with rounds:
        st.subheader("Round by round", anchor=False)
        figure = BootstrapRounds(**recipe).draw(outcome)
        exports.figure(figure, "bootstrap.rounds", "bootstrap-rounds")
    with listed:
        _list(outcome)
    if outcome.scores:
        st.subheader("Scores of the anchors", anchor=False)
        score_table(outcome.scores, head="Anchors")
        st.caption("On held-out rows: not seeds, not anchors, and not matched with an anchor.")
        exports.export_bar(BootstrapScores(**recipe).draw(outcome), "bootstrap-scores")
    elif outcome.known:
        st.caption(
            "No scores: all rows in both spaces are anchors or were matched with one. Choose fewer anchors."
        )


def _list(outcome: Outcome) -> None:
    result, pairs = outcome.result, outcome.wrong() if outcome.known else outcome.result.anchors
    st.subheader("Wrong anchors" if outcome.known else "Anchors", anchor=False)
    text = (
        f"The first {result.n_seeds:,} are the seeds. The true pairing is unknown, so there are no scores:"
        " check the pairs by eye."
    )
    if outcome.known:
        by_chance = short(outcome.n_hidden / outcome.n_shared, 2)
        text = f"{len(pairs):,} of {outcome.n_hidden:,} hidden anchors; {by_chance} would be right by chance."
    st.caption(text)
    if pairs:
        table = pd.DataFrame(pairs, columns=["anchor", "matched to"])
        height = 360 if len(table) > 9 else "content"
        st.dataframe(table, key="bootstrap.list", hide_index=True, height=height)


def _live(jobs: list[Job]) -> None:
    from relcore.figures.lines import lines_figure

    curve = jobs[0].status().curve
    names = [name for name in _CURVES if any(value == value for value in curve.get(name, ()))]
    if not names:
        return
    lines = tuple(Line(name, range(1, len(curve[name]) + 1), curve[name]) for name in names)
    chart = Lines(lines, "round", "share", y_range=(0, 1.02))
    exports.chart(lines_figure(chart, exports.theme(), height=320), "bootstrap.live")
    known = " Found: anchors with their true partner, which the method does not know."
    st.caption(
        "Paired: source rows that are mutual nearest neighbours with a target row; for the published method,"
        f" its anchors.{known if 'share found' in names else ''}"
    )


def use(setup: BootstrapSetup, outcome: Outcome) -> None:
    """In one step: rename the target's rows after their partners, make it the target, and take the
    anchors.
    """
    result, workspace = outcome.result, session.workspace()
    key = put_pairing(engine().store, result.pairs)
    renamed = renamed_spec(setup.target_spec, key, f"{space_name(setup.target_spec)} · paired")
    spaces = workspace.spaces if renamed in workspace.spaces else (*workspace.spaces, renamed)
    pair = compute.matched(setup.source_spec, renamed)
    anchors = tuple(anchor for anchor, _ in result.anchors if anchor in pair.source.index)
    changed = replace(workspace, spaces=spaces, source=setup.source_spec, target=renamed).with_anchors(
        anchors, BOOTSTRAPPED
    )
    st.session_state[_USED] = renamed, setup
    session.become(f"use {len(anchors):,} bootstrapped anchors", fit_to_pair(changed, pair))
    session.announce(
        f"Compare, Anchors and Invert now use {counted(len(anchors), 'anchor')} and"
        f" {counted(len(pair), 'paired row')}."
    )
