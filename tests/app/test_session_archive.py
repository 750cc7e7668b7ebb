"""A session saved with its data opens where none of its files is, and an archive leads to no other file."""

import io
import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.compute import load_space
from app.session_archive import SessionArchive, has_own_data, paths_in
from app.workspace import BUNDLED, Workspace
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, with_kept, with_unscored
from tests.app.conftest import Session, session_of_uploads

SELECTED = ("r7", "r3")


def archived(workspace):
    digests = {spec: load_space(spec).digest for spec in workspace.spaces}
    return SessionArchive.of(workspace, digests, SELECTED).to_bytes()


def opened(session, content):
    return session.upload("session.file", "session.zip", content).click("Open the session")


def changed(content, change):
    """The archive with another session.json."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(stream, "w") as after:
        for item in before.infolist():
            read = before.read(item)
            if item.filename == "session.json":
                read = json.dumps(change(json.loads(read))).encode()
            after.writestr(item.filename, read)
    return stream.getvalue()


def test_a_session_opens_without_the_files_that_it_was_made_with(make_workspace, tmp_path):
    workspace = replace(make_workspace(), k=3)
    content = archived(workspace)
    packed = [Path(spec.name).read_bytes() for spec in workspace.spaces]
    assert str(tmp_path.parent).encode() not in content
    for spec in workspace.spaces:
        Path(spec.name).unlink()
    session = opened(Session(), content)
    assert not session.errors
    now = session.workspace
    assert (now.k, now.anchors) == (3, workspace.anchors)
    assert session.session_state["relscope.selection"] == SELECTED
    assert [Path(spec.name).read_bytes() for spec in now.spaces] == packed
    again = opened(session, content)
    assert not again.errors
    assert again.workspace == now


def test_an_opened_session_says_so_and_leads_to_explore(make_workspace):
    workspace = make_workspace()
    session = opened(Session(place=("data",)), archived(workspace))
    assert not session.errors
    assert '">Explore</h2>' in session.everything
    n = len(workspace.anchors)
    assert [one.value for one in session.toast] == [f"Session opened: 2 spaces, {n} anchors."]
    assert not session.session_state["toolbar.session"]
    session.run()
    assert not session.toast


@pytest.fixture
def offered(monkeypatch):
    """Label → content of the download buttons that a page draws."""
    contents = {}

    def offer(label, data, *given, **look):
        contents[label] = data
        return False

    monkeypatch.setattr("app.exports.st.download_button", offer)
    return contents


def test_the_menu_says_what_was_saved_until_something_changes(offered, make_session):
    page = make_session(tags=(("odd", ("r1", "r3")),))
    assert not page.success
    text = offered["Save session"]()
    page.run()
    n_bytes = max(1, round(len(text.encode()) / 1e3))
    holds = "2 spaces (not their files), 20 anchors and 1 tag."
    assert [one.value for one in page.success] == [f"Saved relscope-session.json, {n_bytes} KB: {holds}"]
    page.select("r5")
    assert not page.success
    offered["Save with data"]()
    page.run()
    assert "2 spaces (with their files), 20 anchors, 1 tag and 1 selected row." in page.success[0].value


def test_uploads_are_saved_after_the_run_of_the_page(offered):
    """The browser asks for the archive when no page runs; then no file of a session may be read."""
    _, uploads = session_of_uploads()
    content = offered["Save with data"]()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
        assert len(names) == 3
        assert [archive.read(name) for name in names[1:]] == [stream for _, stream, _ in uploads]
    other = opened(Session(), content)
    assert not other.errors
    assert [Path(spec.name).name for spec in other.workspace.spaces] == ["a.csv", "b.csv"]


def test_ids_beside_a_file_and_its_metadata_go_with_it(tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    ids = [f"r{row}" for row in range(30)]
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        np.save(folder / "vectors.npy", rows)
        (folder / "vectors.ids.txt").write_text("\n".join(ids))
        (folder / "items.csv").write_text("id,label\n" + "".join(f"{one},{name}\n" for one in ids))
    options = [(("metadata", str(tmp_path / name / "items.csv")),) for name in ("a", "b")]
    first, second = (
        SpaceSpec("file", str(tmp_path / name / "vectors.npy"), options=option)
        for name, option in zip(("a", "b"), options, strict=True)
    )
    first = with_unscored(first, ("r1",))
    content = archived(Workspace((first, second), first, second))
    shutil.rmtree(tmp_path / "a")
    shutil.rmtree(tmp_path / "b")
    session = opened(Session(), content)
    assert not session.errors  # each has the digest that it had, of ids and labels, too
    tables = [Path(spec.option("metadata")).read_text() for spec in session.workspace.spaces]
    assert ["r0,a" in table for table in tables] == [True, False]
    assert session.workspace.source.option("unscored") == '["r1"]'


def test_vectors_from_elsewhere_become_a_file(tmp_path):
    rows = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    np.save(tmp_path / "index.npy", rows)
    index = SpaceSpec("index", str(tmp_path / "index.npy"), options=(("kind", "npy"), ("table", "")))
    chosen = with_kept(index, [str(row) for row in range(25)])
    content = archived(Workspace((chosen, BUNDLED[0]), chosen, BUNDLED[0]))
    (tmp_path / "index.npy").unlink()
    session = opened(Session(), content)
    assert not session.errors
    own, bundled = session.workspace.spaces
    assert bundled == BUNDLED[0]
    assert own.option("kept") == chosen.option("kept")
    with np.load(own.name) as written:
        np.testing.assert_array_equal(written["vectors"], rows)


def test_bundled_spaces_need_no_archive(make_workspace):
    assert has_own_data(make_workspace())
    assert not has_own_data(Workspace())


@pytest.mark.parametrize("name", ["../other.npz", "/etc/hostname", "files/9/none.npz"])
def test_an_archive_leads_to_no_file_outside(make_workspace, tmp_path, name):
    workspace = make_workspace()
    shutil.copy(workspace.source.name, tmp_path / "other.npz")

    def elsewhere(content):
        content["session"]["spaces"][0]["name"] = name
        return content

    session = opened(Session(), changed(archived(workspace), elsewhere))
    assert "expected a file of the session's archive" in session.errors[0]
    with pytest.raises(SpaceError, match="expected a file of the session's archive"):
        paths_in(tmp_path / "inside")([{"source": "file", "name": name}])


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "expected"),
        ({"notes.txt": b"x"}, "expected session.json"),
        ({"session.json": b"{"}, "session file"),
    ],
)
def test_what_is_no_session_is_refused(files, told):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    session = opened(Session(), stream.getvalue())
    assert told in session.errors[0]
    assert session.workspace.spaces == BUNDLED
