"""Scores of many models that need no common space, such as CKA, as a heat map of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app import compute, exports, messages, results, session
from app.glossary.card import caption
from app.widgets import space_name
from app.workspace import Workspace
from relcore.base.names import METRICS
from relcore.base.numbers import counted, short
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.all_pairs import AllPairs, metrics_among_spaces, pair_matrices
from relcore.compare.pictures import PairMap
from relcore.scores.score import PairScores

OPENS = "relscope.universe-opens"


def compare_scores(workspace: Workspace, specs: Sequence[SpaceSpec]) -> None:
    """Draw scores of these spaces that need no common space, such as CKA."""
    spaces = [compute.load_space(spec) for spec in specs]
    known = set(METRICS.working())
    keep = {"persist_state": "session"}
    titles = {name: title for name, title in metrics_among_spaces().items() if name in known}
    choosers = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    # Limit the width, because narrow cells are easier to compare.
    picture = st.container(width=320 + 160 * len(specs))
    with choosers:
        metric = st.selectbox(
            "Score",
            list(titles),
            format_func=titles.get,
            help="; ".join(f"{titles[name]}: {METRICS[name].help}" for name in titles),
            width=280,
            key="all-pairs.metric",
            **keep,
        )
        grouped = st.toggle(
            "Group similar spaces",
            key="all-pairs.grouped",
            help="Puts similar spaces side by side (average-linkage clustering of 1 − score).",
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
        result = results.result_of(
            AllPairs.of(metric, **settings),
            specs,
            label=f"Compare {counted(len(spaces) * (len(spaces) - 1) // 2, 'pair')}",
            spaces=spaces,
            slower=2.0,
        )
        if result is None:
            return
        _heat_map(workspace, dict(zip(result.names, specs, strict=True)), result, grouped)
    caption(_circumstances(result))
    digests = tuple(space.digest for space in spaces)
    recipe = PairMap(tuple(specs), digests, grouped=grouped, metric=metric, **settings)
    exports.export_bar(recipe.draw(result), "all-pairs")


def _heat_map(workspace: Workspace, by_name: dict[str, SpaceSpec], result: PairScores, grouped: bool) -> None:
    from relcore.figures.screen_matrices import matrices_figure

    shown = result.grouped() if grouped else result
    pair = (workspace.source, workspace.target)
    names = {spec: name for name, spec in by_name.items()}
    framed = tuple(names.get(spec, "") for spec in pair)
    figure = matrices_figure(pair_matrices(shown, framed), exports.theme(), width=760)
    drawn = [by_name[name] for name in shown.names]

    def pick(points: Sequence[Mapping[str, Any]]) -> None:
        if chosen := pair_of(points, drawn):
            session.guarded(compare, *chosen)

    # The key contains the selected pair, because Streamlit ignores a second click on a selected cell.
    exports.chart(figure, f"all-pairs.map-{results.place_of(pair)}", picked=pick)


def compare(source: SpaceSpec, target: SpaceSpec) -> None:
    """Open Explore with this pair in the next run. Spaces of an example are added to the session."""
    spaces = session.workspace().spaces
    new = tuple(spec for spec in (source, target) if spec not in spaces)
    session.edit(
        f"compare {space_name(source)} and {space_name(target)}",
        spaces=(*spaces, *new),
        source=source,
        target=target,
    )
    st.session_state[OPENS] = True


def pair_of(
    points: Sequence[Mapping[str, Any]], drawn: Sequence[SpaceSpec]
) -> tuple[SpaceSpec, SpaceSpec] | None:
    """The two spaces of the clicked cell. Returns None without a click, and for a cell on the diagonal."""
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
    if len(counts) == 1:
        rows = f"{counts[0]:,}"
    else:
        rows = f"{counts[0]:,} to {counts[-1]:,}"
    some = next((score for score in scores if score.n_queries < score.n), None)
    of_queries = ""
    if some:
        of_queries = f", {some.n_queries:,} of them as queries"
    text = f"{rows} shared rows" + of_queries
    if scores[0].k:
        text += f" for their k = {scores[0].k} nearest."
    else:
        text += "."
    if band := result.best_chance:
        first, second, score = result.best
        text += (
            f" Highest score: {first} and {second}, {short(score)}. Chance level of the highest of"
            f" {len(scores)} scores: {short(band.low)} … {short(band.high)}."
        )
    left_out = len(scores) < len(pairs)
    empty = ""
    if left_out:
        empty = " Empty cells cannot be compared; hover over one to see why."
    return (
        f"{text} Chance level: the rows of one space are permuted; hover for its 95 % band. Click a cell to"
        " compare its row and its column in Explore." + empty
    )
