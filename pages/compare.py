"""Compare two spaces: absolute above, relative below, every score with its chance level."""

from __future__ import annotations

import streamlit as st

from app import compute, exports, messages, panes, session, sidebar
from app.compare import choosers
from app.compare.all_pairs import all_pairs
from app.compare.differences import differences
from app.compare.headline import headline, scores_of
from app.compare.inspector import inspector, neighbours_html, neighbours_of
from app.items import with_items
from app.jobs import exact_scores, follow
from app.spaces import shards
from app.tables import brushing_table, score_table, show_cautions
from app.workspace import Workspace
from relcore.base.names import SEARCHES
from relcore.base.numbers import counted
from relcore.compare.scene import Scores
from relcore.compare.scoring import MANY_ROWS
from relcore.maps.views import View
from relcore.scores.comparison import REPRESENTATIONS, class_labels
from relcore.spaces.space import GuessedIds, Match


def show_scores(workspace: Workspace, pair: Match) -> None:
    title, choice, button = st.columns([3, 1, 1], vertical_alignment="bottom")
    title.subheader("Scores", anchor=False)
    if isinstance(pair.ids, GuessedIds) and not compute.can_be_scored(pair, workspace.anchors):
        messages.info(compute.too_few_held_out(pair, workspace.anchors), ":material/hub:")
        return
    search = "exact"
    if len(pair) > MANY_ROWS:
        search = choice.selectbox(
            "Neighbours",
            list(SEARCHES),
            format_func=lambda name: SEARCHES[name].title,
            key="compare.neighbours",
            persist_state="session",
            help=(
                "Exact compares each row with every other, which takes minutes to hours. IVF and HNSW look at"
                " few rows; their recall is measured on 400 queries and shown beside the scores."
            ),
        )
    start = button.button(
        "Score every row",
        help=(
            "Runs a job that searches the neighbours of every held-out row in blocks; a stopped job resumes."
            " All pages then show these scores."
        ),
        icon=":material/done_all:",
        width="stretch",
    )
    relative = workspace.anchors and compute.can_be_scored(pair, workspace.anchors)
    settings = workspace.anchors, workspace.projection, workspace.k, workspace.convention
    forms, exact, jobs = REPRESENTATIONS if relative else ("absolute",), {}, []
    for form in forms:
        result = exact_scores(pair, form, *settings, start=start, search=search)
        if isinstance(result, dict):
            exact[form] = result
        elif result is not None:
            jobs.append(result)
    scores = {form: exact.get(form) or scores_of(workspace, pair, form) for form in forms}
    score_table(scores)
    show_cautions(pair, tuple(workspace.anchors))
    follow(jobs)
    every = len(exact) == len(forms)
    recipe = Scores.of(
        workspace.recipe(pair.source.digest, pair.target.digest),
        k=workspace.k,
        convention=workspace.convention,
        n_queries=None if every else compute.LIVE_QUERIES,
        class_agreement=class_labels(pair) is not None,
        neighbours=search if every else "exact",
    )
    exports.export_bar(recipe.draw(scores), "scores")


def show_words(workspace: Workspace, pair: Match, drawn: View) -> None:
    st.subheader("Where do they differ?", anchor=False)
    names = ["Changed most", "Changed least", "Classes and clusters", "Neighbours of a row"]
    moved, agree, groups, one = st.tabs(names, key="compare.differences", on_change="rerun")
    table = compute.agreement(pair, drawn).rename(columns={"overlap": "neighbours kept"}).drop(columns="row")
    part = "all" if len(table) == len(drawn.rows) else f"{len(table):,} of the"
    note = (
        f"Jaccard overlap of each row's {min(50, len(pair) - 1)} nearest neighbours in the two absolute"
        f" spaces (mutual kNN, centred), for {part} {counted(len(drawn.rows), 'row')} shown. Select rows to"
        " highlight them in the panes."
    )
    for tab, rows, key in ((moved, table.head(200), "moved"), (agree, table[::-1].head(200), "agree")):
        with tab:
            rows = rows.reset_index(drop=True)
            shown, look = with_items(workspace, rows)
            look["column_config"]["neighbours kept"] = st.column_config.ProgressColumn(
                min_value=0, max_value=1, format="%.3f"
            )
            brushing_table(shown, f"compare.{key}", height=300, **look)
            st.caption(note)
    with groups:
        if groups.open:  # it takes seconds where there are many rows
            differences(workspace, pair)
    with one:
        asked = st.text_input(
            "Row", placeholder="Type an id, for example: river", key="compare.asked", persist_state="session"
        )
        if asked and asked not in pair.source.index:
            messages.warning(
                f"“{asked}” is not among the {counted(len(pair), 'row')} that are in both spaces.",
                icon=":material/search_off:",
            )
        elif asked:
            st.html(neighbours_html(pair, neighbours_of(pair, asked, min(25, len(pair) - 1))))


workspace = session.workspace()
pair = compute.matched(workspace.source, workspace.target)
with st.container(key="headline"):  # its numbers take a second: the panes come first
    opening = st.empty()
with st.container(key="above-panes"):
    # not in an `st.empty`, which each run replaces: popovers would close, and fields lose the keyboard
    bar = st.container()
    st.empty()  # a block with nothing in it takes no room before `above` is drawn


def above() -> None:
    with bar:
        choosers.switch(workspace, pair)
        shards.draw_sample_line(workspace)
        choosers.view_choosers(workspace, pair)


quickly = compute.is_scored_quickly(pair)
with sidebar.panes_first(above, scored_quickly=quickly):
    drawing = panes.draw(pair, workspace)
    picture, side = st.columns([3.3, 1], gap="medium")
    with picture:
        panes.show(pair, drawing, "compare", height=720)
    if quickly:
        # Meanwhile the browser draws the panes: whatever else it had got, it would draw first.
        opening.html(headline(workspace, pair))
with picture:
    panes.export_bar(drawing, "compare")
with side:
    inspector(pair)
if not quickly:
    opening.html(headline(workspace, pair))
show_scores(workspace, pair)
show_words(workspace, pair, drawing.view)
all_pairs(workspace)
