"""Anchors by name, brush, table, list and named set; what cannot be added is named and nothing is lost."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from app.anchors.lists import read_ids
from app.anchors.sets import contradiction
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.scores.score import Difference
from tests.app.conftest import Session


@pytest.fixture
def anchors_page(make_session):
    return make_session().open("anchors")


def test_names_are_added_in_order_and_undone_in_one_step(anchors_page):
    before = anchors_page.workspace.anchors
    anchors_page.change("text_input", "anchors.search", "r90, r80 ,r0,, r90")
    assert anchors_page.workspace.anchors == (*before, "r90", "r80")
    assert anchors_page.text_input(key="anchors.search").value == ""
    assert not anchors_page.errors
    anchors_page.click("history.undo")
    assert anchors_page.workspace.anchors == before


def toasts(session):
    return [toast.value for toast in session.toast]


def test_unknown_names_are_reported_while_the_known_are_added(anchors_page):
    anchors_page.change("text_input", "anchors.search", "r90, qzx, r91")
    assert anchors_page.workspace.anchors[-2:] == ("r90", "r91")
    assert not anchors_page.errors
    assert toasts(anchors_page) == ["2 anchors added. 1 id is not in both spaces and left out: 'qzx'."]
    anchors_page.run()
    assert toasts(anchors_page) == []  # said once
    anchors_page.change("text_input", "anchors.search", "qzx")
    assert "got 1 unknown: 'qzx'; check the spelling" in anchors_page.errors[0]


def test_the_scores_move_with_the_anchors_and_say_by_how_much(anchors_page):
    first = {metric.label: metric.value for metric in anchors_page.metric}
    assert set(first) == {
        f"{name}, {form}" for name in ("Jaccard", "MRR", "cosine", "linear CKA") for form in ("relative",)
    }
    anchors_page.select(*(f"r{row}" for row in range(16))).click("anchors.remove-selected")
    assert len(anchors_page.workspace.anchors) == 4
    now = {metric.label: metric.value for metric in anchors_page.metric}
    assert now != first
    assert any(metric.delta.startswith("-") for metric in anchors_page.metric)


def test_more_rows_than_fit_are_offered_as_a_sample(anchors_page, monkeypatch):
    monkeypatch.setattr("app.compare.selection.MOST_ANCHORS", 25)
    before = anchors_page.workspace.anchors
    assert len(before) == 20
    brushed = [f"r{row}" for row in range(60, 120)]
    anchors_page.select(*brushed)
    free = [one for one in brushed if one not in before]
    assert anchors_page.button(key="anchors.add-selected").label == f"Add 5 of {len(free)} selected"
    assert anchors_page.button(key="inspector.add").label == "Add 5 anchors"
    assert anchors_page.button(key="inspector.only").label == "Use only 25 of these as anchors"
    anchors_page.click("inspector.add")
    assert not anchors_page.errors
    added = anchors_page.workspace.anchors[20:]
    assert len(added) == 5
    assert set(added) < set(free)
    assert added != tuple(free[:5])  # drawn, not the first ones
    assert anchors_page.button(key="anchors.add-selected").disabled
    anchors_page.click("history.undo")
    assert anchors_page.workspace.anchors == before


def test_one_more_anchor_is_not_offered_where_the_app_would_refuse_it(anchors_page, monkeypatch):
    free = next(f"r{row}" for row in range(60, 120) if f"r{row}" not in anchors_page.workspace.anchors)
    monkeypatch.setattr("app.compare.selection.MOST_ANCHORS", 21)
    anchors_page.select(free)
    assert not anchors_page.button(key="inspector.anchor").disabled
    monkeypatch.setattr("app.compare.selection.MOST_ANCHORS", 20)
    anchors_page.select(free)
    assert anchors_page.button(key="inspector.anchor").disabled
    anchors_page.select(anchors_page.workspace.anchors[0])  # it can be removed
    assert not anchors_page.button(key="inspector.anchor").disabled


def test_brushed_rows_are_added_and_removed(anchors_page):
    anchors_page.select("r1", "r100", "r101").click("anchors.add-selected")
    assert anchors_page.workspace.anchors[-2:] == ("r100", "r101")
    assert anchors_page.button(key="anchors.add-selected").disabled
    anchors_page.click("anchors.remove-selected")
    assert not {"r1", "r100", "r101"} & set(anchors_page.workspace.anchors)


def test_pinned_anchors_outlive_removal_and_a_new_strategy_but_not_their_unpinning(anchors_page):
    anchors_page.select_rows("anchors.table", 4, 5).click("Pin 2")
    assert anchors_page.workspace.pinned == ("r4", "r5")
    assert anchors_page.table("anchors.table")["pinned"].sum() == 2
    anchors_page.select_rows("anchors.table", 4, 6).click("Remove 2")
    assert "r4" in anchors_page.workspace.anchors
    assert "r6" not in anchors_page.workspace.anchors
    anchors_page.change("number_input", "sidebar.number", 7)
    assert len(anchors_page.workspace.anchors) == 7
    assert anchors_page.workspace.anchors[:2] == ("r4", "r5")
    anchors_page.select_rows("anchors.table").click("Remove all but pinned")
    assert anchors_page.workspace.anchors == ("r4", "r5")
    anchors_page.select_rows("anchors.table", 0).click("Unpin 1")
    assert anchors_page.workspace.pinned == ("r5",)


def test_the_table_shows_rows_in_the_panes(anchors_page):
    anchors_page.select_rows("anchors.table", 2, 3).click("Show in panes 2")
    assert anchors_page.session_state["relscope.selection"] == ("r2", "r3")


def test_anchors_can_be_picked_from_nothing(make_session):
    session = make_session(anchors=("r1",)).open("anchors")
    session.select("r1").click("anchors.remove-selected")
    assert session.workspace.anchors == ()
    assert not session.errors
    assert "No anchors yet" in session.info[0].value
    session.open("compare")
    assert not session.errors
    assert "No anchors yet" in session.html
    session.open("anchors").change("text_input", "anchors.search", "r2, r3")
    assert session.workspace.anchors == ("r2", "r3")
    assert not session.errors
    session.click("history.undo").click("history.undo")
    assert session.workspace.anchors == ("r1",)


def test_more_anchors_than_the_app_can_carry_are_refused(anchors_page, monkeypatch):
    monkeypatch.setattr("app.session.MOST_ANCHORS", 21)
    anchors_page.change("text_input", "anchors.search", "r50, r51")
    assert len(anchors_page.workspace.anchors) == 20
    assert "expected at most 21 in the app, got 22" in anchors_page.errors[0]


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
    assert "2 anchors added. 1 id is not in both spaces and left out: 'nowhere'." in toasts(anchors_page)[0]
    anchors_page.click("Replace the anchors")
    assert anchors_page.workspace.anchors == ("r70", "r71")
    assert (
        "2 anchors from the list. 1 id is not in both spaces and left out: 'nowhere'."
        in toasts(anchors_page)[0]
    )
    assert not anchors_page.errors


@pytest.mark.parametrize("button", ["Add it", "Replace the anchors"])
def test_a_list_without_ids_changes_nothing(anchors_page, button):
    before = anchors_page.workspace
    anchors_page.upload("anchors.upload", "list.txt", b"nowhere\n").click(button)
    assert "none of its 1 ids is in both" in anchors_page.errors[0]
    assert anchors_page.workspace == before


def test_a_list_is_read_line_by_line():
    assert read_ids("\ufeffa\r\n\n  é b \n".encode()) == ["a", "é b"]
    with pytest.raises(SpaceError, match="got an empty file"):
        read_ids(b"")
    with pytest.raises(SpaceError, match="expected UTF-8 text with one id per line"):
        read_ids(b"\xc3\x28")


def test_diagnostics_are_worked_out_when_they_are_looked_at(anchors_page):
    def diagnosed():
        return [table.value for table in anchors_page.dataframe if "diagnostic" in table.value.columns]

    assert not diagnosed()
    anchors_page.session_state["anchors.tabs"] = "Diagnostics"
    anchors_page.run()
    (table,) = diagnosed()
    assert {"rank", "condition number", "coverage"} <= set(table["diagnostic"])


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
    session = Session(workspace=wrong_pairs).open("anchors")
    session.session_state["anchors.tabs"] = "Audit"
    session.run()
    assert any("3 of 20 pairs are suspect." in text.value for text in session.markdown)
    table = session.table("audit.table")
    assert set(table["id"]) == {"r2", "r9", "r14"}
    assert all(len(names.split(", ")) == 6 for names in table["near in wrong"])
    (scores,) = (table.value for table in session.dataframe if "without the suspects" in table.value.columns)
    assert list(scores["score"]) == ["Jaccard", "MRR", "cosine", "linear CKA"]
    session.select_rows("audit.table", 0).click("audit.remove")
    assert len(session.workspace.anchors) == 19
    session.session_state["anchors.tabs"] = "Audit"
    session.run().click("audit.remove-all")
    assert not {"r2", "r9", "r14"} & set(session.workspace.anchors)
    session.session_state["anchors.tabs"] = "Audit"
    session.run()
    assert any("None of 17 pairs is suspect." in text.value for text in session.markdown)
    session.click("history.undo").click("history.undo")
    assert session.workspace.anchors == wrong_pairs.anchors


def open_tab(session, title):
    session.session_state["anchors.tabs"] = title
    return session.run()


def test_two_sets_are_compared_on_the_same_rows_and_one_is_taken(anchors_page):
    open_tab(anchors_page, "Compare sets")
    assert "which are anchors of neither" in anchors_page.captions
    assert any(
        "A is better than B" in text.value or "No clear difference" in text.value
        for text in anchors_page.markdown
    )
    anchors_page.click("sets.use-B")
    assert len(anchors_page.workspace.anchors) == 20
    anchors_page.click("history.undo")
    open_tab(anchors_page, "Compare sets")
    assert not anchors_page.errors


def test_scores_that_prefer_the_other_set_are_named():
    up, down, unclear = (
        Difference(0.02, 0.01, 0.03),
        Difference(-0.02, -0.03, -0.01),
        Difference(-0.01, -0.03, 0.01),
    )
    changes = {"mrr": up, "cosine": down, "jaccard": unclear, "cka": down}
    assert contradiction(up, changes, "B") == " But B has the higher cosine and linear CKA."
    assert contradiction(up, {"mrr": up, "jaccard": unclear}, "B") == ""
