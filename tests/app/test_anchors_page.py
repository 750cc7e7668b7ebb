from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from app.anchors.lists import step_between
from app.workspace import from_session_file, to_session_file
from relcore.catalog.catalog import SpaceSpec
from relcore.scores.score import Interval, Score
from tests.app.conftest import Session


@pytest.fixture
def page(make_session):
    return make_session(60, ("explore", "Anchors"), {"anchors.sets": True})


def test_names_sets_and_lists_add_anchors_each_in_a_step_that_can_be_undone(page):
    first = page.workspace.anchors
    page.change("text_input", "anchors.search", "r50, r40 ,r0,, r50")
    assert page.workspace.anchors == (*first, "r50", "r40")
    assert page.text_input(key="anchors.search").value == ""
    assert not [one for one in page.at.toast if "left out" in one.value]  # an empty word is no id
    page.click("history.undo").change("text_input", "anchors.set-name", " all twenty ")
    listed = "\ufeffr30\r\n\r\n r31 \nnowhere\n".encode()
    page.upload("anchors.upload", "list.txt", listed).click("Add it")
    assert page.workspace.anchors == (*first, "r30", "r31")
    page.click("Replace the anchors")
    assert page.workspace.anchors == ("r30", "r31")
    assert not page.errors
    page.upload("anchors.upload", "list.txt", b"nowhere\n").click("Replace the anchors")
    assert "got 1 unknown" in page.errors[0]
    page.click("anchors.use-all twenty")
    assert page.workspace.anchors == first
    page.click("anchors.forget-all twenty")
    assert page.workspace.named_sets == ()
    page.click("history.undo")
    assert page.workspace.named_sets == (("all twenty", first),)


def test_more_rows_than_fit_are_offered_as_a_sample(page, monkeypatch):
    monkeypatch.setattr("app.compare.inspector.MOST_ANCHORS", 25)
    before = page.workspace.anchors
    free = [f"r{row}" for row in range(30, 60)]
    page.select(*free).click("inspector.add")
    assert not page.errors
    added = page.workspace.anchors[20:]
    assert len(before) + len(added) == 25
    assert set(added) < set(free)
    assert added != tuple(free[:5])  # drawn, not the first ones
    assert page.button(key="inspector.add").disabled


def test_pinned_anchors_outlive_removal_and_a_new_strategy_but_not_their_unpinning(page):
    key = next(table.key for table in page.at.dataframe if (table.key or "").startswith("anchors.table"))
    clicked = {
        "rows": [5],
        "columns": [],
        "cells": [(4, "id"), (5, "id")],
    }  # a cell counts as the box of its row
    page.at.session_state[key] = {"selection": clicked}
    page.run().click("Pin 2")
    assert set(page.workspace.pinned) == {"r4", "r5"}
    assert page.table("anchors.table")["pinned"].sum() == 2
    page.select_rows("anchors.table", 4, 6).click("Remove 2")
    assert "r4" in page.workspace.anchors
    assert "r6" not in page.workspace.anchors
    page.change("number_input", "anchors.number", 7)
    assert len(page.workspace.anchors) == 7
    assert set(page.workspace.anchors[:2]) == {"r4", "r5"}
    page.click("Remove all but pinned")
    assert set(page.workspace.anchors) == {"r4", "r5"}
    page.select_rows("anchors.table", 0).click("Unpin 1")
    assert len(page.workspace.pinned) == 1


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
    session = Session(None, wrong_pairs, ("explore", "Anchors"), {"anchors.audit": True})
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
