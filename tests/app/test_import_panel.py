"""Files become a pair to compare: which belong together, how their rows are paired, and one button that
does it all.
"""

from io import BytesIO

import numpy as np
import pytest

from app.workspace import BUNDLED

N = 60
META = "code,topic,body\n" + "".join(
    f"d{row},{'pqr'[row % 3]},a sentence of many words about {row}\n" for row in range(N)
)


def npy(seed=0, n=N, d=3):
    stream = BytesIO()
    np.save(stream, np.random.default_rng(seed).normal(size=(n, d)))
    return stream.getvalue()


def table(prefix="d"):
    rows = np.random.default_rng(5).normal(size=(N, 4)).round(3).tolist()
    lines = "".join(f"{prefix}{row}," + ",".join(map(str, one)) + "\n" for row, one in enumerate(rows))
    return f"id,d0,d1,d2,d3\n{lines}".encode()


@pytest.fixture
def spaces(make_session):
    session = make_session(60, spaces=BUNDLED, source=BUNDLED[0], target=BUNDLED[1], anchors=())
    session.session_state["spaces.tab"] = "Load a file"
    return session.open("spaces")


def upload(session, **files):
    content = [(name.replace("__", "."), one, "application/octet-stream") for name, one in files.items()]
    session.at.file_uploader(key="spaces.upload").set_value(content)
    return session.run()


def test_vectors_their_metadata_and_a_second_space_are_compared_by_one_click(spaces):
    upload(spaces, meta__csv=META.encode(), a__npy=npy(), b__csv=table())
    assert not spaces.errors
    assert [box.value for box in spaces.at.selectbox if (box.key or "").startswith("import.metadata")] == [
        0,
        "None",
    ]
    spaces.click("spaces.load-compare")
    assert not spaces.errors
    source, target = spaces.workspace.source, spaces.workspace.target
    assert (source.name.rsplit("/", 1)[1], target.name.rsplit("/", 1)[1]) == ("a.npy", "b.csv")
    options = dict(source.options)
    assert options.pop("metadata").endswith("/meta.csv")
    assert options == {"id_column": "code", "label_column": "topic", "text_column": "body"}
    assert spaces.history.undo_step == "load and compare a and b"
    spaces.open("compare")  # AppTest stays on the page that switched
    assert f"{N} rows in both" in spaces.captions
    assert spaces.workspace.view.color_by == "labels"
    assert spaces.click("history.undo").workspace.spaces == BUNDLED


def test_a_file_without_ids_is_paired_by_row_order(spaces):
    upload(spaces, a__npy=npy(), b__csv=table())
    assert "has no ids, and both files have equally many rows" in spaces.captions
    spaces.click("spaces.load-compare").open("compare")
    assert not spaces.errors
    assert f"{N} rows in both" in spaces.captions
    assert spaces.workspace.target.option("ids") == "rows"


def test_roles_of_metadata_can_be_changed(spaces):
    upload(spaces, a__npy=npy(), meta__csv=META.encode())
    key = next(box.key for box in spaces.at.selectbox if (box.key or "").endswith("label_column"))
    spaces.change("selectbox", key, "None")
    key = next(box.key for box in spaces.at.selectbox if (box.key or "").endswith("id_column"))
    spaces.change("selectbox", key, "Row numbers").click("spaces.load-file")
    assert not spaces.errors
    options = dict(spaces.workspace.spaces[-1].options)
    assert "label_column" not in options
    assert "id_column" not in options
    assert sorted(eval(options["ignore"])) == ["code", "topic"]


def test_a_file_that_cannot_be_read_leaves_the_session_as_it_is(spaces):
    before = spaces.workspace
    upload(spaces, a__npy=npy(), b__npy=b"no matrix")
    spaces.click("spaces.load-compare")
    assert "b.npy" in spaces.errors[0]
    assert spaces.workspace == before


def npz(**arrays):
    stream = BytesIO()
    np.savez(stream, **{name: np.random.default_rng(1).normal(size=(N, d)) for name, d in arrays.items()})
    return stream.getvalue()


def chooser(session, start):
    return next(box for box in session.at.selectbox if (box.key or "").startswith(start))


def test_one_of_several_matrices_is_chosen_before_anything_is_loaded(spaces):
    upload(spaces, a__npz=npz(first=3, second=5))
    assert spaces.button(key="spaces.load-file").disabled
    assert spaces.warning[0].value == "a.npz has 2 matrices. Choose the one to load."
    box = chooser(spaces, "import.matrix")
    assert box.options == ["first · 60 rows × 3 dimensions", "second · 60 rows × 5 dimensions"]
    spaces.change("selectbox", box.key, "second")
    assert spaces.button(key="spaces.load-file").label == "Load a.npz: 60 rows × 5 dimensions"
    spaces.click("spaces.load-file")
    assert not spaces.errors
    assert dict(spaces.workspace.spaces[-1].options) == {"matrix": "second"}


def test_metadata_fits_a_file_whose_matrix_is_not_chosen_yet(spaces):
    upload(spaces, a__npz=npz(first=3, second=5), meta__csv=META.encode())
    assert chooser(spaces, "import.metadata").value == 0
    spaces.change("selectbox", chooser(spaces, "import.matrix").key, "first").click("spaces.load-file")
    assert not spaces.errors
    options = dict(spaces.workspace.spaces[-1].options)
    assert (options["matrix"], options["id_column"]) == ("first", "code")


@pytest.fixture
def more(make_session, tmp_path):
    """``more() -> Session`` at "Load more", with what lies in the folder "data"."""

    def start():
        session = make_session(60, spaces=BUNDLED, source=BUNDLED[0], target=BUNDLED[1], anchors=())
        session.session_state["spaces.tab"] = "Load more"
        return session.open("spaces").change("text_input", "spaces.folder", str(tmp_path / "data"))

    (tmp_path / "data").mkdir()
    return start


def choose(session, name):
    return session.select_rows(
        "spaces.catalogue-here", session.table("spaces.catalogue-here")["name"].tolist().index(name)
    )


def test_a_file_of_the_data_folder_takes_a_table_of_metadata_beside_it(more, tmp_path):
    (tmp_path / "data" / "a.npy").write_bytes(npy())
    (tmp_path / "data" / "meta.csv").write_text(META)
    session = choose(more(), "a.npy")
    assert chooser(session, "import.metadata").value == 0  # proposed, as it has as many rows
    session.click("spaces.load-here")
    assert not session.errors
    assert dict(session.workspace.spaces[-1].options)["metadata"] == str(tmp_path / "data" / "meta.csv")
    session = choose(session, "a.npy")
    session.change("selectbox", chooser(session, "import.metadata").key, "None").click("spaces.load-here")
    assert dict(session.workspace.spaces[-1].options) == {}


def test_a_folder_of_checkpoints_is_loaded_by_one_button(more, tmp_path):
    for step in (5, 20, 100, 1000):
        np.savez(tmp_path / "data" / f"step-{step}.npz", first=np.eye(4), second=np.full((4, 2), step))
    session = more()
    choose(session, "step-20.npz")
    assert session.button(key="spaces.load-here").disabled
    session.change("selectbox", chooser(session, "import.matrix").key, "second").click("spaces.load-series")
    assert not session.errors
    loaded = session.workspace.spaces[2:]
    assert [spec.name.rsplit("/", 1)[1] for spec in loaded] == [
        f"step-{step}.npz" for step in (5, 20, 100, 1000)
    ]
    assert {spec.options for spec in loaded} == {(("matrix", "second"),)}
    assert session.history.undo_step == "load 4 spaces"
    assert session.click("history.undo").workspace.spaces == BUNDLED
