"""The channel beside the page: who may ask, what is answered, and that late questions are dropped."""

from types import SimpleNamespace

import numpy as np
import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from app import live, sharing
from app.live import MOVE, PROBE, SCORE, Offer
from app.server.guard import Gate, Guard
from app.workspace import Workspace
from relcore.compare.live import LiveComparison, LiveRows
from relcore.maps.views import View
from relcore.represent.representations import ProjectionSpec
from relcore.scores.comparison import LIVE_QUERIES, score_forms
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N, ANCHORS = 60, ("r3", "r9", "r20")


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    rows, ids = rng.normal(size=(N, 6)), [f"r{row}" for row in range(N)]
    return match(LatentSpace(rows, ids), LatentSpace(rows + 0.3 * rng.normal(size=(N, 6)), ids))


@pytest.fixture
def offer(pair, monkeypatch):
    """An offer of a session that is active; every second row is drawn."""
    drawn = np.arange(0, N, 2)
    reference = np.random.default_rng(1).normal(size=(len(drawn), 2)).astype(np.float32)
    view = View(drawn, np.zeros(len(drawn), dtype=int), ("all",))
    made = Offer(
        pair, view, np.arange(N), Workspace(anchors=ANCHORS), ("own", "relative"), reference, "session", ""
    )
    active = SimpleNamespace(is_active_session=lambda session: session == "session")
    monkeypatch.setattr(st.runtime, "get_instance", lambda: active)
    monkeypatch.setitem(live._offers, made.name, made)
    return made


def client(gate=None, **cookies):
    app = Starlette(routes=[live.ROUTE], middleware=[Middleware(Guard, entry=gate or Gate())])
    return TestClient(app, "http://localhost:8501", cookies=cookies)


def asked(*numbers):
    return np.array(numbers, "<i4").tobytes()


def refused(visitor, name):
    with pytest.raises(WebSocketDisconnect) as refusal, visitor.websocket_connect(f"/live?name={name}"):
        pass
    return refusal.value.code == 1008


def test_only_the_browser_of_an_active_session_is_answered(offer, monkeypatch):
    assert refused(client(), "unknown")
    assert refused(client(Gate("t" * 40)), offer.name)  # the guard comes first
    with client().websocket_connect(f"/live?name={offer.name}"):
        pass
    key = "a" * 64
    object.__setattr__(offer, "key", key)
    assert refused(client(), offer.name)
    with client(**{sharing.key_cookie(): key + sharing.signed("key", key)}).websocket_connect(
        f"/live?name={offer.name}"
    ):
        pass
    object.__setattr__(offer, "session", "ended")
    assert refused(client(**{sharing.key_cookie(): key + sharing.signed("key", key)}), offer.name)


def test_answers_are_the_maps_and_scores_of_the_moved_anchors(offer, pair):
    held = LiveRows(pair, offer.view.rows, reference=offer.reference)
    with client().websocket_connect(f"/live?name={offer.name}") as socket:
        socket.send_bytes(b"no question")
        socket.send_bytes(asked(1, MOVE, 9, N))  # no such row
        for serial, kind, rows in ((2, MOVE, [3, 31, 20]), (3, PROBE, [3, 9, 20, 31])):
            socket.send_bytes(asked(serial, kind, 9, 31))
            answer = socket.receive_bytes()
            assert answer[:8] == asked(serial, kind)
            expected = LiveComparison(held, rows, shown=offer.shown).frame()
            found = np.frombuffer(answer[8:], "<f2"), np.frombuffer(b"".join(expected), "<f2")
            np.testing.assert_allclose(*found, atol=2e-3)
        socket.send_bytes(asked(4, MOVE, 9, 20))  # another anchor: nothing changes
        assert socket.receive_bytes()[8:] == answer[8:]
        socket.send_bytes(asked(5, SCORE, 0, 0))
        scores = np.frombuffer(socket.receive_bytes()[8:], "<f4")
    ids = (*ANCHORS, "r31")
    known = score_forms(pair, ["relative"], ids, ProjectionSpec(), n_queries=LIVE_QUERIES)["relative"]
    np.testing.assert_allclose(scores, [known["mrr"].top1, known["mrr"], known["cka"]], atol=1e-5)


def test_late_questions_are_dropped(offer, monkeypatch):
    answered = []

    def counted(offer, following, request):
        answered.append(int(request[0]))
        return request.tobytes()

    monkeypatch.setattr(live, "_answered", counted)
    with client().websocket_connect(f"/live?name={offer.name}") as socket:
        for serial in range(200):  # while the server prepares the rows
            socket.send_bytes(asked(serial, MOVE, 9, 31))
        while np.frombuffer(socket.receive_bytes(), "<i4")[0] < 199:
            pass
    assert answered[-1] == 199
    assert len(answered) < 200
