from __future__ import annotations

from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from app.sharing import keep_upload
from relcore.runs.entries import digest_of
from tests.app.conftest import save_space


def test_an_unknown_pivot_is_named_and_the_pivots_stay(make_session):
    session = make_session().change("multiselect", "view.pivots", ["r1", "qzx"])
    assert session.errors == ["examples: expected ids of rows that both spaces have, got 'qzx'"]
    assert session.workspace.view.pivots == ("r1", "r2", "r3")
    assert session.multiselect(key="view.pivots").value == ["r1", "r2", "r3"]
    assert not session.can_undo


def test_a_file_that_goes_away_is_said_and_can_be_removed(make_session, make_workspace, tmp_path):
    gone = save_space(tmp_path / "gone.npz", np.eye(5))
    session = make_session(spaces=(*make_workspace().spaces, gone))
    Path(gone.name).unlink()
    session.run()
    assert not session.errors
    session.open("data")
    assert "gone.npz" in session.errors[0]
    session.click(f"spaces.remove-{digest_of(gone)}")
    assert gone not in session.workspace.spaces
    assert not session.errors


def npz(**arrays):
    stream = BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def npy(array, **options):
    stream = BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def test_a_good_file_joins_the_session_can_be_chosen_and_removed_and_that_undone(make_session):
    rows = np.random.default_rng(2).normal(size=(120, 9))
    session = make_session(place=("data",))
    session.upload(
        "spaces.upload", "../../wide.npz", npz(vectors=rows, ids=np.array([f"r{row}" for row in range(120)]))
    )
    session.click("spaces.load-file")
    wide = session.workspace.spaces[-1]
    session.change("selectbox", "choose.target", wide).open("explore")
    assert not session.errors
    session.open("data")
    remove = f"spaces.remove-{digest_of(wide)}"
    assert session.button(key=remove).disabled
    session.change("selectbox", "choose.target", session.workspace.source).click(remove)
    assert wide not in session.workspace.spaces
    session.click("history.undo")
    assert session.workspace.spaces[-1] == wide
    assert session.open("explore").errors == []


@pytest.mark.parametrize("name", ["../../x.npy", "/etc/x.npy", "C:\\..\\x.npy", "..", "", "../.."])
def test_an_upload_stays_in_its_folder_whatever_its_name(tmp_path, name):
    path = keep_upload(SimpleNamespace(name=name, getbuffer=lambda: memoryview(b"abc")), tmp_path)
    assert path.resolve().parent.parent == tmp_path.resolve()
    assert (path.name == "x.npy") == name.endswith("x.npy")
    assert path.read_bytes() == b"abc"
