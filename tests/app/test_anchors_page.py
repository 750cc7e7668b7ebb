"""Anchors by name, brush, table, list and named set; what cannot be added is named and nothing is lost."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from app.anchors.lists import read_ids, step_between
from app.workspace import from_session_file, to_session_file
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.scores.score import Interval, Score
from tests.app.conftest import Session


@pytest.fixture
def anchors_page(make_session):
    session = make_session()
    session.session_state["anchors.sets"] = True
    return session.open("explore", "Anchors")


def test_names_are_added_in_order_and_undone_in_one_step(anchors_page):
    before = anchors_page.workspace.anchors
    anchors_page.change("text_input", "anchors.search", "r90, r80 ,r0,, r90")
    assert anchors_page.workspace.anchors == (*before, "r90", "r80")
    assert anchors_page.text_input(key="anchors.search").value == ""
    assert not anchors_page.errors
    anchors_page.click("history.undo")
    assert anchors_page.workspace.anchors == before


def test_more_rows_than_fit_are_offered_as_a_sample(anchors_page, monkeypatch):
    monkeypatch.setattr("app.compare.inspector.MOST_ANCHORS", 25)
    before = anchors_page.workspace.anchors
    assert len(before) == 20
    brushed = [f"r{row}" for row in range(60, 120)]
    anchors_page.select(*brushed)
    free = [one for one in brushed if one not in before]
    anchors_page.click("inspector.add")
    assert not anchors_page.errors
    added = anchors_page.workspace.anchors[20:]
    assert len(added) == 5
    assert set(added) < set(free)
    assert added != tuple(free[:5])  # drawn, not the first ones
    assert anchors_page.button(key="inspector.add").disabled
    anchors_page.click("history.undo")
    assert anchors_page.workspace.anchors == before


def test_pinned_anchors_outlive_removal_and_a_new_strategy_but_not_their_unpinning(anchors_page):
    anchors_page.select_rows("anchors.table", 4, 5).click("Pin 2")
    assert anchors_page.workspace.pinned == ("r4", "r5")
    assert anchors_page.table("anchors.table")["pinned"].sum() == 2
    anchors_page.select_rows("anchors.table", 4, 6).click("Remove 2")
    assert "r4" in anchors_page.workspace.anchors
    assert "r6" not in anchors_page.workspace.anchors
    anchors_page.change("number_input", "anchors.number", 7)
    assert len(anchors_page.workspace.anchors) == 7
    assert anchors_page.workspace.anchors[:2] == ("r4", "r5")
    anchors_page.select_rows("anchors.table").click("Remove all but pinned")
    assert anchors_page.workspace.anchors == ("r4", "r5")
    anchors_page.select_rows("anchors.table", 0).click("Unpin 1")
    assert anchors_page.workspace.pinned == ("r5",)


def test_a_click_on_a_cell_counts_as_the_box_of_its_row(anchors_page):
    tables = (table.key or "" for table in anchors_page.at.dataframe)
    key = next(key for key in tables if key.startswith("anchors.table"))
    clicked = {"rows": [5], "columns": [], "cells": [(4, "id"), (5, "id")]}
    anchors_page.at.session_state[key] = {"selection": clicked}
    anchors_page.run().click("Pin 2")
    assert set(anchors_page.workspace.pinned) == {"r4", "r5"}


def test_named_sets_come_back_and_can_be_forgotten(anchors_page):
    first = anchors_page.workspace.anchors
    anchors_page.change("text_input", "anchors.set-name", " all twenty ").change(
        "text_input", "anchors.search", "r50"
    )
    assert len(anchors_page.workspace.anchors) == 21
    anchors_page.click("anchors.use-all twenty")
    assert anchors_page.workspace.anchors == first
    anchors_page.click("anchors.forget-all twenty")
    assert anchors_page.workspace.named_sets == ()
    anchors_page.click("history.undo")
    assert anchors_page.workspace.named_sets == (("all twenty", first),)


def test_a_list_replaces_or_joins_the_anchors(anchors_page):
    first = anchors_page.workspace.anchors
    anchors_page.upload("anchors.upload", "list.txt", "\ufeffr70\r\n\r\n r71 \nnowhere\n".encode()).click(
        "Add it"
    )
    assert anchors_page.workspace.anchors == (*first, "r70", "r71")
    anchors_page.click("Replace the anchors")
    assert anchors_page.workspace.anchors == ("r70", "r71")
    assert not anchors_page.errors
    anchors_page.upload("anchors.upload", "list.txt", b"nowhere\n").click("Replace the anchors")
    assert "got 1 unknown" in anchors_page.errors[0]
    assert anchors_page.workspace.anchors == ("r70", "r71")


def test_a_list_is_read_line_by_line():
    assert read_ids("\ufeffa\r\n\n  é b \n".encode()) == ["a", "é b"]
    with pytest.raises(SpaceError, match="got an empty file"):
        read_ids(b"")
    with pytest.raises(SpaceError, match="expected UTF-8 text with one id per line"):
        read_ids(b"\xc3\x28")


@pytest.fixture
def wrong_pairs(tmp_path, make_workspace):
    """The spaces of `make_workspace`, but three rows of the second have one another's ids."""
    first = make_workspace()
    arrays = dict(np.load(first.target.name))
    arrays["vectors"][[2, 9, 14]] = arrays["vectors"][[9, 14, 2]]
    np.savez(tmp_path / "wrong.npz", **arrays)
    target = SpaceSpec("file", str(tmp_path / "wrong.npz"))
    return dataclasses.replace(first, spaces=(first.source, target), target=target)


def test_an_audit_lists_wrong_pairs_with_their_neighbours_and_removes_them(wrong_pairs):
    session = Session(workspace=wrong_pairs)
    session.session_state["anchors.audit"] = True
    session.open("explore", "Anchors")
    assert any("3 of 20 pairs are suspect." in text.value for text in session.markdown)
    table = session.table("audit.table")
    assert set(table["id"]) == {"r2", "r9", "r14"}
    assert all(len(names.split(", ")) == 6 for names in table["near in wrong"])
    shown = {metric.label.partition(" · ")[0]: metric.value for metric in session.metric}
    session.click("audit.remove-all")
    arrows = {metric.label.partition(" · ")[0]: metric.delta for metric in session.metric if metric.delta}
    assert arrows
    assert all(arrow.endswith(f" from {shown[label]}") for label, arrow in arrows.items())
    assert not {"r2", "r9", "r14"} & set(session.workspace.anchors)
    assert any(
        "of 17 pairs may be wrong (95 %); none can be named." in text.value for text in session.markdown
    )
    saved, _ = from_session_file(to_session_file(session.workspace, {}))
    assert saved == session.workspace
    for place, tab in (("explore", "Scores"), ("connect", "Invert")):
        assert "3 removed suspects are not scored" in session.open(place, tab).captions
        assert "100 held-out rows" in session.html
    session.click("toolbar.score-again")
    assert "not scored" not in session.captions
    assert "103 held-out rows" in session.html
    session.click("history.undo").click("history.undo")
    assert session.workspace == wrong_pairs


def test_an_arrow_needs_the_same_queries_and_a_difference_that_is_clear():
    def score(value, **facts):
        return Score(value, metric="mrr", n=900, k=10, **facts)

    up, sampled = Interval(0.02, 0.01, 0.03), {"n_queries": 300, "interval": (0.4, 0.6)}
    assert step_between(score(0.4994), score(0.5226), up) == "+.024 from .499"
    assert step_between(score(0.5226), score(0.4994), Interval(-0.02, -0.03, -0.01)) == "−.024 from .523"
    assert step_between(score(0.52, **sampled), score(0.5, **sampled), Interval(-0.1, -0.2, 0)) is None
    assert step_between(score(0.52), score(0.5), up) is None
    assert step_between(score(0.5), score(0.52, **sampled), up) is None
