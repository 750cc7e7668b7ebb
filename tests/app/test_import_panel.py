from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest

from app.workspace import BUNDLED, History

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
    return make_session(60, ("data",), spaces=BUNDLED, source=BUNDLED[0], target=BUNDLED[1], anchors=())


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
    assert spaces.workspace.spaces == (source, target)  # the example has gone
    options = dict(source.options)
    assert options.pop("metadata").endswith("/meta.csv")
    assert options == {"id_column": "code", "label_column": "topic", "text_column": "body"}
    spaces.open("explore")  # AppTest stays on the page that switched
    assert f"{N} rows in both" in spaces.captions
    assert spaces.workspace.view.color_by == "labels"
    assert spaces.click("history.undo").workspace.spaces == BUNDLED


def test_a_file_that_cannot_be_read_says_so_before_the_click_and_is_not_loaded(spaces):
    upload(spaces, a__npy=npy(), b__csv=table("row"), cut__npy=npy()[:40])
    assert [one for one in spaces.errors if "cut.npy: expected a .npy file that can be read" in one]
    assert spaces.at.button(key="spaces.load-compare").label == "Load and compare a.npy and b.csv"
    assert not spaces.at.warning  # said once


def test_dropped_files_and_the_question_of_their_pairs_stay_while_another_page_is_visited(spaces):
    upload(spaces, c__npy=npy(1, N), d__npy=npy(2, N))
    spaces.click("spaces.load-compare").open("explore")
    keys = [button.key or "" for button in spaces.open("data").at.button]
    assert "unpaired.link" in keys
    assert sum(key.startswith("data.drop-") for key in keys) == 2
    spaces.click(next(key for key in keys if key.startswith("data.drop-")))
    assert "unpaired.link" not in [button.key for button in spaces.at.button]  # one file is left
    spaces.click("spaces.load-file").open("explore")
    assert "Remove" not in " ".join(button.label for button in spaces.open("data").at.button)


def explore(session):
    """Explore with twelve anchors."""
    workspace = replace(session.workspace, anchors=tuple(map(str, range(12))), anchors_from="")
    session.at.session_state["relscope.history"] = History(workspace)
    return session.open("explore")


def kind(session, key):
    return session.at.button(key=key).proto.type


def lead(session):
    return next(one.body for one in session.at.get("html") if "relscope-lead" in one.body)


def test_files_without_ids_are_paired_by_row_order_only_where_the_user_says_so(spaces):
    rows = np.random.default_rng(0).normal(size=(N, 6))
    turned = BytesIO()
    np.save(turned, rows @ np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0])
    first = BytesIO()
    np.save(first, rows)
    upload(spaces, a__npy=first.getvalue(), b__npy=turned.getvalue())
    spaces.click("spaces.load-compare")
    assert spaces.workspace.source == BUNDLED[0]  # nothing is compared yet
    assert "**a** nor **b** has ids" in " ".join(text.value for text in spaces.markdown)
    keys = [button.key for button in spaces.at.button]
    assert keys.index("unpaired.link") < keys.index("unpaired.rows")
    assert kind(spaces, "unpaired.rows") == "primary"  # they agree in this order
    explore(spaces.click("unpaired.rows"))
    assert dict(spaces.workspace.source.options) == dict(spaces.workspace.target.options) == {"ids": "rows"}
    assert "Paired by row order." in lead(spaces)
    assert "explore.partners" not in [button.key for button in spaces.at.button]


def test_a_table_of_both_files_pairs_rows_that_agree_in_its_order(spaces):
    meta = "topic\n" + "".join(f"t{row % 3}\n" for row in range(N))
    upload(spaces, a__npy=npy(1), b__npy=npy(1), meta__csv=meta.encode())
    assert "Row 1 of meta.csv describes row 1 of this file" in spaces.captions
    explore(spaces.click("spaces.load-compare"))
    assert dict(spaces.workspace.target.options)["ids"] == "rows"
    assert "Paired by row order." in lead(spaces)
    upload(spaces.open("data"), c__npy=npy(2), d__npy=npy(3), meta__csv=meta.encode())
    spaces.click("spaces.load-compare")
    assert "unpaired.rows" in [button.key for button in spaces.at.button]  # these do not agree


def test_rows_that_do_not_match_by_their_order_lead_to_link(spaces):
    """1,200 unrelated rows; the seed is fixed, so the scores are within their chance bands each time."""
    upload(spaces, c__npy=npy(1, 1200, 8), d__npy=npy(2, 1200, 8))
    spaces.click("spaces.load-compare")
    assert "do not agree in this order: linear CKA" in spaces.captions
    assert (kind(spaces, "unpaired.link"), kind(spaces, "unpaired.rows")) == ("primary", "secondary")
    explore(spaces.click("unpaired.rows"))
    assert "they do not match. Link finds their partners." in lead(spaces)
    assert "the same 1,200 rows" not in " ".join(one.body for one in spaces.at.get("html"))
    spaces.click("explore.partners")
    assert spaces.at.session_state["connect.tab"] == "Link"
