"""The tab Axis of Explore: poles from words, classes, tags and the selection."""

import json

import numpy as np
import pytest

from app.workspace import Workspace, from_session_file, session_json
from relcore.axis.task import axis
from tests.app.conftest import Session, save_space

N = 80


@pytest.fixture
def workspace(tmp_path):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(N, 5))
    labels = np.array(["cold", "mild", "warm"])[np.arange(N) % 3]
    first = save_space(tmp_path / "first.npz", vectors, labels=labels)
    second = save_space(tmp_path / "second.npz", vectors + rng.normal(size=(N, 5)), labels=labels)
    tags = (("odd", ("r1", "r3", "gone")),)
    return Workspace((first, second), first, second, tuple(f"r{row}" for row in range(9)), tags=tags)


@pytest.fixture
def page(workspace, ran_in_place):
    return Session(workspace=workspace, place=("explore", "Axis"))


def pole(page, label):
    return page.find("multiselect", f"axis.{label}")


def expected(page, start, end):
    spaces = [np.load(spec.name) for spec in page.workspace.models]
    return axis(*(one["vectors"] for one in spaces), [one[1:] for one in start], [one[1:] for one in end])


def test_the_poles_are_the_first_two_classes_until_others_are_chosen(page):
    assert pole(page, "From").value == ["Class: cold"]
    assert pole(page, "To").value == ["Class: mild"]
    found = expected(page, [f"r{row}" for row in range(0, N, 3)], [f"r{row}" for row in range(1, N, 3)])
    assert f"{found.agreement.n} other rows" in page.text
    # With two classes, all rows would be in a pole.
    page.change("multiselect", "axis.From", ["Class: cold", "Class: warm"])
    assert "besides the poles, got 0" in page.errors[0]


def test_a_tag_and_a_typed_row(page):
    page.change("multiselect", "axis.From", ["Tag: odd"])
    page.change("multiselect", "axis.To", ["r8", "R10"])
    assert not page.errors
    found = expected(page, ["r1", "r3"], ["r8", "r10"])
    assert f"more than on {found.n_below} of" in page.text
    table = page.table("axis.rows")
    assert table["id"].head(5).tolist() == [f"r{one}" for one in found.table()["id"].head(5)]


def test_rows_of_both_poles_are_left_out_and_a_removed_tag_is_no_row(page):
    page.change("multiselect", "axis.From", ["Tag: odd"])
    page.change("multiselect", "axis.To", ["r3", "r8"])
    assert not page.errors
    assert "Left out of both poles: 1 row that both have." in page.captions
    found = expected(page, ["r1"], ["r8"])
    assert f"more than on {found.n_below} of" in page.text
    page.change("multiselect", "axis.From", ["Tag: removed", "r1"])
    assert not page.errors


def test_the_selection_becomes_a_pole(page):
    page.select("r4", "r6").click("axis.From.selection")
    assert pole(page, "From").value == ["r4", "r6"]
    page.change("multiselect", "axis.To", ["r5"])
    assert not page.errors
    assert "“r4” and 1 more row" in page.text


def test_a_large_selection_becomes_a_tag_that_names_the_pole_and_is_one_step(page):
    chosen = tuple(f"r{row}" for row in range(20, 50))
    page.select(*chosen).click("axis.From.selection")
    assert dict(page.workspace.tags)["selection 1"] == chosen
    assert page.workspace.poles == (("Tag: selection 1",), ("Class: mild",))
    assert "From “selection 1” to class “mild”" in page.text
    # The same rows need no second tag.
    page.click("axis.To.selection")
    assert len(page.workspace.tags) == 2
    page.click("history.undo").click("history.undo")
    assert [name for name, _ in page.workspace.tags] == ["odd"]
    assert "From class “cold” to class “mild”" in page.text


def test_poles_are_saved_with_the_session_and_follow_a_renamed_tag(page):
    page.change("multiselect", "axis.From", ["Tag: odd", "r9"])
    assert "From “odd” and “r9” to class “mild”" in page.text
    page.at.session_state["tags.edit-0"] = True
    page.open("explore", "Selection").change("text_input", "tags.rename-0", "strange")
    saved, _ = from_session_file(json.dumps(session_json(page.workspace, {})))
    assert saved.poles == (("Tag: strange", "r9"), ("Class: mild",))


def test_an_unknown_row_is_named(page):
    page.change("multiselect", "axis.To", ["nowhere"])
    assert "To: expected ids of rows that both spaces have, got 1 unknown: 'nowhere'" in page.errors[0]
