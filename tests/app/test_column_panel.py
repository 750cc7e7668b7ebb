"""The columns of a table are shown before it is loaded, can be changed, and nothing unclear can be loaded."""

import json

import numpy as np
import pytest

GOOD = b"word,x,y,note\n" + b"".join(b"r%d,%d,%d,n\n" % (row, row, -row) for row in range(12))
UNCLEAR = b"name,group,x,y\n" + b"".join(
    b"r%d,%s,%d,%s\n" % (row, b"pq"[row % 2 :][:1], row, b"?" if row == 7 else b"1") for row in range(12)
)


@pytest.fixture
def spaces(make_session):
    session = make_session()
    session.session_state["spaces.tab"] = "Load a file"
    return session.open("spaces")


def shown(session):
    table = next(table.value for table in session.at.dataframe if "read as" in table.value)
    return table[["column", "read as", "why"]].to_numpy().tolist()


def chooser(session, name):
    return next(
        box.key for box in (*session.at.selectbox, *session.at.multiselect) if (box.key or "").endswith(name)
    )


def load_button(session):
    return session.button(key="spaces.load-file")


def test_roles_can_be_changed(spaces):
    spaces.upload("spaces.upload", "t.csv", GOOD)
    spaces.change("selectbox", chooser(spaces, "label_column"), 3)
    spaces.change("selectbox", chooser(spaces, "id_column"), "Row numbers")
    spaces.change("multiselect", chooser(spaces, "ignore"), [2])
    assert [line[:2] for line in shown(spaces)] == [
        ["note", "labels"],
        ["x", "dimension"],
        ["word", "left out"],
        ["y", "left out"],
    ]
    assert load_button(spaces).label == "Load t.csv: 12 rows × 1 dimension"
    spaces.click("spaces.load-file")
    options = dict(spaces.workspace.spaces[-1].options)
    assert (options["label_column"], sorted(json.loads(options["ignore"]))) == ("note", ["word", "y"])


def test_what_is_unclear_comes_first_and_is_not_loaded_before_it_is_decided(spaces):
    spaces.upload("spaces.upload", "t.csv", UNCLEAR)
    assert shown(spaces)[:3] == [
        ["name", "⚠ unclear", "text: ids, labels or neither?"],
        ["group", "⚠ unclear", "text: ids, labels or neither?"],
        ["y", "⚠ unclear", "line 9: expected a number, got '?'"],
    ]
    assert "line 9, column 'y': expected a number, got '?'" in spaces.warning[0].value.replace("\\", "")
    assert load_button(spaces).disabled
    spaces.change("multiselect", chooser(spaces, "ignore"), [3])
    assert "expected one column of ids, got 'name', 'group'" in spaces.warning[0].value
    spaces.change("selectbox", chooser(spaces, "id_column"), 0)
    assert not spaces.warning
    assert not load_button(spaces).disabled
    spaces.change("selectbox", chooser(spaces, "label_column"), 0)
    assert "expected a column that has no other role" in spaces.errors[0]
    assert load_button(spaces).disabled
    spaces.change("selectbox", chooser(spaces, "label_column"), 1).click("spaces.load-file")
    assert not spaces.errors


def test_a_table_of_the_data_folder_is_shown_and_loaded_as_chosen(make_session, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "t.csv").write_bytes(UNCLEAR.replace(b"?", b"2"))
    np.save(tmp_path / "data" / "v.npy", np.eye(5))
    session = make_session()
    session.session_state["spaces.tab"] = "Load more"
    session.open("spaces").change("text_input", "spaces.folder", str(tmp_path / "data"))
    names = session.table("spaces.catalogue-here")["name"].tolist()
    session.select_rows("spaces.catalogue-here", names.index("v.npy"))
    assert session.button(key="spaces.load-here").label == "Load 5 rows × 5 dimensions"
    session.select_rows("spaces.catalogue-here", names.index("t.csv"))
    assert session.button(key="spaces.load-here").disabled
    session.change("selectbox", chooser(session, "id_column"), 0)
    assert session.button(key="spaces.load-here").label == "Load 12 rows × 2 dimensions"
    session.click("spaces.load-here")
    assert dict(session.workspace.spaces[-1].options) == {"id_column": "name"}
