"""The tab Axis of Explore: poles from words, classes, tags and the selection."""

import numpy as np
import pytest

from app.workspace import Workspace
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
    return page.find("multiselect", f"axis.{label}-")


def expected(page, start, end):
    spaces = [np.load(spec.name) for spec in page.workspace.models]
    return axis(*(one["vectors"] for one in spaces), [one[1:] for one in start], [one[1:] for one in end])


def test_the_poles_are_the_first_two_classes_until_others_are_chosen(page):
    assert pole(page, "From").value == ["Class: cold"]
    assert pole(page, "To").value == ["Class: mild"]
    found = expected(page, [f"r{row}" for row in range(0, N, 3)], [f"r{row}" for row in range(1, N, 3)])
    assert f"{found.agreement.n} other rows" in page.text
    # With two classes, all rows would be in a pole.
    page.change("multiselect", "axis.From-", ["Class: cold", "Class: warm"])
    assert "besides the poles, got 0" in page.errors[0]


def test_a_tag_and_a_typed_row(page):
    page.change("multiselect", "axis.From-", ["Tag: odd"])
    page.change("multiselect", "axis.To-", ["r8", "R10"])
    assert not page.errors
    found = expected(page, ["r1", "r3"], ["r8", "r10"])
    assert f"more than on {found.n_below} of" in page.text
    table = page.table("axis.rows")
    assert table["id"].head(5).tolist() == [f"r{one}" for one in found.table()["id"].head(5)]


def test_rows_of_both_poles_are_left_out_and_a_removed_tag_is_no_row(page):
    page.change("multiselect", "axis.From-", ["Tag: odd"])
    page.change("multiselect", "axis.To-", ["r3", "r8"])
    assert not page.errors
    assert "Left out of both poles: 1 row that both have." in page.captions
    found = expected(page, ["r1"], ["r8"])
    assert f"more than on {found.n_below} of" in page.text
    page.change("multiselect", "axis.From-", ["Tag: removed", "r1"])
    assert not page.errors


def test_the_selection_becomes_a_pole(page):
    page.select("r4", "r6").click(next(key for key in page.keys if key and key.startswith("axis.From-")))
    assert pole(page, "From").value == ["r4", "r6"]
    page.change("multiselect", "axis.To-", ["r5"])
    assert not page.errors
    assert "“r4” and 1 more row" in page.text


def test_an_unknown_row_is_named(page):
    page.change("multiselect", "axis.To-", ["nowhere"])
    assert "To: expected ids of rows that both spaces have, got 1 unknown: 'nowhere'" in page.errors[0]
