import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from app.sharing import keep_upload
from app.workspace import BUNDLED, History
from relcore.base import records
from relcore.base.access import OPENED
from relcore.catalog.catalog import SpaceSpec
from relcore.runs.entries import digest_of
from tests.app.conftest import Session, save_space

N = 60
META = "code,topic,body\n" + "".join(
    f"d{row},{'pqr'[row % 3]},a sentence of many words about {row}\n" for row in range(N)
)


def npy(seed=0, n=N, d=3, turn=None):
    stream = BytesIO()
    rows = np.random.default_rng(seed).normal(size=(n, d))
    np.save(stream, rows if turn is None else rows @ turn)
    return stream.getvalue()


def table(prefix="d"):
    rows = np.random.default_rng(5).normal(size=(N, 4)).round(3).tolist()
    lines = "".join(f"{prefix}{row}," + ",".join(map(str, one)) + "\n" for row, one in enumerate(rows))
    return f"id,d0,d1,d2,d3\n{lines}".encode()


@pytest.fixture
def spaces(make_session):
    return make_session(60, ("data",), spaces=BUNDLED, source=BUNDLED[0], target=BUNDLED[1], anchors=())


def upload(session, **files):
    content = [(name.replace("__", "."), one, "application/octet-stream") for name, one in files.items()]
    session.file_uploader(key="spaces.upload").set_value(content)
    return session.run()


def test_vectors_with_metadata_and_a_second_space_are_compared(spaces):
    upload(spaces, meta__csv=META.encode(), a__npy=npy(), b__csv=table())
    assert not spaces.errors
    tables = [box.value for box in spaces.selectbox if (box.key or "").startswith("import.metadata")]
    assert tables == [0, "None"]
    spaces.click("spaces.load-compare")
    assert not spaces.errors
    source = spaces.workspace.source
    target = spaces.workspace.target
    assert (source.name.rsplit("/", 1)[1], target.name.rsplit("/", 1)[1]) == ("a.npy", "b.csv")
    assert spaces.workspace.spaces == (source, target)  # the example has gone
    options = dict(source.options)
    assert options.pop("metadata").endswith("/meta.csv")
    assert options == {"id_column": "code", "label_column": "topic", "text_column": "body"}
    spaces.open("explore")  # AppTest stays on the page that switched
    assert f"{N} rows in both" in spaces.captions
    assert spaces.workspace.view.color_by == "labels"
    assert spaces.click("history.undo").workspace.spaces == BUNDLED


def test_the_preview_says_whether_a_file_has_ids_and_labels(spaces):
    rows = np.random.default_rng(0).normal(size=(N, 3))
    stream = BytesIO()
    np.savez(stream, vectors=rows, ids=[f"w{row}" for row in range(N)], labels=["p"] * N)
    upload(spaces, a__npz=stream.getvalue())
    assert "Found: ids and labels" in spaces.captions
    upload(spaces, b__npy=npy())
    assert "No ids and no labels found" in spaces.captions


def test_a_file_that_cannot_be_read_is_not_loaded(spaces):
    upload(spaces, a__npy=npy(), b__csv=table("row"), cut__npy=npy()[:40])
    assert [one for one in spaces.errors if "cut.npy: expected a .npy file that can be read" in one]
    assert spaces.button(key="spaces.load-compare").label == "Load and compare a.npy and b.csv"
    assert not spaces.warning  # said once


def test_a_line_names_what_was_loaded_while_it_is_in_the_session(spaces):
    upload(spaces, b__csv=table())

    def lines():
        return [one.value for one in spaces.markdown if "Loaded: " in one.value]

    assert not lines()
    spaces.click("spaces.load-file")
    assert [one.partition("Loaded: ")[2] for one in lines()] == [f"b ({N} rows × 4)"]
    assert not spaces.toast
    spaces.click("history.undo")
    assert not lines()


def test_dropped_files_stay_while_another_page_is_visited(spaces):
    upload(spaces, c__npy=npy(1, N), d__npy=npy(2, N))
    spaces.click("spaces.load-compare").open("explore")
    keys = [key or "" for key in spaces.open("data").keys]
    assert "offered.link" in keys
    assert sum(key.startswith("data.drop-") for key in keys) == 2
    spaces.click(next(key for key in keys if key.startswith("data.drop-")))
    assert "offered.link" not in spaces.keys  # one file is left
    spaces.click("spaces.load-file").open("explore")
    assert "Remove" not in " ".join(button.label for button in spaces.open("data").at.button)


def explore(session):
    workspace = replace(session.workspace, anchors=tuple(map(str, range(12))), anchors_from="")
    session.session_state["relscope.history"] = History(workspace)
    return session.open("explore")


def kind(session, key):
    return session.button(key=key).proto.type


def lead(session):
    return next(one.value for one in session.at.html if "relscope-lead" in one.value)


def test_files_without_ids_are_paired_by_order_on_request(spaces):
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
    upload(spaces, a__npy=npy(d=6), b__npy=npy(d=6, turn=turn))
    spaces.click("spaces.load-compare")
    assert spaces.workspace.source == BUNDLED[0]  # nothing is compared yet
    assert "**a** nor **b** has ids" in " ".join(text.value for text in spaces.markdown)
    assert spaces.keys.index("offered.link") < spaces.keys.index("offered.rows")
    assert kind(spaces, "offered.rows") == "primary"  # they agree in this order
    explore(spaces.click("offered.rows"))
    assert dict(spaces.workspace.source.options) == dict(spaces.workspace.target.options) == {"ids": "rows"}
    assert "Paired by row order." in lead(spaces)
    assert "explore.partners" not in spaces.keys


def test_a_table_of_both_files_pairs_rows_that_agree(spaces):
    meta = "topic\n" + "".join(f"t{row % 3}\n" for row in range(N))
    upload(spaces, a__npy=npy(1), b__npy=npy(1), meta__csv=meta.encode())
    assert "Row 1 of meta.csv describes row 1 of this file" in spaces.captions
    explore(spaces.click("spaces.load-compare"))
    assert dict(spaces.workspace.target.options)["ids"] == "rows"
    assert "Paired by row order." in lead(spaces)
    upload(spaces.open("data"), c__npy=npy(2), d__npy=npy(3), meta__csv=meta.encode())
    spaces.click("spaces.load-compare")
    assert "offered.rows" in spaces.keys  # these do not agree


def test_rows_that_do_not_match_lead_to_link(spaces):
    """1,200 unrelated rows; the seed is fixed, so the scores are within their chance bands each time."""
    upload(spaces, c__npy=npy(1, 1200, 8), d__npy=npy(2, 1200, 8))
    spaces.click("spaces.load-compare")
    assert "do not agree in this order: linear CKA" in spaces.captions
    assert (kind(spaces, "offered.link"), kind(spaces, "offered.rows")) == ("primary", "secondary")
    explore(spaces.click("offered.rows"))
    assert "they do not match. Link finds their partners." in lead(spaces)
    assert "the same 1,200 rows" not in spaces.html
    spaces.click("explore.partners")
    assert spaces.session_state["connect.tab"] == "Link"


@pytest.fixture
def strangers(make_session, make_workspace, tmp_path):
    first = make_workspace(N).source
    rng = np.random.default_rng(3)
    lines = "".join(f"x{row},r{row},{a:.5f},{b:.5f}\n" for row, (a, b) in enumerate(rng.normal(size=(N, 2))))
    (tmp_path / "table.csv").write_text(f"id,known,d0,d1\n{lines}")
    table = SpaceSpec("file", str(tmp_path / "table.csv"))
    return make_session(N, spaces=(first, table), source=first, target=table)


def test_another_column_of_ids_pairs_them(strangers):
    chooser = strangers.find("selectbox", "unpaired.target")
    assert chooser.options == ["Automatic", "id", "known", "d0", "d1"]
    strangers.change("selectbox", chooser.key, "known")
    assert not strangers.errors
    assert f"{N} rows in both" in strangers.captions
    assert dict(strangers.workspace.target.options) == {"id_column": "known"}


def test_files_can_be_loaded_while_the_compared_spaces_are_not_paired(strangers):
    upload(strangers.open("data"), c__npy=npy(1, N), d__npy=npy(2, N))
    strangers.click("spaces.load-compare")
    assert not strangers.errors
    assert {"unpaired.link", "offered.link"} <= set(strangers.keys)
    strangers.click("offered.rows")
    assert strangers.workspace.source.name.endswith("c.npy")


def test_a_column_that_cannot_be_ids_is_refused(strangers, tmp_path):
    table = (tmp_path / "table.csv").read_text()
    (tmp_path / "table.csv").write_text(table.replace("r7,", "r8,"))
    before = strangers.run().workspace
    strangers.change("selectbox", "unpaired.target", "known")
    assert "ids must be distinct" in strangers.errors[0]
    assert strangers.workspace == before


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


def test_two_loaded_files_become_the_pair(make_workspace):
    first, second = (Path(spec.name) for spec in make_workspace(60).spaces)

    def load(session, path):
        session.open("data").upload("spaces.upload", path.name, path.read_bytes()).click("spaces.load-file")
        return [Path(spec.name).stem for spec in (session.workspace.source, session.workspace.target)]

    session = Session()
    assert load(session, first) == [spec.name for spec in BUNDLED]
    assert load(session, second) == [first.stem, second.stem]


def test_an_unknown_pivot_is_named_and_the_pivots_stay(make_session):
    session = make_session().change("multiselect", "view.pivots", ["r1", "qzx"])
    assert "got 'qzx'" in session.errors[0]
    assert session.workspace.view.pivots == ("r1", "r2", "r3")
    assert session.find("multiselect", "view.pivots").value == ["r1", "r2", "r3"]
    assert not session.can_undo


def test_a_file_that_goes_away_can_be_removed(make_session, make_workspace, tmp_path):
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


def test_a_good_file_is_added_chosen_removed_and_that_undone(make_session, tmp_path):
    save_space(tmp_path / "wide.npz", np.random.default_rng(2).normal(size=(120, 9)))
    session = make_session(place=("data",))
    session.upload("spaces.upload", "../../wide.npz", (tmp_path / "wide.npz").read_bytes())
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
