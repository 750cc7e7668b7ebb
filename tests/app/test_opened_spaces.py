"""What `relscope app FILE …` opens with: its spaces before the bundled ones, the first two compared where
they share ids.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from app.workspace import BUNDLED
from relcore.base import records
from relcore.base.access import OPENED
from relcore.catalog.catalog import SpaceSpec
from tests.app.conftest import Session, save_space


@pytest.fixture
def open_with(monkeypatch):
    def open_with(*specs):
        monkeypatch.setenv(OPENED, json.dumps([records.to_json(spec) for spec in specs]))
        return Session()

    return open_with


def test_two_files_are_compared_and_a_third_can_be_chosen(open_with, make_workspace, tmp_path):
    first, second = make_workspace(60).spaces
    third = save_space(tmp_path / "third.npz", np.random.default_rng(1).normal(size=(60, 3)))
    session = open_with(first, second, third)
    workspace = session.workspace
    assert (workspace.source, workspace.target) == (first, second)
    assert workspace.spaces == (first, second, third)
    assert len(workspace.anchors) == 12  # a fifth of the rows
    assert not session.errors
    assert "60 rows in both · 6 d" in session.captions
    assert session.selectbox(key="choose.source").options[:3] == ["first60", "second60", "third"]
    assert not session.can_undo


def test_two_loaded_files_become_the_pair_where_nobody_has_chosen_another(make_workspace):
    first, second = (Path(spec.name) for spec in make_workspace(60).spaces)

    def load(session, path):
        session.open("data").upload("spaces.upload", path.name, path.read_bytes()).click("spaces.load-file")
        return [Path(spec.name).stem for spec in (session.workspace.source, session.workspace.target)]

    session = Session()
    assert load(session, first) == [spec.name for spec in BUNDLED]
    assert load(session, second) == [first.stem, second.stem]


def test_a_file_without_ids_pairs_with_one_that_has_them_by_row_order(open_with, make_workspace, tmp_path):
    first = make_workspace(60).source
    np.save(tmp_path / "plain.npy", np.random.default_rng(1).normal(size=(60, 3)))
    rows = "".join(f"{'pqr'[row % 3]}\n" for row in range(60))
    (tmp_path / "meta.csv").write_text(f"label\n{rows}")
    plain = SpaceSpec(
        "file", str(tmp_path / "plain.npy"), options=(("metadata", str(tmp_path / "meta.csv")),)
    )
    session = open_with(plain, first)
    assert not session.errors
    assert [one.option("ids") for one in (session.workspace.source, session.workspace.target)] == [
        "rows",
        "rows",
    ]
    assert "60 rows in both" in session.captions
    assert session.workspace.view.color_by == "labels"
    assert "meta.csv is joined to plain.npy by row order" in session.open("data").captions
