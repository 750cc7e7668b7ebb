"""What a change of the spaces asks of the rest: anchors, pivots and colours that the new pair has.

A choice is written down at once, and fitted in the run that follows: Streamlit breaks off a callback that takes long when the
next click comes, and the choice would be lost.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from app import compute, messages, session
from app.map_looks import colors_of
from app.workspace import MOST_ANCHORS, Workspace
from relcore.names import STRATEGIES
from relcore.numbers import counted
from relcore.spaces import Match, SpaceError
from relcore.views import ViewSpec, default_view


def settle() -> None:
    """Fit the present workspace to its pair, as part of the step that made it; nothing where the pair cannot be compared."""
    with suppress(SpaceError):  # the page says what is wrong, and another choice mends it
        present = session.workspace()
        pair = compute.matched(present.source, present.target)
        if fits(present, pair):
            return
        fitted = fit_to_pair(present, pair)
        session.amend(fitted)
        if (lost := len(set(present.anchors) - set(fitted.anchors))) and not present.by_strategy:
            messages.toast(f"Left out: {counted(lost, 'anchor')} that {'is' if lost == 1 else 'are'} not in both spaces.")


def fits(workspace: Workspace, pair: Match) -> bool:
    """Whether the pair has all anchors and pivots of the workspace, and the labels and columns that it uses."""
    index, view = pair.source.index, workspace.view
    unlabelled = pair.source.labels is None and workspace.anchors_from.startswith("class-balanced")
    colored = {view.color_by, workspace.look.second} <= {"", *colors_of(workspace, pair)}
    chosen = workspace.anchors or not workspace.by_strategy
    return bool(chosen) and colored and not unlabelled and all(one in index for one in (*workspace.anchors, *view.pivots))


def fit_to_pair(workspace: Workspace, pair: Match) -> Workspace:
    """The workspace with pivots and anchors that are in both spaces.

    Pivots and hand-picked anchors stay as far as they are there; anchors by strategy are all chosen again if one is missing. A
    pair that has none of the pivots begins with its own default view.

    Raises
    ------
    SpaceError
        The pair has no rows that anchors could be chosen from.
    """
    second = workspace.look.second if workspace.look.second in colors_of(workspace, pair) else ""
    fitted = replace(workspace, view=_fitting_view(workspace, pair), look=replace(workspace.look, second=second))
    if not workspace.anchors and not workspace.anchors_from:  # the user removed them all
        return fitted
    kept = tuple(identifier for identifier in workspace.anchors if identifier in pair.source.index)
    unlabelled = pair.source.labels is None and workspace.anchors_from.startswith("class-balanced")
    if kept and not unlabelled and (len(kept) == len(workspace.anchors) or not workspace.by_strategy):
        return fitted.with_anchors(kept, workspace.anchors_from)
    strategy, n_anchors, random_state = anchors_origin(workspace)
    strategy = "random" if strategy == "class-balanced" and pair.source.labels is None else strategy
    n_anchors = min(n_anchors, max(1, len(pair) // 2), MOST_ANCHORS)  # the other half is held out to be scored
    pinned = tuple(identifier for identifier in workspace.pinned if identifier in pair.source.index)
    chosen = compute.select_anchors(pair, n_anchors, strategy, random_state)
    return fitted.with_anchors(behind(pinned, chosen, n_anchors), f"{strategy} {n_anchors} {random_state}")


def _fitting_view(workspace: Workspace, pair: Match) -> ViewSpec:
    view = workspace.view
    by_labels = view.color_by == "labels"
    column = view.color_by if view.color_by in colors_of(workspace, pair) else "pivots"
    if pivots := tuple(pivot for pivot in view.pivots if pivot in pair.source.index):
        return replace(view, pivots=pivots, color_by=column)
    usual = default_view(pair.source)
    everything = usual.everything or (view.everything and not by_labels)  # of classes all was shown for their colours' sake
    return replace(view, pivots=usual.pivots, color_by=usual.color_by, everything=everything)


def behind(pinned: tuple[str, ...], chosen: tuple[str, ...], n_anchors: int) -> tuple[str, ...]:
    """The pinned anchors, then enough of the chosen ones to reach the number."""
    held = set(pinned)
    rest = tuple(identifier for identifier in chosen if identifier not in held)
    return pinned + rest[: max(n_anchors - len(pinned), 0)]


def anchors_origin(workspace: Workspace) -> tuple[str, int, int]:
    """Strategy, number and random state of the anchors; for anchors chosen by hand, those of a new strategy."""
    parts = workspace.anchors_from.split(" ")
    if len(parts) == 3 and parts[0] in STRATEGIES and all(part.isascii() and part.isdecimal() for part in parts[1:]):
        return parts[0], max(1, int(parts[1])), int(parts[2])
    return "random", max(1, len(workspace.anchors)), 0
