from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app import compute
from app import session as session_module
from app.workspace import Workspace, from_session_file, to_session_file
from relcore import read_selection
from relcore.base.errors import SpaceError
from relcore.base.report import delimited_text
from relcore.catalog import row_tables
from relcore.catalog.catalog import SpaceSpec, load
from relcore.compare.scene import MapLook
from relcore.figures.scene import SELECTED_ROWS, Condition
from relcore.scores.comparison import score_pair
from relcore.spaces.split import Split
from tests.app.conftest import Session, save_space

FILTER = (Condition("labels", ("a",)), Condition("source norm", low=0.5))


@pytest.fixture
def workspace(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6))
    labels = np.array(["a", "b", "c"])[np.arange(90) % 3]
    first = save_space(tmp_path / "first.npz", X, labels=labels)
    second = save_space(tmp_path / "second.npz", X + 0.3 * rng.normal(size=(90, 6)), labels=labels)
    anchors = tuple(f"r{row}" for row in range(8))
    return Workspace((first, second), first, second, anchors, look=MapLook(filter=FILTER[:1]))


def test_rows_in_the_filter_are_scored_among_each_other_on_request(workspace):
    session = Session(workspace=workspace)
    assert session.workspace.look.filter == workspace.look.filter
    session.change("toggle", "scores.filter", True)
    assert "Rows in the filter (labels: a): 27, without anchors" in session.captions
    pair = compute.matched_pair(workspace.source, workspace.target)
    score = compute.live_scores(
        compute.filtered_pair(pair, workspace),
        "relative",
        workspace.anchors,
        workspace.projection,
        10,
        "paper",
    )
    kept = np.flatnonzero(
        (np.arange(90) % 3 == 0) & (np.arange(90) >= 8)
    )  # of 30 rows, 0, 3 and 6 are anchors
    assert score["jaccard"].n == len(kept) == 27
    made = compute.represent(pair, "relative", workspace.anchors, workspace.projection)
    split = Split.held_out(pair.ids[kept], [])
    expected = score_pair(*(rows[kept] for rows in made), split, k=10, metrics=("mrr",))["mrr"]
    assert float(score["mrr"]) == pytest.approx(
        float(expected), abs=0.05
    )  # the mean row is that of fewer rows


# The selected rows


def test_selected_rows_are_downloaded_kept_and_made_a_space(workspace, tmp_path):
    session = Session(workspace=replace(workspace, look=MapLook()))
    chosen = tuple(f"r{row}" for row in range(0, 60, 2))
    session.select(*chosen)
    session.open("explore", "Selection")
    shares = next(table.value for table in session.at.dataframe if "share of all rows" in table.value)
    assert shares["rows"].sum() == 30
    assert set(shares["class"]) == {"a", "b", "c"}
    assert set(shares["differs"]) == {""}  # every second row is no other mix of classes
    table = next(table.value for table in session.at.dataframe if {"id", "label"} <= set(table.value))
    assert table["label"].tolist() == [("a", "b", "c")[row % 3] for row in range(0, 60, 2)]
    for suffix, content in (
        ("csv", delimited_text(table).encode()),
        ("parquet", table.to_parquet(index=False)),
    ):
        path = tmp_path / f"selection.{suffix}"
        path.write_bytes(content)
        assert read_selection(path).ids == chosen
    (tmp_path / "other.csv").write_text("name\nr1\n")
    with pytest.raises(SpaceError, match='column "id"'):
        read_selection(tmp_path / "other.csv")
    session.click("selection.keep")
    assert session.workspace.look.filter == (Condition(SELECTED_ROWS, chosen),)
    pair = compute.matched_pair(workspace.source, workspace.target)
    assert compute.filtered_pair(pair, session.workspace).source.ids.tolist() == [
        one for one in pair.ids if one in chosen or one in workspace.anchors
    ]
    session.click("selection.space")
    ends = session.workspace.source, session.workspace.target
    assert [compute.load_space(end).ids.tolist() for end in ends] == [list(chosen)] * 2
    assert load(ends[0]).digest == compute.load_space(ends[0]).digest
    assert set(session.workspace.anchors) <= set(chosen)
    assert session.workspace.look.filter == ()
    again, _ = from_session_file(to_session_file(session.workspace, {}))
    assert again == session.workspace


def test_moving_a_range_is_one_step_and_a_click_on_a_class_is_its_own(monkeypatch):
    monkeypatch.setattr(session_module.st, "session_state", {})
    session_module.set_workspace("begin", Workspace())
    for low in range(1, 13):
        session_module.filter_rows((Condition("counts", low=float(low)),))
    history = session_module.history()
    assert history.undo_step == "filter by count"
    session_module.filter_rows((Condition("counts", low=12.0), Condition("labels", ("a",))))
    session_module.filter_rows((Condition("counts", low=12.0), Condition("labels", ("a", "b"))))
    for expected in (("a",), None):
        history.undo()
        found = {one.column: one.classes for one in history.present.look.filter}
        assert found.get("labels") == expected
    history.undo()
    assert history.present.look.filter == ()


@pytest.mark.filterwarnings("ignore:rows.csv is joined")
def test_a_table_of_two_files_of_vectors_is_opened_once(tmp_path, monkeypatch):
    rng, opened, open_table = np.random.default_rng(0), [], row_tables.open_table
    monkeypatch.setattr(row_tables, "open_table", lambda *given: opened.append(given) or open_table(*given))
    (tmp_path / "rows.csv").write_text("id,price\na,1.5\nb,2\nc,3\n", encoding="utf-8")
    for name in ("old", "new"):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(3, 2)))
    options = (("metadata", str(tmp_path / "rows.csv")), ("id_column", "id"))
    ends = [SpaceSpec("file", str(tmp_path / f"{name}.npy"), 100, options) for name in ("old", "new")]
    workspace = Workspace(spaces=tuple(ends), source=ends[0], target=ends[1])
    table = compute.rows_table(compute.matched_pair(*ends), workspace, np.array([2, 0]))
    assert table.astype(str).to_numpy().tolist() == [["c", "3"], ["a", "1.5"]]
    assert len(opened) == 1
