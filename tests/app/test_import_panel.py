"""Files become a pair to compare: which belong together, how their rows are paired, and one button that does it all."""

from io import BytesIO

import numpy as np
import pytest

from app.workspace import BUNDLED

N = 60
META = "code,topic,body\n" + "".join(f"d{row},{'pqr'[row % 3]},a sentence of many words about {row}\n" for row in range(N))


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


def end(session, title):
    return next(box for box in session.at.selectbox if (box.key or "").startswith(f"import.{title}-"))


def test_vectors_their_metadata_and_a_second_space_are_compared_by_one_click(spaces):
    upload(spaces, meta__csv=META.encode(), a__npy=npy(), b__csv=table())
    assert not spaces.errors
    assert [box.value for box in spaces.at.selectbox if (box.key or "").startswith("import.metadata")] == [0, "None"]
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


def test_row_order_can_be_declined_and_is_offered_again(spaces):
    upload(spaces, a__npy=npy(), b__csv=table(prefix="x"))
    by = next(one for one in spaces.at.button_group if (one.key or "").startswith("import.by-"))
    assert by.value == "Row order"
    spaces.change("button_group", by.key, "Ids").click("spaces.load-compare").open("compare")
    assert not spaces.errors
    assert spaces.workspace.target.option("ids") == "rows"  # the automatic choice where ids cannot pair them


def test_a_table_that_fits_no_vectors_says_so_and_the_rest_can_be_loaded(spaces):
    upload(spaces, a__npy=npy(n=N - 1), meta__csv=META.encode())
    assert "meta.csv has no vectors, and 60 rows. No file of vectors has as many (a: 59)" in spaces.warning[0].value.replace(
        "\\", ""
    )
    assert not spaces.button(key="spaces.load-file").disabled
    spaces.click("spaces.load-file")
    assert not spaces.errors
    assert spaces.workspace.spaces[-1].name.endswith("a.npy")


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


def test_one_file_is_compared_with_an_own_one_that_is_there(spaces):
    upload(spaces, a__csv=table())
    assert "spaces.load-compare" not in [one.key for one in spaces.at.button]
    spaces.click("spaces.load-file")
    upload(spaces, b__csv=table())
    assert end(spaces, "with").options == ["b", "a"]
    spaces.click("spaces.load-compare").open("compare")
    assert not spaces.errors
    assert f"{N} rows in both" in spaces.captions


def test_a_file_that_cannot_be_read_leaves_the_session_as_it_is(spaces):
    before = spaces.workspace
    upload(spaces, a__npy=npy(), b__npy=b"no matrix")
    spaces.click("spaces.load-compare")
    assert "b.npy" in spaces.errors[0]
    assert spaces.workspace == before
