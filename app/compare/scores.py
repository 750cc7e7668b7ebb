"""All scores of two spaces with their chance levels, and a button that uses every row as a query."""

from __future__ import annotations

import streamlit as st

from app import compute, exports, messages
from app.compare.headline import against_first, all_scores, model_names, representations, scores_figure
from app.jobs import exact_scores, follow
from app.places import CONNECT, go
from app.plain_text import plain
from app.tables import score_table, show_cautions
from app.workspace import BUNDLED, Workspace
from relcore.base.errors import SpaceError
from relcore.base.names import METRICS
from relcore.figures.colorings import conditions_in_words
from relcore.maps.pane_maps import View
from relcore.scores.score import Score
from relcore.spaces.ids import GuessedIds
from relcore.spaces.matching import Match


def draw(workspace: Workspace, models: Match, _: View) -> None:
    _draw_scores(workspace, models)
    own = {spec for spec in workspace.spaces if spec not in BUNDLED}
    if len(own.union(workspace.models)) > 2 and st.button(
        "Compare more than two spaces", icon=":material/hub:", key="scores.universe"
    ):
        go(CONNECT, "Universe")


def _draw_scores(workspace: Workspace, models: Match) -> None:
    pair = models.pair()
    controls = st.container(
        horizontal=True, horizontal_alignment="right", vertical_alignment="center", key="scores.controls"
    )
    if isinstance(pair.ids, GuessedIds) and not compute.can_be_scored(pair, workspace.anchors):
        messages.info(compute.too_few_held_out(pair, workspace.anchors), ":material/hub:")
        return
    if workspace.look.filter and controls.toggle(
        "In the filter", key="scores.filter", help="Compare only the rows in colour, with each other"
    ):
        facets = compute.workspace_facets(pair, workspace)
        conditions = conditions_in_words(facets, workspace.look.filter)
        _draw_filtered_scores(workspace, compute.filtered_pair(pair, workspace), conditions)
        return
    start = controls.button(
        "Score every row",
        help=(
            "Runs a job that searches the neighbours of every held-out row. All pages then show these scores."
        ),
        icon=":material/done_all:",
    )
    scores = all_scores(workspace, pair)
    results = [exact_scores(pair, name, workspace.scoring, start=start) for name in scores]
    score_table(scores)
    show_cautions(pair, tuple(workspace.anchors))
    follow([job for job in results if job is not None and not isinstance(job, dict)])
    exports.export_bar(scores_figure(workspace, models, scores), "scores")
    _each_model(workspace, models)
    _more_measures(workspace, pair, tuple(scores))


def _each_model(workspace: Workspace, models: Match) -> None:
    """If there are more than two models, draw the scores of each model against the first."""
    if not models.others or not workspace.anchors or not compute.can_be_scored(models, workspace.anchors):
        return
    first = model_names(models)[0]
    st.markdown(f"**Each model against {plain(first)}**, relative to the anchors")
    score_table(against_first(workspace, models), head="Model")


def _draw_filtered_scores(workspace: Workspace, pair: Match, conditions: str) -> None:
    """Draw the scores of the rows of a pair that meet these conditions, given in words."""
    anchors = workspace.anchors
    if not compute.can_be_scored(pair, anchors):
        messages.info(compute.too_few_held_out(pair, anchors), ":material/filter_alt:")
        return
    n = compute.n_held_out(pair, anchors)
    st.caption(
        f"Rows in the filter ({plain(conditions)}): {n:,}, without anchors, are compared with each other."
    )
    score_table(
        {name: compute.live_scores(pair, name, workspace.scoring) for name in representations(anchors)}
    )


def _more_measures(workspace: Workspace, pair: Match, representations: tuple[str, ...]) -> None:
    others = {name: entry for name, entry in METRICS.items() if "more" in entry.of}
    with st.expander("More measures", icon=":material/straighten:", key="scores.more"):
        chosen = st.multiselect(
            "Measures of the literature",
            list(others),
            format_func=lambda name: others[name].title,
            key="scores.measures",
            persist_state="session",
            placeholder="Choose one or more",
            help="\n".join(f"- {entry.title}: {entry.help}" for entry in others.values()),
        )
        k = compute.scored_neighbours(pair, workspace.anchors, workspace.k, "mutual")
        scores: dict[str, dict[str, Score]] = {name: {} for name in representations}
        for name in chosen:
            try:
                for representation in representations:
                    settings = workspace.anchors, workspace.projection, k
                    scores[representation][name] = compute.more_score(pair, representation, *settings, name)
            except SpaceError as error:
                messages.error(f"{others[name].title}: {error}")
        scores = {name: by_metric for name, by_metric in scores.items() if by_metric}
        if scores:
            score_table(scores)
