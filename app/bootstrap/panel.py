"""Run the bootstrap: choosers, a button, the verdict, the links to check, and a button to use them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, messages, results, session
from app.glossary.card import caption
from app.items import with_items
from app.jobs import engine
from app.page_settings import kept, segments
from app.plain_text import plain, plain_name
from app.session import fit_to_pair
from app.tables import chosen_rows, score_table
from app.widgets import setting_widget, space_name
from app.workspace import BOOTSTRAPPED, MOST_ANCHORS, Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.base.settings import settings_of
from relcore.bootstrap.spec import (
    FEWEST_SHARED,
    PAPER_ROWS,
    BootstrapRounds,
    BootstrapScores,
    BootstrapSpec,
    Outcome,
    read_pairs,
    rounds_chart,
)
from relcore.catalog.catalog import SpaceSpec, put_pairing, renamed_spec
from relcore.figures.export import chart_exportable
from relcore.represent.bootstrap import LEARNING_RATE, PROMISED
from relcore.runs.jobs import Job
from relcore.spaces.space import LatentSpace, shared_ids

_MODES = {"hide": "Experiment", "real": "Real use"}
_SEEDS = {"random": "Random", "anchors": "Anchors", "typed": "Typed", "none": "None"}
_MODE_HELP = (
    "Experiment: the target's rows are shuffled and only the seeds are known; the ids are used to score the"
    " result. Real use: two spaces whose rows may have no ids in common."
)
_SEEDS_HELP = (
    "Pairs that are known to belong together: at least three; the paper uses 15. Random pairs, the first of"
    " the session's anchors, or pairs that you type. Without seeds, both spaces need word counts or"
    " at most 4,000 rows."
)


@dataclass(frozen=True, eq=False)
class BootstrapSetup:
    source_spec: SpaceSpec
    target_spec: SpaceSpec
    source: LatentSpace
    target: LatentSpace
    spec: BootstrapSpec
    details: DeltaGenerator | None = None  # where rare choices stand, of this run of the page


def choose(workspace: Workspace) -> BootstrapSetup | None:
    """The choosers; None if the settings are invalid, and the page shows why."""
    source, target = (compute.load_space(spec) for spec in (workspace.source, workspace.target))
    if workspace.source == workspace.target:
        return messages.info(
            "Source and target are the same space. Choose two different spaces above.",
            ":material/info:",
        )
    guessed = any(spec.rows_of.source == "renamed" for spec in (workspace.source, workspace.target))
    if guessed:
        tell_in_use()
    n_shared = 0 if guessed else len(shared_ids([source, target]))  # such ids are guesses
    fields, experiments = settings_of(BootstrapSpec), n_shared >= FEWEST_SHARED

    def number(name: str, key: str, low: float, high: float, usual: float | None, **look: Any) -> Any:
        return setting_widget(fields[name], f"bootstrap.{key}", usual, low, high, width=140, **look)

    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="bootstrap-choosers"):
        modes = [mode for mode in _MODES if experiments or mode == "real"]
        mode = segments("Purpose", modes, "bootstrap.mode", help=_MODE_HELP, format_func=_MODES.get)
        offered = {"random": mode == "hide", "anchors": not guessed and len(workspace.anchors) > 2}
        starts = [seeds for seeds in _SEEDS if offered.get(seeds, True)]
        start = segments(
            "Seeds (known pairs)",
            starts,
            f"bootstrap.start-{'-'.join(starts)}",
            help=_SEEDS_HELP,
            format_func=_SEEDS.get,
        )
        details = st.popover("Method details", icon=":material/tune:", key="bootstrap.details")
    with details:
        method = setting_widget(fields["method"], "bootstrap.method")
        n = min(len(source), len(target))
        rows = number(
            "rows",
            f"rows-{n}-{method}",
            min(10, n),
            n,
            PAPER_ROWS if method == "paper" and n > PAPER_ROWS else None,
            placeholder="all",
        )
        most = min(rows or n, MOST_ANCHORS)
        n_anchors = number("n_anchors", f"anchors-{most}", 1, most, min(300, max(1, most // 2)))
        settings = {"n_anchors": n_anchors, "n_seeds": 0}
        if start in ("random", "anchors"):
            most = max(3, n_anchors - 1)
            n_seeds = number("n_seeds", f"seeds-{most}", 3, most, min(15, most))
            settings["n_seeds"] = n_seeds if start == "random" else 0
        if method == "paper":
            settings["learning_rate"] = number(
                "learning_rate", "learning-rate", 0.001, 1.0, LEARNING_RATE, format="%.3f"
            )
        settings["precision"] = number("precision", "precision", 0.0, 1.0, PROMISED)
        settings["random_state"] = number("random_state", "random-state", 0, 10_000, 0)
    pairs: tuple[tuple[str, str], ...] = ()
    if start == "anchors":
        pairs = tuple((anchor, anchor) for anchor in workspace.anchors[:n_seeds])
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
    return BootstrapSetup(workspace.source, workspace.target, source, target, spec, details)


def tell_in_use() -> None:
    st.info(
        "This pairing was bootstrapped. Compare, Anchors and Invert use it, and score only pairs that you"
        " confirmed. To bootstrap again, choose the original space above, or undo.",
        icon=":material/hub:",
    )


_USED = "relscope.bootstrap-used"
_CHECKED = 100  # pairs that are listed to be checked


def in_use(workspace: Workspace) -> BootstrapSetup | None:
    """What this workspace's target was bootstrapped with, where this session did it."""
    target, setup = st.session_state.get(_USED, (None, None))
    return setup if target is not None and workspace.target == target else None


def draw(setup: BootstrapSetup, used: bool = False) -> None:
    """`used` where the session's spaces and anchors are already those found."""
    specs = (setup.source_spec, setup.target_spec)

    def live(jobs: list[Job]) -> None:
        if curve := jobs[0].status().curve:
            chart = rounds_chart(setup.spec.method, curve)
            exports.chart(chart_exportable(chart).interactive(exports.theme()), "bootstrap.live")

    outcome = results.computed(setup.spec, specs, label="Find the anchors", below=live, details=setup.details)
    if outcome is None:
        return
    result = outcome.result
    show, icon = (st.success, "check_circle") if result.verdict == "fits" else (st.warning, "help")
    verdict, button = st.columns([3, 1], vertical_alignment="center")
    with verdict:
        show(f"**{plain(outcome.headline)}** {plain(result.reason)}", icon=f":material/{icon}:")
    digests = setup.source.digest, setup.target.digest
    recipe = {"source": specs[0], "target": specs[1], "digests": digests, "bootstrap": setup.spec}
    rounds, listed = st.columns([1.4, 1], gap="large")
    with rounds:
        st.subheader("Round by round", anchor=False)
        figure = BootstrapRounds(**recipe).draw(outcome)
        exports.figure(figure, "bootstrap.rounds", "bootstrap-rounds")
    with listed:
        confirmed = _list(setup, outcome)
    button.button(
        f"Confirm {counted(len(confirmed), 'pair')}" if used and confirmed else "Use them everywhere",
        key="bootstrap.use",
        icon=":material/star:",
        disabled=not result.kept or (used and not confirmed),
        type="primary" if result.verdict == "fits" else "secondary",
        help=(
            "Scores these pairs, too, on all pages."
            if used
            else f"Adds a copy of {plain_name(setup.target.name)} whose {len(result.kept):,} linked rows have"
            " the ids of their partners, makes it the target, and replaces the session's anchors by those"
            " found. Undo restores the former ones."
        ),
        on_click=session.guarded,
        args=(use, setup, outcome, confirmed),
    )
    if outcome.scores:
        st.subheader("Scores of the anchors", anchor=False)
        score_table(outcome.scores, head="Anchors")
        caption("On held-out rows: not seeds, not anchors, and not matched with an anchor.")
        exports.export_bar(BootstrapScores(**recipe).draw(outcome), "bootstrap-scores")
    elif outcome.known:
        st.caption(
            "No scores: all rows in both spaces are anchors or were matched with one. Choose fewer anchors."
        )


def _list(setup: BootstrapSetup, outcome: Outcome) -> tuple[str, ...]:
    """Wrong anchors, or links to check by eye: the source ids of those that the user selects as right."""
    result = outcome.result
    if outcome.known:
        pairs, by_chance = outcome.wrong(), short(outcome.n_hidden / outcome.n_shared, 2)
        st.subheader("Wrong anchors", anchor=False)
        caption(
            f"{len(pairs):,} of {outcome.n_hidden:,} hidden anchors; {by_chance} would be right by chance."
        )
    else:
        anchors = set(result.anchors)
        links = [pair for pair in result.kept if pair not in anchors]
        pairs = [links[number] for number in np.random.default_rng(0).permutation(len(links))[:_CHECKED]]
        st.subheader("Check the pairs", anchor=False)
        caption(
            "Random links that are no anchors. Select those that are right: only pairs that you confirm are"
            " scored."
        )
    if not pairs:
        return ()
    sides, look = [], {"column_config": {}}
    for spec, ids, name in zip(
        (setup.source_spec, setup.target_spec),
        zip(*pairs, strict=True),
        ("anchor" if outcome.known else "source", "matched to"),
        strict=True,
    ):
        alone = replace(Workspace(), source=spec, target=spec)
        side, own = with_items(alone, pd.DataFrame({"id": ids}))
        names = {column: name if column == "id" else f"{column}, {name}" for column in side}
        config = {names[column]: kind for column, kind in own["column_config"].items()}
        look |= own | {"column_config": look["column_config"] | config}
        sides.append(side.rename(columns=names))
    table, height = pd.concat(sides, axis=1), 360 if len(pairs) > 9 else "content"
    if outcome.known:
        st.dataframe(table, key="bootstrap.list", hide_index=True, height=height, **look)
        return ()
    rows = chosen_rows(table, "bootstrap.list", several=True, height=height, **look)
    return tuple(pairs[row][0] for row in rows)


def use(setup: BootstrapSetup, outcome: Outcome, confirmed: tuple[str, ...] = ()) -> None:
    """In one step: rename the target's linked rows after their partners, make it the target, and take the
    anchors. Only pairs with `confirmed` ids are scored, and those that were confirmed before.
    """
    result, workspace = outcome.result, session.workspace()
    if in_use(workspace):
        confirmed = tuple(compute.load_space(workspace.target).ids.marks.union(confirmed))
    key = put_pairing(engine().store, result.kept, confirmed)
    renamed = renamed_spec(setup.target_spec, key, f"{space_name(setup.target_spec)} · bootstrapped pairs")
    former = (renamed, workspace.target if in_use(workspace) else None)
    spaces = (*(spec for spec in workspace.spaces if spec not in former), renamed)
    pair = compute.matched(setup.source_spec, renamed)
    anchors = tuple(anchor for anchor, _ in result.anchors if anchor in pair.source.index)
    changed = replace(workspace, spaces=spaces, source=setup.source_spec, target=renamed).with_anchors(
        anchors, BOOTSTRAPPED
    )
    st.session_state[_USED] = renamed, replace(setup, details=None)
    session.become(f"use {len(anchors):,} bootstrapped anchors", fit_to_pair(changed, pair))
    session.announce(
        f"Compare, Anchors and Invert now use {counted(len(anchors), 'anchor')} and"
        f" {counted(len(pair), 'linked row')}, of which {len(confirmed):,} are confirmed and can be scored."
    )


def page(workspace: Workspace) -> None:
    caption(
        "Two relative spaces need parallel anchors: rows whose partners in the other space are known. This"
        " finds hundreds of them from a few known pairs, or from none."
    )
    if (used := in_use(workspace)) is not None:
        tell_in_use()
        draw(used, used=True)
    elif (setup := choose(workspace)) is not None:
        draw(setup)
