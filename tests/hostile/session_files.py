"""Hostile session files and links; what is accepted is written again as it was given."""

import json
from pathlib import Path

from app.workspace import Workspace, _query, from_query, from_session_file
from tests.hostile.cases import Case, spoiled
from tests.hostile.json_values import EARLIER, changed, differences, text
from tests.session_files import to_session_file

NAMES = ("session", "space")


def opened(content):
    def read(folder):
        workspace, digests = from_session_file(content)
        written = json.loads(to_session_file(workspace, digests))
        return differences(json.loads(content)["session"], written["session"])

    return read


def case(name, content, accept=False, refused=False):
    return Case(name, opened(content), {}, None if refused else [], accept=accept, names=NAMES, remedy=False)


def linked(name, query):
    """No link may prevent the app from opening: each setting of a link is either applied unchanged or
    ignored."""

    def read(folder):
        usual = _query(Workspace())
        found = _query(from_query(query, Workspace()))
        anchors = {"random,300,0"} | {usual["anchors"]}
        new = {one: value for one, value in found.items() if value not in {usual[one], *anchors}}
        return [one for one, value in new.items() if not _means(query.get(one), value)]

    return Case(name, read, {}, [], accept=True)


def _means(given, taken):
    def numbers(text):
        return [float(one) if one.replace(".", "").isdigit() else one for one in text.split(",")]

    try:
        first = json.loads(taken)
        return given == taken or json.loads(given)[: len(first)] == first  # of too many pivots the first
    except (ValueError, TypeError):
        return given == taken or numbers(str(given)) == numbers(taken)


def cases():
    for name in ("session", "session-first"):
        yield case(f"control: {name}", Path(EARLIER, f"{name}.json").read_bytes(), accept=True)
    whole = json.loads(Path(EARLIER, "session.json").read_text(encoding="utf-8"))
    for name, value in changed(whole):
        yield case(name, text(value))
    body = whole["session"]
    for name, change in {
        "k below 1": {"k": 0},
        "unknown panes": {"panes": ["relative", "secret"]},
        "anchors as one text": {"anchors": "item"},
        "source that is not there": {"source": 9},
        "no spaces": {"spaces": []},
        "100,000 anchors": {"anchors": [str(row) for row in range(10**5)]},
        "settings of a class": {"projection": {"similarity": "relcore.store:Store"}},
    }.items():
        yield case(f"refused: {name}", text(whole | {"session": body | change}), refused=True)
    for name, content in {
        "nested 100,000 deep": b'{"session":' * 100_000 + b"1" + b"}" * 100_000,
        "not UTF-8": b'{"session": "\xff"}',
        "a pickle": b"\x80\x04cos\nsystem\n.",
    }.items():
        yield case(name, content, refused=True)
    for name, content in spoiled(text(whole), n_flips=16):
        yield case(name, content)
    links = json.loads(Path(EARLIER, "permalinks.json").read_text())
    for name, query in links.items():
        yield linked(f"control: link {name}", query)
    odd = ["", "x", "-1", "0", "999999999999999999999", "9" * 5000, "nan", "1e3", "[", "[" * 5000, '["a"]']
    odd += ["[1]", "٣", "a,b,c", "\0", "1,2,3,4,5,6,7"]
    for number, name in enumerate([*links["session"], "anchors", "unheard_of"]):
        for at in range(5):
            value = odd[(5 * number + at) % len(odd)]
            yield linked(f"link: {name}={value[:20]!r}, {at}", links["session"] | {name: value})
