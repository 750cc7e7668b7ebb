"""The scores of the chosen anchors, and how the last change of the anchors changed the scores."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from app import compute, messages, session
from app.anchors.lists import headline_metric, step_between
from app.jobs import scores
from app.workspace import Workspace, strategy_of
from relcore.base.names import METRICS, STRATEGIES
from relcore.base.numbers import MINUS, counted, percent, short
from relcore.catalog.catalog import with_unscored
from relcore.scores.score import Interval, Score
from relcore.spaces.matching import Match


def _ends(workspace: Workspace) -> list:
    return [with_unscored(end, ()) for end in workspace.models]


def effect(
    workspace: Workspace, pair: Match
) -> tuple[dict[str, Score], dict[str, Score], dict[str, Interval]]:
    """Return the scores with the present anchors, the scores with the anchors before the last change, and the
    paired differences. All are computed in the anchor-based representation that the panes show."""
    representation = workspace.representation
    settings = workspace.scoring
    before = session.history().with_other_anchors
    now = scores(pair, representation, settings, alone=True)
    if (
        not before
        or not before.anchors
        or _ends(before) != _ends(workspace)
        or any(identifier not in pair.source.index for identifier in before.anchors)
        or not compute.can_be_scored(pair, before.anchors, workspace.anchors)
    ):
        return now, {}, {}
    sampled = any(score.interval for score in now.values())
    scores_of = scores
    if sampled:
        scores_of = compute.live_scores
    earlier = scores_of(pair, representation, replace(settings, anchors=before.anchors), alone=True)
    return now, earlier, compute.score_differences(pair, representation, before.anchors, settings)


def draw(workspace: Workspace, pair: Match) -> None:
    """Draw the scores with these anchors side by side. An arrow marks each score that has changed with the
    last change of the anchors."""
    if not workspace.anchors:
        return
    if not compute.can_be_scored(pair, workspace.anchors):
        messages.info(compute.too_few_held_out(pair, workspace.anchors), icon=":material/info:")
        return
    (now, before, moved) = effect(workspace, pair)
    steps = []
    first = headline_metric(now)
    if (share := now["mrr"].top1) is not None:
        st.metric("Nearest row the same", percent(float(share)), width="content", help=_SAME)
    for metric in sorted(now, key=lambda metric: metric != first):
        score = now[metric]
        change = moved.get(metric)
        help_ = score.describe()
        step = None
        if change and metric in before:
            step = step_between(before[metric], score, change)
        if change:
            help_ += f". Change, on rows that are anchors in neither set: {change.describe()}"
        if metric == first:
            help_ += f". Representation: {workspace.representation}. {_ABOUT}"
        steps.append(step)
        _draw_score(metric, score, step, help_, coloured=metric == first)
    if moved:
        text = "No clear change from"
        if any(steps):
            text = "Arrows: compared with"
        st.caption(
            f"{text} {_anchors_in_words(session.history().with_other_anchors)}",
            width="content",
        )


def _draw_score(metric: str, score: Score, step: str | None, help_: str, *, coloured: bool) -> None:
    """Draw a score and its chance level. If there is a step, it gets an arrow, which has a colour if
    `coloured`."""
    lost = (step or "").startswith(MINUS)  # Streamlit recognises only a hyphen as a minus sign
    colour = "off"
    if coloured:
        colour = "inverse" if lost else "normal"
    chance = ""
    if score.null:
        chance = f" · chance {score.null}"
    st.metric(
        METRICS[metric].title + chance,
        short(score),
        step,
        colour,
        help=help_,
        width="content",
        delta_arrow="down" if lost else "auto",
    )


def _anchors_in_words(workspace: Workspace) -> str:
    """The number and origin of the anchors in words: ``"300 random anchors"``, ``"299 other anchors"``."""
    chosen = strategy_of(workspace.anchors_from)
    how = "other"
    if chosen:
        how = STRATEGIES[chosen[0]].title.lower()
    return counted(len(workspace.anchors), f"{how} anchor")


_SAME = "The share of the held-out rows whose nearest row in the other space is the same row."
_ABOUT = (
    "Only held-out rows are scored, never an anchor. An arrow shows the change since the previous anchors,"
    f" if its 95 % interval (paired, at most {compute.DIFFERENCE_ROWS:,} rows) excludes 0. The arrows of"
    " cosine and CKA have no colour, because with fewer anchors these scores can rise although fewer"
    " neighbours are found."
)
