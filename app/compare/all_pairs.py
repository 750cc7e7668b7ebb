"""A heat map of every pair of the session's spaces; clicking a cell makes its pair source and target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app import compute, exports, messages, results, session
from app.glossary.card import caption
from app.widgets import choose_pair, space_name
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.names import METRICS
from relcore.base.numbers import counted, short
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.scene import PairMap
from relcore.compare.scoring import AllPairs, metrics_among_spaces, pair_matrices
from relcore.scores.pair_scores import PairScores


def all_pairs(workspace: Workspace) -> None:
    st.subheader("All pairs", anchor=False)
    if len(workspace.spaces) < 3:
        st.caption("Add a third space in *Data* to compare every pair here.")
        return
    specs, spaces = [], []
    for spec in workspace.spaces:
        try:
            spaces.append(compute.load_space(spec))
            specs.append(spec)
        except SpaceError as error:
            messages.warning(f"{space_name(spec)} is left out: {error}")
    if len(spaces) < 2:
        return
    titles, keep = metrics_among_spaces(), {"persist_state": "session"}
    picture, choosers = st.columns([2.6, 1], gap="large")
    with choosers:
        metric = st.radio(
            "Score",
            titles,
            format_func=titles.get,
            captions=[METRICS[name].help for name in titles],
            key="all-pairs.metric",
            **keep,
        )
        grouped = st.toggle(
            "Group similar spaces",
            key="all-pairs.grouped",
            help="Orders the spaces by average-linkage clustering of 1 − score, so that similar ones meet.",
            **keep,
        )
    settings = {
        "anchors": workspace.anchors,
        "projection": workspace.projection,
        "k": workspace.k,
        "n_queries": compute.LIVE_QUERIES,
    }
    with picture:
        if "anchors" in METRICS[metric].needs and not workspace.anchors:
            messages.no_anchors()
            return
        label = f"Compare {counted(len(spaces) * (len(spaces) - 1) // 2, 'pair')}"
        result = results.computed(
            AllPairs.of(metric, **settings), specs, label=label, spaces=spaces, slower=2.0
        )
        if result is None:
            return
        _heat_map(workspace, dict(zip(result.names, specs, strict=True)), result, grouped)
    with choosers:
        caption(_circumstances(result))
    digests = tuple(space.digest for space in spaces)
    recipe = PairMap(tuple(specs), digests, grouped=grouped, metric=metric, **settings)
    exports.export_bar(recipe.draw(result), "all-pairs")


def _heat_map(workspace: Workspace, by_name: dict[str, SpaceSpec], result: PairScores, grouped: bool) -> None:
    from relcore.figures.screen import matrices_figure

    shown, pair = result.grouped() if grouped else result, (workspace.source, workspace.target)
    names = {spec: name for name, spec in by_name.items()}
    framed = tuple(names.get(spec, "") for spec in pair)
    figure = matrices_figure(pair_matrices(shown, framed), exports.theme(), width=760)
    drawn = [by_name[name] for name in shown.names]

    def pick(points: Sequence[Mapping[str, Any]]) -> None:
        if chosen := pair_of(points, drawn):
            step = f"compare {space_name(chosen[0])} and {space_name(chosen[1])}"
            session.guarded(choose_pair, *chosen, step)

    # The key names the pair, because Streamlit ignores a second click on a selected cell.
    exports.chart(figure, f"all-pairs.map-{results.place_of(pair)}", picked=pick)


def pair_of(
    points: Sequence[Mapping[str, Any]], drawn: Sequence[SpaceSpec]
) -> tuple[SpaceSpec, SpaceSpec] | None:
    """The two spaces of the clicked cell; None for a space with itself or without a selection."""
    if not points:
        return None
    _, i, j = points[0]["customdata"]
    return (drawn[i], drawn[j]) if i != j else None


def _circumstances(result: PairScores) -> str:
    n = len(result.names)
    pairs = [result.scores[i][j] for i in range(n) for j in range(i + 1, n)]
    scores = [score for score in pairs if score is not None]
    if not scores:
        return "None of these spaces can be compared with another; hover over a cell to see why."
    counts = sorted({score.n for score in scores})
    rows = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    some = next((score for score in scores if score.n_queries < score.n), None)
    text = f"{rows} rows, paired by id" + (f", {some.n_queries:,} of them as queries" if some else "")
    text += f" for their k = {scores[0].k} nearest." if scores[0].k else "."
    if band := result.best_chance:
        first, second, score = result.best
        text += (
            f" Highest score: {first} and {second}, {short(score)}. Chance level of the highest of"
            f" {len(scores)} scores: {short(band.low)} … {short(band.high)}."
        )
    left_out = len(scores) < len(pairs)
    return (
        f"{text} Chance level: the rows of one space are permuted; hover for its 95 % band. Click a cell to"
        " make its row the source and its column the target."
        + (" Hatched cells cannot be compared; hover over one to see why." if left_out else "")
    )
