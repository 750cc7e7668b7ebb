import gc
import weakref
from contextlib import ExitStack
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from app import live, sharing
from app.live import AnchorOffer
from app.server.guard import Gate, Guard
from app.workspace import Workspace
from relcore.base.environment import resolve
from relcore.compare.live import LiveComparison
from relcore.compare.live_channel import LiveAnswers
from relcore.compare.live_rows import LiveRows, release_other_rows
from relcore.engine.device import cached_size
from relcore.maps.pane_maps import View
from relcore.panes.channel import MOVE, PROBE, SCORE, sampled_places
from relcore.represent.representations import ProjectionSpec
from relcore.scores.comparison import score_representations
from relcore.scores.score_report import LIVE_QUERIES
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from tests.waiting import until

N = 60
ANCHORS = ("r3", "r9", "r20")


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N, 6))
    ids = [f"r{row}" for row in range(N)]
    return match(LatentSpace(rows, ids), LatentSpace(rows + 0.3 * rng.normal(size=(N, 6)), ids))


@pytest.fixture
def offer(pair, monkeypatch):
    drawn = np.arange(0, N, 2)
    reference = np.random.default_rng(1).normal(size=(len(drawn), 2)).astype(np.float32)
    view = View(drawn, np.zeros(len(drawn), dtype=int), ("all",))
    settings = {"workspace": Workspace(anchors=ANCHORS), "panes": ("own", "relative"), "reference": reference}
    made = AnchorOffer(pair=pair, view=view, shown=np.arange(N), session="session", key="", **settings)
    active = SimpleNamespace(is_active_session=lambda session: session == "session")
    monkeypatch.setattr(st.runtime, "get_instance", lambda: active)
    monkeypatch.setitem(live._offers, made.name, made)
    return made


def client(gate=None, **cookies):
    app = Starlette(routes=[live.ROUTE], middleware=[Middleware(Guard, entry=gate or Gate())])
    return TestClient(app, "http://localhost:8501", cookies=cookies)


def asked(serial, kind, anchor=0, place=0, watched=-1, most=0, *more):
    return np.array([serial, kind, anchor, place, watched, most, *more], "<i4").tobytes()


def parts(answer, n=2):
    """The parts of an answer for n spaces: the nearest rows in each, the similarities of the watched row, and
    the maps."""
    k, m = np.frombuffer(answer[8:16], "<i4")
    near, similar, maps = np.split(np.frombuffer(answer[16:], "<i2"), [2 * n * k, 2 * n * (k + 1)])
    return near.view("<i4").reshape(n, k), similar.view("<f4"), maps.view("<f2").reshape(-1, 2, m)


def connected(offer, visitor=None):
    return (visitor or client()).websocket_connect(f"/live?name={offer.name}")


def refused(visitor, name):
    with pytest.raises(WebSocketDisconnect) as refusal, visitor.websocket_connect(f"/live?name={name}"):
        pass
    return refusal.value.code == 1008


def test_only_the_browser_of_an_active_session_is_answered(offer, monkeypatch):
    assert refused(client(), "unknown")
    assert refused(client(Gate("t" * 40)), offer.name)  # the guard comes first
    with connected(offer):
        pass
    key = "a" * 64
    object.__setattr__(offer, "key", key)
    assert refused(client(), offer.name)
    owner = client(**{sharing.key_cookie(): key + sharing.signature("key", key)})
    with connected(offer, owner):
        pass
    object.__setattr__(offer, "session", "ended")
    assert refused(owner, offer.name)


def test_answers_are_the_maps_and_scores_of_the_moved_anchors(offer, pair):
    held = LiveRows(pair, offer.view.rows, reference=offer.reference)
    unit = [held.anchor(side, 5) @ held.anchor(side, 31) for side in (0, 1)]
    moved = LiveComparison(held, [3, 9, 20], shown=offer.shown, steady=True)
    with connected(offer) as socket:
        socket.send_text("no question")  # messages that are no request must not end the connection
        socket.send_bytes(b"no question")
        socket.send_bytes(asked(1, MOVE, 9, N))  # no such row
        socket.send_bytes(asked(1, MOVE, 9, 31, -1, 10, N))
        for serial, kind, rows in ((2, MOVE, [3, 31, 20]), (3, PROBE, [3, 9, 20, 31])):
            moved.set_anchors(rows)
            whole = moved.frame(row=31)
            expected = np.frombuffer(b"".join(whole.maps), "<f2").reshape(2, 2, -1)
            socket.send_bytes(asked(serial, kind, 9, 31, 5))
            answer = socket.receive_bytes()
            assert answer[:8] == asked(serial, kind)[:8]
            near, similar, maps = parts(answer)
            np.testing.assert_array_equal(near, whole.near)
            np.testing.assert_allclose(similar, unit, atol=1e-6)
            np.testing.assert_allclose(maps, expected, atol=2e-3)
            socket.send_bytes(asked(serial, kind, 9, 31, -1, 20, 9, 3))
            near, similar, maps = parts(socket.receive_bytes())
            places = [*sampled_places(N, 20), 9, 3]
            assert np.isnan(similar).all()
            assert np.isin(near, places).all()
            np.testing.assert_allclose(maps, expected[:, :, places], atol=2e-3)
        socket.send_bytes(asked(4, MOVE, 9, 20))  # another anchor: nothing changes
        again = parts(socket.receive_bytes())
        np.testing.assert_array_equal(again[2], parts(answer)[2])
        socket.send_bytes(asked(5, SCORE))
        scores = np.frombuffer(socket.receive_bytes()[8:], "<f4")
    ids = (*ANCHORS, "r31")
    known = score_representations(pair, ["relative"], ids, ProjectionSpec(), n_queries=LIVE_QUERIES)[
        "relative"
    ]
    np.testing.assert_allclose(scores, [known["mrr"].top1, known["mrr"], known["cka"], np.nan], atol=1e-5)


def test_no_frame_ends_the_connection_or_changes_the_answers(offer):
    rng = np.random.default_rng(2)
    edges = [-(2**31), -1, 0, 1, 2, 3, N - 1, N, 10**6, 2**31 - 1]
    with connected(offer) as socket:
        socket.send_bytes(asked(1, MOVE, 9, 31))
        before = socket.receive_bytes()
        for length in rng.integers(0, 200, 100).tolist():
            socket.send_bytes(rng.bytes(length))
            socket.send_bytes(rng.choice(edges, 6 + length % 3).astype("<i4").tobytes())
            socket.send_text("\u202e\x00" * length)
        socket.send_bytes(asked(7, MOVE, 9, 31))
        answer = b""
        while answer[:8] != asked(7, MOVE)[:8]:  # answers to those that are requests come first
            answer = socket.receive_bytes()
        assert answer[8:] == before[8:]


def test_scores_are_given_up_when_the_anchor_moves_again(offer, monkeypatch):
    begun = Event()
    moved = Event()
    answer = LiveAnswers.answer

    def slow(self, request, overtaken):
        if request[1] == SCORE:
            begun.set()
            until(lambda: overtaken() or not moved.is_set())
        return answer(self, request, overtaken)

    monkeypatch.setattr(LiveAnswers, "answer", slow)
    with connected(offer) as socket:
        moved.set()
        socket.send_bytes(asked(1, SCORE))
        assert begun.wait(10)
        socket.send_bytes(asked(2, MOVE, 9, 31))
        assert socket.receive_bytes()[:8] == asked(2, MOVE)[:8]
        moved.clear()
        socket.send_bytes(asked(3, SCORE))
        assert socket.receive_bytes()[:8] == asked(3, SCORE)[:8]


def test_two_sessions_that_drag_at_once_get_their_own_maps(offer, pair, monkeypatch):
    """Both sessions have the same spaces, whose rows are held once. Their turns are interleaved at random."""
    other = replace(offer, workspace=replace(offer.workspace, anchors=("r1", "r40")), name="other")
    monkeypatch.setitem(live._offers, other.name, other)
    held = LiveRows(pair, offer.view.rows, reference=offer.reference)
    rng = np.random.default_rng(2)
    visitor = client()
    first = {offer: [3, 9, 20], other: [1, 40]}
    moved = {one: LiveComparison(held, rows, shown=one.shown, steady=True) for one, rows in first.items()}
    with ExitStack() as stack:
        sockets = {one: stack.enter_context(connected(one, visitor)) for one in first}
        for _ in range(20):
            moves = {one: int(rng.choice(np.arange(41, N))) for one in first}
            for one, to in moves.items():
                sockets[one].send_bytes(asked(1, MOVE, first[one][0], to))
            for one, to in moves.items():
                maps = parts(sockets[one].receive_bytes())[2]
                moved[one].set_anchors([to, *first[one][1:]])
                found = np.frombuffer(b"".join(moved[one].frame().maps), "<f2").reshape(2, 2, -1)
                np.testing.assert_allclose(maps, found, atol=2e-3)


def test_a_removed_model_leaves_the_memory(offer, pair, monkeypatch):
    monkeypatch.setattr(st.runtime, "exists", lambda: True)
    monkeypatch.setattr(st, "session_state", {})
    release_other_rows(())
    third = LatentSpace(np.random.default_rng(3).normal(size=(N, 4)), pair.ids)
    three = replace(offer, pair=match(pair.source, pair.target, third), name="three")
    assert live.channel_of("panes", three)["panes"] == [3, 4, 5]
    answer = three.answers().answer(np.frombuffer(asked(1, MOVE, 3, 31), "<i4"))
    assert parts(answer, 3)[2].shape == (3, 2, N)
    held = cached_size()[0]  # a device also has rows of other tests
    of_a_space = 1 if resolve() == "cpu" else 3
    assert held >= 3 * of_a_space
    still_there = weakref.ref(third)
    del third, three
    live.channel_of("panes", replace(offer, name="two"))
    gc.collect()
    assert still_there() is None
    assert held - cached_size()[0] == of_a_space


def test_late_questions_are_dropped(offer, monkeypatch):
    answered = []

    def counted(self, request, overtaken):
        answered.append(int(request[0]))
        return request.tobytes()

    monkeypatch.setattr(LiveAnswers, "answer", counted)
    with connected(offer) as socket:
        for serial in range(200):  # while the server prepares the rows
            socket.send_bytes(asked(serial, MOVE, 9, 31))
        while np.frombuffer(socket.receive_bytes(), "<i4")[0] < 199:
            pass
    assert answered[-1] == 199
    assert len(answered) < 200
