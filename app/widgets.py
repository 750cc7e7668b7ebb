"""Choosers: widgets that show a value of the workspace and change it. The workspace is the truth, the widget its picture."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import streamlit as st

from app import compute, session
from app.workspace import MOST_NEIGHBOURS, Workspace
from relcore.anchors.selection import STRATEGIES
from relcore.metrics.neighbours import CONVENTIONS
from relcore.similarity import SIMILARITIES
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import Match, SpaceError
from relcore.views import default_pivots


def bound(widget: Callable, label: str, key: str, value: Any, apply: Callable[[Any], None], **settings: Any) -> Any:
    """A widget that shows `value` and calls ``apply(new value)`` when the user changes it.

    The value is set anew in each run: Streamlit forgets widgets of a page that is left, and undo must move them too.
    """
    st.session_state[key] = value

    def changed() -> None:
        try:
            apply(st.session_state[key])
        except SpaceError as error:
            session.notify(str(error))

    return widget(label, key=key, on_change=changed, **settings)


def space_name(spec: SpaceSpec) -> str:
    """A name that fits a chooser: the last part of a path."""
    return spec.name.replace("\\", "/").rsplit("/", 1)[-1]


def space_choosers(workspace: Workspace) -> None:
    """Source and target among the spaces of this session."""
    for side in ("source", "target"):
        bound(
            st.selectbox,
            side.capitalize(),
            f"choose.{side}",
            getattr(workspace, side),
            lambda spec, side=side: choose_space(side, spec),
            options=workspace.spaces,
            format_func=space_name,
        )


def choose_space(side: str, spec: SpaceSpec) -> None:
    """Make a space the source or the target, as one step; pivots and anchors that the new pair lacks are chosen anew."""
    changed = replace(session.workspace(), **{side: spec})
    with suppress(SpaceError):  # chosen all the same: the page says what is wrong, and another choice mends it
        changed = fit_to_pair(changed, compute.matched(changed.source, changed.target))
    session.history().edit(f"choose {space_name(spec)} as {side}", changed)


def fit_to_pair(workspace: Workspace, pair: Match) -> Workspace:
    """The workspace with pivots and anchors that both spaces have.

    Pivots and hand-picked anchors stay as far as they are there; anchors by strategy are all chosen anew if one is missing.

    Raises
    ------
    SpaceError
        The pair has no rows that anchors could be chosen from.
    """
    pivots = tuple(pivot for pivot in workspace.view.pivots if pivot in pair.source.index)
    view = replace(workspace.view, pivots=pivots or default_pivots(pair.source))
    if pair.source.labels is None and view.color_by == "labels":
        view = replace(view, color_by="pivots")
    fitted = replace(workspace, view=view)
    kept = tuple(identifier for identifier in workspace.anchors if identifier in pair.source.index)
    if kept and (len(kept) == len(workspace.anchors) or not workspace.anchors_from):
        return fitted.with_anchors(kept, workspace.anchors_from)
    strategy, n_anchors, random_state = anchors_origin(workspace)
    strategy = "random" if strategy == "class-balanced" and pair.source.labels is None else strategy
    n_anchors = min(n_anchors, len(pair))
    chosen = compute.select_anchors(pair, n_anchors, strategy, None, random_state)
    return fitted.with_anchors(chosen, f"{strategy} {n_anchors} {random_state}")


def strategy_choosers(pair: Match, key: str) -> None:
    """Strategy, number and random state; each change chooses new anchors, pinned ones stay."""
    strategy, n_anchors, random_state = anchors_origin(session.workspace())
    usable = [name for name in STRATEGIES if name != "class-balanced" or pair.source.labels is not None]

    def choose(**changed: Any) -> None:
        settings = {"strategy": strategy, "n_anchors": n_anchors, "random_state": random_state} | changed
        choose_anchors(pair, **settings)

    bound(
        st.selectbox,
        "Strategy",
        f"{key}.strategy",
        strategy,
        lambda value: choose(strategy=value),
        options=usable,
        help="Random: uniform. Farthest-point: each next one farthest from those chosen. k-means: the row nearest to each "
        "centroid. Most frequent: by corpus count. Class-balanced: the same number from each label.",
    )
    bound(
        st.number_input,
        "Number of anchors",
        f"{key}.number",
        n_anchors,
        lambda value: choose(n_anchors=value),
        min_value=1,
        max_value=max(len(pair), n_anchors),
        step=10,
        help="More anchors tell more apart and cost more. The papers use 300 for words.",
    )


def anchors_origin(workspace: Workspace) -> tuple[str, int, int]:
    """Strategy, number and random state behind the anchors; for hand-picked ones what a new strategy would start from."""
    parts = workspace.anchors_from.split(" ")
    if len(parts) == 3 and parts[0] in STRATEGIES and parts[1].isdigit() and parts[2].isdigit():
        return parts[0], max(1, int(parts[1])), int(parts[2])
    return "random", max(1, len(workspace.anchors)), 0


def choose_anchors(pair: Match, strategy: str, n_anchors: int, random_state: int) -> None:
    """Anchors by strategy, behind those that are pinned, as one step.

    Raises
    ------
    SpaceError
        More than there are rows to choose from, and the other reasons of `select_anchors`.
    """
    pinned = session.workspace().pinned
    chosen = compute.select_anchors(pair, n_anchors, strategy, None, random_state)
    kept = tuple(identifier for identifier in chosen if identifier not in set(pinned))
    ids = pinned + kept[: max(n_anchors - len(pinned), 0)]
    session.set_anchors(f"choose {n_anchors} anchors, {strategy}", ids, f"{strategy} {n_anchors} {random_state}")


def projection_choosers(workspace: Workspace) -> None:
    """Similarity, centring and the weight of the whitening."""
    bound(
        st.selectbox,
        "Similarity",
        "projection.similarity",
        workspace.projection.similarity,
        lambda value: session.edit_spec(f"similarity {value}", "projection", similarity=value),
        options=SIMILARITIES,
        help="Cosine is the papers'. Quantised is cosine after clustering (Moschella et al., Fig. 7).",
    )
    bound(
        st.toggle,
        "Centre first",
        "projection.center",
        workspace.projection.center,
        lambda value: session.edit_spec("centre" if value else "do not centre", "projection", center=value),
        help="Subtract each space's mean, so that a shift does not matter (Maiorca et al. 2024). Off: Moschella et al. 2023.",
    )


def score_choosers(workspace: Workspace) -> None:
    """Neighbours looked at, and whose they are."""
    bound(
        st.number_input,
        "Neighbours k",
        "scores.k",
        workspace.k,
        lambda value: session.edit(f"k = {value}", k=value),
        min_value=1,
        max_value=MOST_NEIGHBOURS,
    )
    bound(
        st.segmented_control,
        "Convention",
        "scores.convention",
        workspace.convention,
        lambda value: session.edit(f"{value} convention", convention=value or workspace.convention),
        options=CONVENTIONS,
        help="Paper: both neighbourhoods among the target's rows, the word itself included (Moschella et al., their code). "
        "Mutual: each space its own neighbours, the word itself left out.",
    )
