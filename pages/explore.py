"""The place Explore: two spaces side by side, with panes, anchors and scores on one screen."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app import compute, panes, session, toolbar
from app.anchors import effect
from app.compare import choosers, row_table
from app.compare.headline import (
    comparing,
    headline,
    in_words,
    is_unmatched,
    model_names,
    scores_figure,
    until_scored,
)
from app.compare.inspector import inspector
from app.compare.search import found_by_one_model
from app.explain.edges import edges_of
from app.places import CONNECT, EXPLORE, go
from app.plain_text import plain
from app.spaces import shards
from relcore.base.errors import SpaceError

workspace = session.workspace()
with st.container(key="headline"):  # filled after the panes, because its scores take a second
    opening = st.empty()
    remedy = st.empty()
with st.container(key="above-panes"):
    # Not inside `st.empty`, which each run would replace: popovers would close, and fields lose the focus.
    bar = st.container()
    st.empty()  # an element that takes no room until `above` is drawn
outline = st.empty()
opening.html(until_scored(workspace))
if toolbar.opens_page() and comparing(workspace):
    outline.html(toolbar.OUTLINE)
toolbar.end_waiting()
try:
    models = compute.matched_models(*workspace.models)
except SpaceError:
    opening.empty()
    outline.empty()
    raise
pair = models.pair()


def above() -> None:
    with bar:
        choosers.switch(workspace, models)
        shards.draw_sample_line(workspace)


def say_what_was_found() -> None:
    opening.html(headline(workspace, models))
    if is_unmatched(workspace, pair) and remedy.button(
        "Find partners with Link", key="explore.partners", icon=":material/hub:", type="primary"
    ):
        go(CONNECT, "Link")


quickly = compute.is_scored_quickly(pair)
with toolbar.panes_first(above, scored_quickly=quickly):
    drawing = panes.draw(panes.inputs(models, workspace, edges=edges_of(models)))
    with st.container(key="explore-body"):
        widths = [3.3, 1]
        if row_table.is_open():
            widths = [1.75, 1]
        picture, side = st.columns(widths, gap="medium")
    with picture:
        height = 720
        if len(drawing.scene.panes) <= len(models.spaces):
            height = 460
        outline.empty()
        panes.show(drawing, "explore", height=height, single=found_by_one_model(pair))
    if quickly:
        # Send the panes before everything else, because the browser draws what arrives first.
        say_what_was_found()
with picture:
    with st.container(horizontal=True, vertical_alignment="center", key="view-row"):
        choosers.map_chooser(workspace)
        choosers.color_chooser(workspace, pair)
        choosers.view_choosers(workspace, pair)
        scores = None
        if compute.can_be_scored(pair, workspace.anchors):
            scores = partial(scores_figure, workspace, models)
        row_table.switch()
        panes.export_bar(drawing, "explore", in_words(workspace), scores)
        panes.follow(drawing)  # here, progress bars cover no row and move nothing
    with st.container(horizontal=True, vertical_alignment="center", key="effect"):
        if not quickly:
            say_what_was_found()
        if models.others:
            st.caption(f"{' and '.join(map(plain, model_names(models)[:2]))}:", width="content")
        effect.draw(workspace, pair)
with side:
    if row_table.is_open():
        row_table.draw(workspace, pair)
    inspector(pair, short_of_room=row_table.is_open())

EXPLORE.draw_tabs(workspace, models, drawing.inputs.view)
