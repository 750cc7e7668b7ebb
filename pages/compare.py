"""Compare two spaces: absolute above, relative below, every score with its chance level."""

from __future__ import annotations

import streamlit as st

from app import compute, exports, messages, panes, session, view_choosers
from app.all_pairs_panel import all_pairs
from app.inspector import inspector, neighbours_html
from app.items import with_items
from app.jobs import exact_scores, follow, scores
from app.layers_panel import layers
from app.score_table import score_table, show_cautions
from app.tables import brushing_table
from app.workspace import Workspace
from relcore.comparing.figures import Scores
from relcore.comparison import REPRESENTATIONS
from relcore.engine import Job
from relcore.metrics.calibration import Score
from relcore.numbers import short
from relcore.spaces import Match
from relcore.views import View


def lead(workspace: Workspace, pair: Match) -> str:
    """The page's result in one sentence with its numbers."""
    if not workspace.anchors:
        return '<p class="relscope-lead">No anchors yet: choose some in the sidebar, or pick them on the Anchors page.</p>'
    if not compute.can_be_scored(pair, workspace.anchors):
        return f'<p class="relscope-lead">{compute.TOO_MANY_ANCHORS}</p>'
    found = {form: scores_of(workspace, pair, form) for form in ("absolute", "relative", "whitened")}
    if not all("mrr" in by_metric for by_metric in found.values()):
        text = "The two spaces have different dimensions, so they share no coordinates. Relative to the same anchors they do."
    else:
        numbers = ", ".join(f"{form} <b>{short(score)}</b>{_reach(score)}" for form, score in _mrr(found).items())
        about = _mrr(found)["relative"]
        asked = f"all {about.n:,}" if about.interval is None else f"{about.n_queries:,} of {about.n:,}"
        chance = short(about.null.mean, about.null.places)
        text = (
            f"Two encoders, the same {len(pair):,} rows: how high does a row of one space rank as a neighbour of itself in the "
            f"other? Mean reciprocal rank with {len(workspace.anchors):,} anchors: {numbers}; chance level {chance}. Queries: "
            f"{asked} held-out rows, none of them an anchor."
        )
    return f'<p class="relscope-lead">{text}</p>'


def _mrr(found: dict[str, dict[str, Score]]) -> dict[str, Score]:
    return {form: by_metric["mrr"] for form, by_metric in found.items()}


def _reach(score: Score) -> str:
    return f" ± {short((score.interval[1] - score.interval[0]) / 2)}" if score.interval else ""


def scores_of(workspace: Workspace, pair: Match, form: str) -> dict[str, Score]:
    """Scores of one representation, as the sidebar's settings say."""
    return scores(pair, form, workspace.anchors, workspace.projection, workspace.k, workspace.convention)


def show_scores(workspace: Workspace, pair: Match) -> None:
    """The metric table, live from a sample or exact by job, and its exports."""
    title, button = st.columns([4, 1], vertical_alignment="bottom")
    title.subheader("Scores", anchor=False)
    start = button.button(
        "Score every row",
        help="Runs a job that searches the neighbours of every held-out row. All pages then show the exact scores.",
        icon=":material/done_all:",
        width="stretch",
    )
    relative = workspace.anchors and compute.can_be_scored(pair, workspace.anchors)
    forms = REPRESENTATIONS if relative else ("absolute",)
    asked = [
        exact_scores(pair, form, workspace.anchors, workspace.projection, workspace.k, workspace.convention, start=start)
        for form in forms
    ]
    found = {form: scores_of(workspace, pair, form) for form in forms}
    score_table(found)
    show_cautions(pair, tuple(workspace.anchors))
    follow([one for one in asked if isinstance(one, Job)])
    recipe = Scores.of(
        workspace.recipe(pair.source.digest, pair.target.digest),
        k=workspace.k,
        convention=workspace.convention,
        n_queries=None if all(isinstance(one, dict) for one in asked) else compute.LIVE_QUERIES,
    )
    exports.export_bar(recipe.draw(found), "scores")


def show_words(workspace: Workspace, pair: Match, drawn: View) -> None:
    """Rows whose neighbourhoods changed most and least; one row's neighbours in both spaces."""
    moved, agree, one = st.tabs(["Changed most", "Changed least", "Neighbours of a row"])
    table = compute.agreement(pair, drawn).rename(columns={"overlap": "neighbours kept"}).drop(columns="row")
    part = "all" if len(table) == len(drawn.rows) else f"{len(table):,} of the"
    note = (
        f"Jaccard overlap of each row's {min(50, len(pair) - 1)} nearest neighbours in the two absolute spaces (mutual kNN, "
        f"centred), for {part} {len(drawn.rows):,} rows shown. Select rows to highlight them in the panes."
    )
    for tab, rows, key in ((moved, table.head(200), "moved"), (agree, table[::-1].head(200), "agree")):
        with tab:
            rows = rows.reset_index(drop=True)
            shown, look = with_items(workspace, rows)
            look["column_config"]["neighbours kept"] = st.column_config.ProgressColumn(min_value=0, max_value=1, format="%.3f")
            brushing_table(shown, f"compare.{key}", height=300, **look)
            st.caption(note)
    with one:
        asked = st.text_input("Row", placeholder="Type an id, for example: river", key="compare.asked", persist_state="session")
        if asked and asked not in pair.source.index:
            messages.warning(
                f"“{asked}” is not among the {len(pair):,} rows that are in both spaces.", icon=":material/search_off:"
            )
        elif asked:
            st.html(neighbours_html(pair, compute.neighbours_of(pair, asked, min(25, len(pair) - 1))))


workspace = session.workspace()
pair = compute.matched(workspace.source, workspace.target)
headline = st.empty()  # its numbers take a second: the panes come first
view_choosers.view_choosers(workspace, pair)
drawing = panes.draw(pair, workspace)
picture, side = st.columns([3.6, 1], gap="medium")
with picture:
    panes.show(pair, drawing, "compare", height=720)
with side:
    inspector(pair)
headline.html(lead(workspace, pair))
show_scores(workspace, pair)
show_words(workspace, pair, drawing.view)
all_pairs(workspace)
layers(workspace)
