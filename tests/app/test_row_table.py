"""The table of all rows in Explore: searched, sorted, and linked with the map in both directions."""

import json
from dataclasses import replace

import numpy as np
import pytest

from app import compute
from app.compare import row_table
from relcore.compare.agreement import neighbour_agreement
from tests.app.conftest import Session, save_space

OPEN = {"explore.table": True}


@pytest.fixture
def page(make_session):
    return make_session(60, state=OPEN)


def ids(page):
    return page.table("row-table-")["id"].tolist()


def tick(page, *rows):
    """Tick rows of the table, as its callback does, which AppTest cannot call."""
    page.select(*page.session_state["relscope.row-table"].tick(rows))


def test_all_rows_are_in_the_table_and_a_tick_selects_in_the_map(page):
    assert ids(page) == [f"r{row}" for row in range(60)]
    key = page.find("dataframe", "row-table-").key
    tick(page, 4, 30)
    assert page.session_state["relscope.selection"] == ("r4", "r30")
    # The rows stay where they are, in the same widget.
    assert ids(page) == [f"r{row}" for row in range(60)]
    assert page.find("dataframe", "row-table-").key == key
    tick(page, 4, 30, 31)
    assert page.session_state["relscope.selection"] == ("r4", "r30", "r31")


def test_rows_that_the_map_selects_come_first_and_are_ticked(page):
    page.select("r30", "r4")
    assert ids(page)[:3] == ["r4", "r30", "r0"]
    drawn = page.find("dataframe", "row-table-")
    assert '"rows": [0, 1]' in drawn.proto.selection_default
    page.change("toggle", "row-table.only", True)
    assert ids(page) == ["r4", "r30"]
    tick(page, 1)  # the other row stays in the table
    assert page.session_state["relscope.selection"] == ("r30",)
    assert ids(page) == ["r4", "r30"]


def test_the_search_finds_ids_in_any_case(page):
    page.change("text_input", "row-table.query", " R5 ")
    assert ids(page) == ["r5", *(f"r{row}" for row in range(50, 60))]
    tick(page, 1)
    assert page.session_state["relscope.selection"] == ("r50",)
    page.change("text_input", "row-table.query", "nowhere")
    assert ids(page) == []


def test_rows_are_sorted_by_agreement_and_by_similarity(page):
    pair = compute.matched_models(*page.workspace.models)
    page.change("selectbox", "row-table.order", "agreement, lowest first")
    shares = page.table("row-table-")["agreement"].to_numpy()
    assert (np.diff(shares) >= 0).all()
    expected = neighbour_agreement(pair, np.arange(60)).set_index("id")["overlap"]
    np.testing.assert_array_equal(shares, expected[ids(page)])
    page.select("r7").change("selectbox", "row-table.order", "nearest to the selection")
    table = page.table("row-table-")
    assert ids(page)[0] == "r7"
    centred = pair.target.vectors - pair.target.vectors.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    rows = pair.target.rows(ids(page))
    np.testing.assert_allclose(table["second60 · cosine"], unit[rows] @ unit[7], atol=1e-5)
    assert (np.diff(table[["first60 · cosine", "second60 · cosine"]].mean(axis=1)) <= 1e-6).all()


def test_a_cosine_has_a_short_title_and_is_explained(page):
    page.select("r7")
    looks = json.loads(page.find("dataframe", "row-table-").proto.columns)
    assert looks["second60 · cosine"]["label"] == "second60"
    assert "Cosine in second60 with the mean" in looks["second60 · cosine"]["help"]


def test_the_list_of_selected_rows_has_their_labels(make_workspace, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.array(["sun", "moon"])[np.arange(60) % 2]
    ends = [save_space(tmp_path / f"{name}.npz", rng.normal(size=(60, 6)), labels=labels) for name in "ab"]
    given = replace(make_workspace(60), spaces=tuple(ends), source=ends[0], target=ends[1])
    session = Session(workspace=given).select("r3", "r4")
    listed = [one.value for one in session.at.dataframe if list(one.value) == ["id", "label"]]
    assert listed[0].to_dict("list") == {"id": ["r3", "r4"], "label": ["moon", "sun"]}


def test_a_tag_is_a_column_and_a_large_space_is_cut(page, monkeypatch):
    monkeypatch.setattr(row_table, "_MOST_ROWS", 50)
    page.session_state["inspector.tag"] = True
    page.select("r55").at.text_input(key="inspector.tag.name").set_value("odd")
    page.click("inspector.tag.new")
    table = page.table("row-table-")
    assert (len(table), table["id"].iloc[0], table["odd"].sum()) == (50, "r55", 1)
    assert "50 of 60 rows" in page.captions
