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
    return session.open("data")


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
    spaces.open("explore")  # AppTest stays on the page that switched
    assert f"{N} rows in both" in spaces.captions
    assert spaces.workspace.view.color_by == "labels"
    assert spaces.click("history.undo").workspace.spaces == BUNDLED
