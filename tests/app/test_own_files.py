import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from app.toolbar import session_file
from relcore import read_selection
from relcore.base.records import without_paths
from relcore.catalog.catalog import load
from relcore.studies.study import StudySpec, study_of
from tests.app.conftest import Session


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)


def saved(workspace, selection=()):
    return session_file(workspace, {spec: load(spec).digest for spec in workspace.spaces}, selection).encode()


def test_a_session_file_brings_the_selection_back(make_workspace, make_session, tmp_path):
    workspace = make_workspace()
    content = saved(workspace, ("r7", "r3"))
    assert json.loads(content)["panes"] == {"selection": ["r7", "r3"]}
    assert str(tmp_path.parent).encode() not in content
    (tmp_path / "session.json").write_bytes(content)
    found = read_selection(tmp_path / "session.json")
    assert found.ids == ("r7", "r3")
    assert [found.rows_in(load(spec)).tolist() for spec in workspace.spaces] == [[7, 3], [7, 3]]
    other = content.replace(b"first120", b"first60").replace(b"second120", b"second60")
    session = opened(make_session(60).select("r1"), other)
    assert session.errors  # the digests are those of other files
    assert session.session_state["relscope.selection"] == ("r1",)
    session = opened(Session(workspace=replace(workspace, k=3)), content)
    assert session.session_state["relscope.selection"] == ("r7", "r3")
    assert session.workspace == workspace


def opened(session, content):
    return session.upload("session.file", "session.json", content).click("Open the session")


def test_a_file_of_the_data_folder_is_found_unless_changed(make_workspace, monkeypatch, tmp_path):
    workspace = make_workspace()
    content = saved(workspace)
    data = tmp_path / "data" / "vectors"
    data.mkdir(parents=True)
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path / "data"))
    for spec in workspace.spaces:
        shutil.move(spec.name, data)
    session = opened(Session(), content)
    assert not session.errors
    assert [Path(spec.name).parent for spec in session.workspace.spaces] == [data, data]
    shutil.copy(data / "second120.npz", data / "first120.npz")
    session = opened(Session(), content)
    assert "'first120.npz' has changed since it was saved" in session.errors[0]


def test_a_study_file_finds_the_spaces_of_the_session(make_workspace, tmp_path):
    workspace = make_workspace()
    records = [spec.to_json() | {"digest": load(spec).digest} for spec in workspace.spaces]
    spaces = tuple(json.dumps(one, sort_keys=True) for one in records)
    spec = StudySpec.of(study_of("pruning"), {"spaces": spaces})
    content = json.dumps(without_paths(spec.to_json())).encode()
    assert str(tmp_path.parent).encode() not in content
    session = Session(None, workspace, ("research", "Studies"))
    session.upload("studies.upload", "study.json", content)
    session.click("studies.open-file")
    assert not session.errors
    assert session.session_state["relscope.given-studies.pruning.spaces"] == spaces
