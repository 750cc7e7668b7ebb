"""The table of all rows in Explore: searched, sorted, and linked with the map in both directions."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from app import compute
from app.compare import row_table
from app.workspace import History
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.agreement import neighbour_agreement
from relcore.compare.scene import MapLook
from relcore.figures.colorings import Condition
from tests.app.conftest import Session, save_space

OPEN = {"explore.table": True}


@pytest.fixture
def page(make_session):
    return make_session(60, state=OPEN)


def ids(page):
    return page.table("row-table-")["id"].tolist()


def tick(page, *rows, cells=()):
    """Tick rows of the table, or click cells, as its callback does, which AppTest cannot call."""
    page.select(*page.session_state["relscope.row-table"].choose(rows, cells))


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


def test_a_click_on_a_cell_selects_its_row_alone(page):
    key = page.find("dataframe", "row-table-").key
    tick(page, cells=[(7, "id")])
    assert page.session_state["relscope.selection"] == ("r7",)
    assert page.find("dataframe", "row-table-").key == key
    tick(page, 3, cells=[(7, "id")])  # the click is over, and a row is ticked
    assert page.session_state["relscope.selection"] == ("r3",)
    tick(page, 3, cells=[(9, "agreement")])  # the tick goes, in a new widget that marks the cell
    assert page.session_state["relscope.selection"] == ("r9",)
    drawn = page.find("dataframe", "row-table-")
    assert drawn.key != key
    default = json.loads(drawn.proto.selection_default)["selection"]
    assert default == {"rows": [], "columns": [], "cells": [[9, "agreement"]]}
    assert ids(page) == [f"r{row}" for row in range(60)]


def test_the_table_has_the_rows_that_pass_the_filter(page):
    pair = compute.matched_models(*page.workspace.models)
    norms = pair.source.norms
    wanted = Condition("source norm", low=float(np.median(norms)))
    page.session_state["relscope.history"] = History(replace(page.workspace, look=MapLook(filter=(wanted,))))
    page.run()
    kept = compute.passing_rows(pair, page.workspace)
    assert 0 < kept.sum() < 60
    assert ids(page) == pair.ids[kept].tolist()
    assert f"{kept.sum()} of {kept.sum()} rows in the filter" in page.captions
    assert f"{kept.sum()} rows in colour by the filter" in payload_text(page)


def payload_text(page):
    return next(
        one.proto.bytes.decode(errors="replace")
        for one in page.get("bidi_component")
        if b"facetRows" in one.proto.bytes
    )


def test_numbers_of_a_file_are_numbers_written_as_in_our_sentences(make_workspace, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=["d0", "d1", "d2"])
    table.insert(0, "id", [f"r{row}" for row in range(60)])
    years = pd.DataFrame({"id": table["id"], "year": [1950 + row for row in range(59)] + [""]})
    years.to_csv(tmp_path / "years.csv", index=False)
    table.to_csv(tmp_path / "a.csv", index=False)
    options = (("metadata", str(tmp_path / "years.csv")),)
    end = SpaceSpec("file", str(tmp_path / "a.csv"), None, options)
    given = replace(make_workspace(60), spaces=(end,), source=end, target=end)
    page = Session(workspace=given, state=OPEN)
    drawn = page.table("row-table-")
    assert drawn["year"].dtype == np.float64
    written = page.find("dataframe", "row-table-").proto.arrow_data.styler.display_values
    shown = pa.ipc.open_stream(written).read_pandas()
    assert shown["year"].iloc[[0, 59]].tolist() == ["1950", ""]
    assert shown["agreement"].iloc[0] == "1.00"
    page.change("selectbox", "row-table.order", "year, highest first")
    assert ids(page)[0] == "r58"


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
    assert "First 50 of 60 rows" in page.captions
