"""How alike are all of them? Every pair of the session's spaces as a heat map; a click makes a pair source and target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app import compute, exports, results, session
from app.widgets import choose_pair, space_name
from app.workspace import Workspace
from relcore.comparing.all_pairs import AllPairs, metrics_among_spaces
from relcore.comparing.figures import PairMap
from relcore.comparing.pair_scores import PairScores
from relcore.names import METRICS
from relcore.numbers import short
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import LatentSpace, SpaceError


def all_pairs(workspace: Workspace) -> None:
    """The section at the bottom of a page; with two spaces one line that says how to get more."""
    st.subheader("How alike are all of them?", anchor=False)
    if len(workspace.spaces) < 3:
        st.caption(
            "This session has two spaces. Add a third on the Spaces page, from a file or an encoder, and every pair is "
            "compared here."
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
        grouped = st.toggle("Group alike ones", key="all-pairs.grouped", persist_state="session", help=_GROUPING)
    with picture:
        if "anchors" in METRICS[metric].needs and not workspace.anchors:
            st.info("No anchors yet: choose some in the sidebar, or pick them on the Anchors page.", icon=":material/star:")
            return
        task = AllPairs.of(metric, **settings_of(workspace))
        label = f"Compare {len(spaces) * (len(spaces) - 1) // 2:,} pairs"
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


_GROUPING = "Alike spaces side by side: ordered by average-linkage clustering of 1 − score."


def _readable(workspace: Workspace) -> tuple[list[SpaceSpec], list[LatentSpace]]:
    """The session's spaces as far as they can still be read; what is left out is said."""
    specs, spaces = [], []
    for spec in workspace.spaces:
        try:
            spaces.append(compute.load_space(spec))
            specs.append(spec)
        except SpaceError as error:
            st.warning(f"{space_name(spec)} is left out: {error}", icon=":material/warning:")
    return specs, spaces


def settings_of(workspace: Workspace) -> dict[str, Any]:
    """The settings that some of the metrics need."""
    asked = {"k": workspace.k, "n_queries": compute.LIVE_QUERIES}
    return {"anchors": workspace.anchors, "projection": workspace.projection, **asked}


def _heat_map(workspace: Workspace, specs: Sequence[SpaceSpec], names: tuple[str, ...], shown: PairScores) -> None:
    """The figure; its key holds the pair, since a cell that is selected already would not hear a second click."""
    from relcore.figures.pairs_interactive import pairs_figure

    by_name = dict(zip(names, specs, strict=True))
    present = {spec: name for name, spec in by_name.items()}
    marked = (present.get(workspace.source, ""), present.get(workspace.target, ""))
    figure = pairs_figure(shown.table(), shown.title, exports.theme(), marked=marked)
    key = f"all-pairs.map-{results.place_of((workspace.source, workspace.target))}"
    exports.chart(figure, key, picked=lambda points: _pick(points, by_name), tools=False)


def _pick(points: Sequence[Mapping[str, Any]], by_name: dict[str, SpaceSpec]) -> None:
    if pair := pair_of(points, by_name):
        session.guarded(choose_pair, *pair, f"compare {space_name(pair[0])} and {space_name(pair[1])}")


def pair_of(points: Sequence[Mapping[str, Any]], by_name: Mapping[str, SpaceSpec]) -> tuple[SpaceSpec, SpaceSpec] | None:
    """The two spaces of the cell that was clicked, its row first; None for a space with itself, and where nothing is picked."""
    if not points:
        return None
    source, target = (by_name.get(name) for name in points[0]["customdata"])
    return (source, target) if source and target and source != target else None


def _circumstances(found: PairScores) -> str:
    n = len(found.names)
    pairs = [found.scores[i][j] for i in range(n) for j in range(i + 1, n)]
    scores = [score for score in pairs if score is not None]
    if not scores:
        return "No two of these spaces can be compared; hover a cell to read why."
    counts = sorted({score.n for score in scores})
    rows = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    some = next((score for score in scores if score.n_queries < score.n), None)
    asked = f", {some.n_queries:,} of them as queries" if some else ""
    asked += f" for their k = {scores[0].k} nearest" if scores[0].k else ""
    left_out = " Hatched: cannot be compared, hover to read why." if len(scores) < len(pairs) else ""
    best = ""
    if found.best_chance:
        first, second, score = found.best
        band = found.best_chance
        best = (
            f" Most alike: {first} and {second}, {short(score)}; the best of {len(scores)} pairs is {short(band.low)} … "
            f"{short(band.high)} by chance."
        )
    return (
        f"{rows} rows, paired by id{asked}.{best} Chance: the rows of one space are permuted; hover for its "
        f"95 % band. Click a cell to compare that pair: row as source, column as target.{left_out}"
    )
