import json
from pathlib import Path

import numpy as np
import pytest

from app.workspace import BUNDLED
from relcore.base import records
from relcore.base.access import OPENED
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
