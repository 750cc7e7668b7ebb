"""No text of a user or a file is Markdown, HTML, LaTeX or an icon in any message to the browser."""

import json
import re

import pytest
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from app.anchors.panel import PARTS
from app.places import PLACES
from tests.app.conftest import Session
from tests.app.hostile import FILE_MARK, MARK, hostile_workspace

# What Streamlit would render; a backslash or a joiner without width before it makes it harmless.
RENDERED = re.compile(
    r"!\[[xy]\]\(|(?<!\\)</?(?:img|script)|(?<!\\)\$(?:\\f|x)|:(?:star|material/star)\b|:red\[r\]|(?<!\\)\*(?:\\?\*)?b|http://"
)
# Fields that Streamlit shows as plain text, and names that nobody sees.
PLAIN = re.compile(
    r"(Selectbox|MultiSelect)\.(options|default|raw_values?)|Text(Input|Area)\.(placeholder|value)"
    r"|NumberInput\.placeholder|PlotlyChart\.alt|Block\.id|DownloadButton\.url"
)
OPENED = [f"anchors.{name}" for name in PARTS] + ["stitch.try", "migrate.Similarity thresholds"]


def strings(message, place=""):
    """Every string in a protobuf message, with the message and the field that hold it."""
    for field, value in message.ListFields():
        where = f"{message.DESCRIPTOR.name}.{field.name}"
        for one in value if field.is_repeated else [value]:
            if isinstance(one, str):
                yield where, one
            elif hasattr(one, "ListFields"):
                yield from strings(one, where)


def rendered(where, text):
    if PLAIN.fullmatch(where) or where.endswith((".id", ".key", "_id")):
        return False
    if where == "Html.body":
        return bool(re.search(r"<(?:img src=x|script)", text))
    if where == "PlotlyChart.spec":
        return any("<img" in one or "$" in one for one in texts_of(json.loads(text)))
    return bool(RENDERED.search(text) and re.search(r"evil|onerror|frac|:red\[r\]", text))


def texts_of(figure, name=""):
    """The texts of a Plotly figure, but for its text alternative, which is no HTML."""
    if isinstance(figure, dict):
        for name, value in figure.items():
            yield from texts_of(value, name) if name not in ("meta", "legendgroup") else ()
    elif isinstance(figure, list):
        for value in figure:
            yield from texts_of(value)
    elif isinstance(figure, str):
        yield figure


@pytest.fixture
def sent(monkeypatch):
    """Every message to the browser, also those that a later one replaces, such as a spinner's."""
    messages = []
    enqueue = ForwardMsgQueue.enqueue

    def record(queue, message):
        messages.append(message)
        enqueue(queue, message)

    monkeypatch.setattr(ForwardMsgQueue, "enqueue", record)
    return messages


def found_in(sent):
    every = {one for message in sent for one in strings(message.delta)}
    assert any("onerror" in text for _, text in every), "the session's hostile texts are on the page"
    return sorted({(where, text[:300]) for where, text in every if rendered(where, text)})


@pytest.fixture
def hostile(monkeypatch, tmp_path, ran_in_place, sent):
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    return Session(workspace=hostile_workspace(tmp_path))


def test_no_page_renders_a_users_text(hostile, sent):
    for key in OPENED:
        hostile.session_state[key] = True
    for place in PLACES.values():
        for tab in place.tabs or [""]:
            hostile.open(place.name, tab)
    for kind in ("Vectors", "Texts", "Pictures", "Bundled", "Database or shards"):
        hostile.session_state["data.kind"] = kind
        hostile.open("data")
    hostile.session_state["data.kind"] = "Bundled"
    hostile.session_state["bundled.kind"] = "Texts and pictures"
    hostile.session_state["spaces.more"] = hostile.session_state["data.store"] = True
    hostile.open("data")
    assert found_in(sent) == []


def test_what_is_typed_and_uploaded_is_not_rendered(hostile, sent):
    hostile.session_state["anchors.sets"] = True
    hostile.open("explore", "Anchors").change("text_input", "anchors.search", MARK)
    hostile.change("text_input", "anchors.set-name", MARK[:80])
    hostile.click(f"anchors.use-{MARK[:80]}")
    hostile.click("history.undo")
    hostile.upload("anchors.upload", f"{FILE_MARK}.txt", MARK.encode()).click("Add it")
    hostile.session_state["data.kind"] = "Vectors"
    hostile.open("data").upload("spaces.upload", f"{FILE_MARK}.csv", MARK.encode())
    name = MARK.replace(",", "")
    rows = f"{name},x,y\n{name},1,2\n"
    hostile.upload("spaces.upload", f"{FILE_MARK}.csv", rows.encode()).click("spaces.load-file")
    hostile.change("button_group", "data.kind", "Bundled").change("text_input", "spaces.folder", MARK)
    hostile.change("button_group", "data.kind", "Texts").change("text_input", "data.path", MARK)
    session = {"relscope": MARK, "session": {MARK: MARK}}
    hostile.upload("session.file", "session.json", json.dumps(session).encode()).click("Open the session")
    hostile.open("research", "Studies").upload(
        "studies.upload", f"{FILE_MARK}.json", json.dumps({"study": MARK}).encode()
    )
    hostile.click("studies.open-file")
    assert found_in(sent) == []
