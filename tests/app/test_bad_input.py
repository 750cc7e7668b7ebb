"""Everything that a user can get wrong is told in one message, nothing is lost, and the way back stays
open.
"""

from __future__ import annotations

import dataclasses
import json
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from app.sharing import keep_upload
from app.workspace import to_session_file
from relcore.runs.digest import digest_of
from tests.app.conftest import save_space


def test_an_unknown_pivot_is_named_and_the_pivots_stay(make_session):
    session = make_session().change("multiselect", "view.pivots", ["r1", "qzx"])
    assert session.errors == ["pivots: expected ids of rows that both spaces have, got 'qzx'"]
    assert session.workspace.view.pivots == ("r1", "r2", "r3")
    assert session.multiselect(key="view.pivots").value == ["r1", "r2", "r3"]
    assert session.button(key="history.undo").disabled


def test_no_pivots_and_nothing_else_to_draw_can_be_taken_back(make_session):
    session = make_session().change("multiselect", "view.pivots", [])
    assert session.errors == ["nothing to draw: name at least one pivot, or draw everything"]
    session.change("button_group", "view.everything", "all")
    assert not session.errors
    session.click("history.undo").click("history.undo")
    assert session.workspace.view.pivots == ("r1", "r2", "r3")


def test_k_above_the_held_out_rows_is_as_many_as_there_are(make_session):
    session = make_session(40).change("number_input", "scores.k", 41)  # 20 of the 40 rows are anchors
    assert not session.errors
    assert "k = 20, paper convention" in session.captions


def test_where_every_row_is_an_anchor_nothing_but_the_absolute_spaces_is_scored(make_session):
    session = make_session(40).change("number_input", "sidebar.number", 40)
    assert not session.errors
    assert "0 of 40 rows are held out, and scores need 5 or more" in session.html
    assert '<tr class="relative">' not in session.html
    session.open("anchors")
    assert not session.errors
    assert "Remove 5 or more anchors, or choose spaces that share more rows." in session.info[0].value


def test_a_file_that_goes_away_is_said_and_can_be_removed(make_session, make_workspace, tmp_path):
    gone = save_space(tmp_path / "gone.npz", np.eye(5))
    session = make_session(spaces=(*make_workspace().spaces, gone))
    Path(gone.name).unlink()
    session.run()
    assert not session.errors
    session.open("spaces")
    assert "gone.npz" in session.errors[0]
    session.click(f"spaces.remove-{digest_of(gone)}")
    assert gone not in session.workspace.spaces
    assert not session.errors


def test_a_pair_without_shared_ids_is_no_error_and_the_sidebar_chooses_another(
    make_session, make_workspace, tmp_path
):
    workspace = make_workspace()
    elsewhere = save_space(tmp_path / "elsewhere.npz", np.eye(5), prefix="other")
    session = make_session(spaces=(*workspace.spaces, elsewhere)).change(
        "selectbox", "choose.target", elsewhere
    )
    for page in ("compare", "anchors"):
        session.open(page)
        assert not session.errors
        assert session.button(key="unpaired.rows").disabled  # 120 rows and 5
        assert "ids 'other0', 'other1', 'other2'" in session.captions
    session.open("spaces")
    assert "elsewhere" in str(session.dataframe[0].value)
    session.open("compare").change("selectbox", "choose.target", workspace.source)
    assert not session.errors
    session.click("history.undo").click("history.undo")
    assert session.workspace.target == workspace.target


@pytest.fixture
def half(tmp_path):
    """A space that has rows r0 to r9 alone, so half of the anchors."""
    return save_space(tmp_path / "half.npz", np.random.default_rng(1).normal(size=(10, 6)))


def test_anchors_picked_by_hand_stay_as_far_as_the_other_space_has_them(make_session, make_workspace, half):
    session = make_session(spaces=(*make_workspace().spaces, half), k=5).change(
        "selectbox", "choose.target", half
    )
    assert not session.errors
    assert session.workspace.anchors == tuple(f"r{row}" for row in range(10))
    assert "left out: 110 and 0 in one only" in session.captions
    session.click("history.undo")
    assert len(session.workspace.anchors) == 20


def test_zero_vectors_are_counted_and_left_out(make_session, make_workspace, tmp_path):
    vectors = np.random.default_rng(1).normal(size=(120, 6))
    vectors[[100, 110]] = 0
    holes = save_space(tmp_path / "holes.npz", vectors)
    session = make_session(spaces=(*make_workspace().spaces, holes)).change(
        "selectbox", "choose.target", holes
    )
    assert not session.errors
    assert "2 zero vectors are left out, because they have no direction." in [
        warning.value for warning in session.warning
    ]
    assert "118 rows in both" in session.captions


def npz(**arrays):
    stream = BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def npy(array, **options):
    stream = BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


BAD_FILES = {
    "empty.npy": (b"", "empty"),
    "truncated.npy": (npy(np.ones((50, 8)))[:-100], "the file was cut short"),
    "pickled.npy": (npy(np.array([{"a": 1}], dtype=object), allow_pickle=True), "pickle"),
    "flat.npy": (npy(np.ones(9)), "expected"),
    "nan.npy": (npy(np.array([[1, 2], [np.nan, 4]])), "NaN or infinite"),
    "twice.npz": (npz(vectors=np.ones((3, 2)), ids=np.array(["a", "b", "a"])), "ids must be distinct"),
    "ragged.csv": (b"id,x,y\na,1,2\nb,3\n", "ragged.csv"),
    "text.csv": (b"id,x,y\na,1,2\nb,3,many\n", "text.csv"),
    "header.bin": (b"3 many\nabc", "header.bin"),
    "truncated.bin": (b"2 3\na " + np.ones(3, "<f4").tobytes() + b"\nb 12", "truncated.bin"),
    "picture.png": (b"\x89PNG", ".png"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_told_and_does_not_get_in(make_session, name):
    content, said = BAD_FILES[name]
    session = make_session().open("spaces")
    before = session.workspace
    session.upload("spaces.upload", name, content)
    if not session.button(key="spaces.load-file").disabled:
        session.click("spaces.load-file")
    errors = session.errors or [warning.value for warning in session.warning]
    assert len(errors) == 1
    assert said in errors[0]
    assert session.workspace == before
    assert session.open("compare").errors == []


def test_a_good_file_joins_the_session_can_be_chosen_and_removed_and_that_undone(make_session):
    rows = np.random.default_rng(2).normal(size=(120, 9))
    session = make_session().open("spaces")
    session.upload(
        "spaces.upload", "../../wide.npz", npz(vectors=rows, ids=np.array([f"r{row}" for row in range(120)]))
    )
    session.click("spaces.load-file")
    wide = session.workspace.spaces[-1]
    assert session.toast[0].value.startswith("wide: 120 rows, 9 dimensions")
    session.change("selectbox", "choose.target", wide).open("compare")
    assert "different dimensions, and so no coordinates in common" in session.html
    assert not session.errors
    session.open("spaces")
    remove = f"spaces.remove-{digest_of(wide)}"
    assert session.button(key=remove).disabled
    session.change("selectbox", "choose.target", session.workspace.source).click(remove)
    assert wide not in session.workspace.spaces
    session.click("history.undo")
    assert session.workspace.spaces[-1] == wide
    assert session.open("compare").errors == []


@pytest.mark.parametrize(
    "name", ["../../x.npy", "/etc/x.npy", "..\\..\\x.npy", "C:\\x.npy", "a/b/x.npy", "x.npy"]
)
def test_an_upload_stays_in_its_folder_whatever_its_name(tmp_path, name):
    path = keep_upload(SimpleNamespace(name=name, getbuffer=lambda: memoryview(b"abc")), tmp_path)
    assert path.name == "x.npy"
    assert path.parent.parent == tmp_path
    assert path.read_bytes() == b"abc"


@pytest.mark.parametrize("name", ["..", ".", "", "/", "../.."])
def test_a_name_that_is_no_name_is_replaced(tmp_path, name):
    path = keep_upload(SimpleNamespace(name=name, getbuffer=lambda: memoryview(b"abc")), tmp_path)
    assert path.resolve().parent.parent == tmp_path.resolve()
    assert path.read_bytes() == b"abc"


def saved(workspace, **changes):
    content = json.loads(to_session_file(workspace, {}))
    content["session"] |= changes
    return json.dumps(content).encode()


NOT_SESSIONS = [b"", b"[]", b"{", b"null", b'{"session": 3}', b'{"session": {}}', b"\xff\xfe"]


@pytest.mark.parametrize("content", NOT_SESSIONS)
def test_a_file_that_is_no_session_is_refused_and_nothing_changes(make_session, content):
    session = make_session()
    before = session.workspace
    session.upload("session.file", "relscope-session.json", content).click("Open the session")
    assert "session file: " in session.errors[0]
    assert session.workspace == before


def test_a_session_on_a_file_that_changed_or_went_is_refused(make_session, make_workspace, tmp_path):
    workspace = make_workspace()
    content = to_session_file(workspace, {workspace.source: "0123456789abcdef"}).encode()
    session = (
        make_session(60).upload("session.file", "relscope-session.json", content).click("Open the session")
    )
    assert "has changed since it was saved (expected content 01234567…, got" in session.errors[0]
    gone = dataclasses.replace(workspace.source, name=str(tmp_path / "gone.npz"))
    absent = dataclasses.replace(workspace, spaces=(gone, workspace.target), source=gone)
    session.upload("session.file", "relscope-session.json", to_session_file(absent, {}).encode()).click(
        "Open the session"
    )
    assert "gone.npz" in session.errors[0]
    assert session.workspace == make_workspace(60)
