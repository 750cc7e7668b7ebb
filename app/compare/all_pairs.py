"""A heat map of every pair of the session's spaces; clicking a cell makes its pair source and target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app import compute, exports, messages, results, session
from app.widgets import choose_pair, space_name
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.names import METRICS
from relcore.base.numbers import counted, short
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.all_pairs import AllPairs, metrics_among_spaces, pair_matrices
from relcore.compare.figures import PairMap
from relcore.scores.pair_scores import PairScores
from relcore.spaces.space import LatentSpace


def all_pairs(workspace: Workspace) -> None:
    """The section at the end of a page; with only two spaces, a line on how to add more."""
    st.subheader("All pairs", anchor=False)
    if len(workspace.spaces) < 3:
        st.caption(
            "This session has two spaces. Add a third one on the Spaces page to compare every pair here."
        )
        return
    specs, spaces = _readable(workspace)
    if len(spaces) < 2:
        return
    titles = metrics_among_spaces()
    picture, choosers = st.columns([2.6, 1], gap="large")
    with choosers:
        metric = st.radio(
            "Score",
            titles,
            format_func=titles.get,
            captions=[METRICS[name].help for name in titles],
            key="all-pairs.metric",
            persist_state="session",
        )
        grouped = st.toggle(
            "Group similar spaces", key="all-pairs.grouped", persist_state="session", help=_GROUPING
        )
    with picture:
        if "anchors" in METRICS[metric].needs and not workspace.anchors:
            st.info(
                "No anchors yet: choose some in the sidebar, or pick them on the Anchors page.",
                icon=":material/star:",
            )
            return
        task = AllPairs.of(metric, **settings_of(workspace))
        label = f"Compare {counted(len(spaces) * (len(spaces) - 1) // 2, 'pair')}"
        found = results.computed(task, specs, label=label, spaces=spaces, slower=2.0)
        if found is None:
            return
        shown = found.grouped() if grouped else found
        _heat_map(workspace, specs, found.names, shown)
    with choosers:
        st.caption(_circumstances(found))
    digests = tuple(space.digest for space in spaces)
    recipe = PairMap(tuple(specs), digests, grouped=grouped, metric=metric, **settings_of(workspace))
    exports.export_bar(recipe.draw(found), "all-pairs")


_GROUPING = (
    "Orders the spaces by average-linkage clustering of 1 − score, so that similar spaces are adjacent."
)


def _readable(workspace: Workspace) -> tuple[list[SpaceSpec], list[LatentSpace]]:
    """The session's spaces that can be read, with a warning for each of the others."""
    specs, spaces = [], []
    for spec in workspace.spaces:
        try:
            spaces.append(compute.load_space(spec))
            specs.append(spec)
        except SpaceError as error:
            messages.warning(f"{space_name(spec)} is left out: {error}")
    return specs, spaces


def settings_of(workspace: Workspace) -> dict[str, Any]:
    """The settings that some of the metrics need."""
    asked = {"k": workspace.k, "n_queries": compute.LIVE_QUERIES}
    return {"anchors": workspace.anchors, "projection": workspace.projection, **asked}


def _heat_map(
    workspace: Workspace, specs: Sequence[SpaceSpec], names: tuple[str, ...], shown: PairScores
) -> None:
    """The figure; its key contains the pair, because Streamlit ignores a second click on a selected cell."""
    from relcore.figures.screen import matrices_figure

    by_name = dict(zip(names, specs, strict=True))
    present = {spec: name for name, spec in by_name.items()}
    framed = (present.get(workspace.source, ""), present.get(workspace.target, ""))
    figure = matrices_figure(pair_matrices(shown, framed), exports.theme(), width=760)
    drawn = [by_name[name] for name in shown.names]
    key = f"all-pairs.map-{results.place_of((workspace.source, workspace.target))}"
    exports.chart(figure, key, picked=lambda points: _pick(points, drawn), tools=False)


def _pick(points: Sequence[Mapping[str, Any]], drawn: Sequence[SpaceSpec]) -> None:
    if pair := pair_of(points, drawn):
        session.guarded(choose_pair, *pair, f"compare {space_name(pair[0])} and {space_name(pair[1])}")


def pair_of(
    points: Sequence[Mapping[str, Any]], drawn: Sequence[SpaceSpec]
) -> tuple[SpaceSpec, SpaceSpec] | None:
    """The two spaces of the clicked cell, its row first; None for a space with itself or without a
    selection.
    """
    if not points:
        return None
    _, i, j = points[0]["customdata"]
    return (drawn[i], drawn[j]) if i != j else None


def _circumstances(found: PairScores) -> str:
    n = len(found.names)
    pairs = [found.scores[i][j] for i in range(n) for j in range(i + 1, n)]
    scores = [score for score in pairs if score is not None]
    if not scores:
        return "None of these spaces can be compared with another; hover over a cell to see why."
    counts = sorted({score.n for score in scores})
    rows = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    some = next((score for score in scores if score.n_queries < score.n), None)
    asked = f", {some.n_queries:,} of them as queries" if some else ""
    asked += f" for their k = {scores[0].k} nearest" if scores[0].k else ""
    left_out = (
        " Hatched cells cannot be compared; hover over one to see why." if len(scores) < len(pairs) else ""
    )
    best = ""
    if found.best_chance:
        first, second, score = found.best
        band = found.best_chance
        best = (
            f" Highest score: {first} and {second}, {short(score)}. Chance level of the highest of"
            f" {len(scores)} scores: {short(band.low)} … {short(band.high)}."
        )
    return (
        f"{rows} rows, paired by id{asked}.{best} Chance level: the rows of one space are permuted; hover for"
        " its 95 % band. Click a cell to compare its pair: the row becomes the source, the column the"
        f" target.{left_out}"
    )
