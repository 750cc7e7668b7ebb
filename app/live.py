"""A WebSocket that answers the browser while the page does not run. While an anchor or a slider is dragged,
the panes get new maps and scores. While something is typed or drawn in Stitch, the browser gets the answers.

A run of the page registers what it shows under a random name and sends this name to the browser. To connect,
a browser needs the name and the cookie of the browser that got it. Like every request, the connection
must first be admitted by the guard of the server.
"""

from __future__ import annotations

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import streamlit as st
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import compute
from app.sharing import browser_key, is_same, key_in
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.compare.live import LiveComparison
from relcore.compare.live_channel import FOLLOWING, LiveAnswers, live_header, why_not
from relcore.compare.live_rows import LiveRows, release_other_rows
from relcore.engine.threads import one_thread_products
from relcore.maps.pane_maps import View
from relcore.maps.principal_axes import ReductionSpec
from relcore.panes.channel import SCORE
from relcore.spaces.matching import Match

ADDRESS = "/live"
_MOST_OFFERS = 64  # number of offers, of all sessions together
_REFUSED = 1008


def _session() -> str:
    context = get_script_run_ctx()
    return context.session_id if context else ""


class LiveRequests(Protocol):
    """The interface of objects that read and answer requests of the browser. Element 1 of a request is its
    kind."""

    def read(self, message: bytes) -> Sequence[Any] | np.ndarray | None: ...
    def answer(self, request: Any, overtaken: Callable[[], bool]) -> bytes: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Offer(ABC):
    """What the browser can request for a page, such as maps of a pair. `key` identifies the browser."""

    pair: Match | None = None
    session: str = field(default_factory=_session)
    key: str = field(default_factory=browser_key)
    name: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    @abstractmethod
    def content(self) -> tuple[Any, ...]:
        """The values that determine the answers. If they change, the offer is registered under a new name."""

    @property
    @abstractmethod
    def header(self) -> dict[str, Any] | None:
        """What the panes must know to send requests. Returns {"refused": reason} if the maps cannot be
        updated during a drag, and None if the panes send no requests."""

    @abstractmethod
    def answers(self) -> LiveRequests:
        """The object that answers the requests. It is created when the browser connects."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AnchorOffer(Offer):
    """Offers the panes new maps and scores while an anchor is dragged. `shown` holds the row numbers in the
    order in which the panes have the rows."""

    pair: Match
    view: View
    shown: np.ndarray
    workspace: Workspace
    panes: tuple[str, ...]
    reference: np.ndarray | None

    @property
    def anchors(self) -> tuple[str, ...]:
        return self.workspace.anchors

    @property
    def representations(self) -> tuple[str, ...]:
        """The panes whose maps depend on the anchors."""
        return tuple(name for name in self.panes if name in FOLLOWING)

    @property
    def header(self) -> dict[str, Any] | None:
        settings = self.workspace
        if not self.anchors:
            return None
        if refused := why_not(self.pair, settings.projection, settings.reduction):
            return {"refused": refused}
        return live_header(self.panes, len(self.anchors), len(self.pair.spaces))

    @property
    def content(self) -> tuple[Any, ...]:
        settings = self.workspace
        return (
            compute.pair_key(self.pair),
            self.view.digest,
            self.shown.tobytes(),
            self.anchors,
            self.panes,
            settings.projection,
            settings.reduction,
            settings.oriented,
            settings.k,
            settings.convention,
        )

    def answers(self) -> LiveAnswers:
        rows = self.pair.source.rows(self.anchors).tolist()
        settings = self.workspace
        projection = settings.projection
        reduction = settings.reduction
        held = _rows(self.pair, self.view, projection.center, self.reference, reduction)
        following = LiveComparison(
            held, rows, projection, reduction, self.representations, self.shown, steady=True
        )
        k = compute.scored_neighbours(self.pair, self.anchors, settings.k, settings.convention)
        return LiveAnswers(following, rows, self.shown, k, settings.convention)


@compute.cached(4, key=lambda pair, view, center, *rest: (pair, view, center, rest[0] is None, rest[1]))
def _rows(
    pair: Match, view: View, center: bool, reference: np.ndarray | None, reduction: ReductionSpec
) -> LiveRows:
    return LiveRows(pair, view.rows, center, reference, reduction.random_state, compute.drawn_units)


_offers: OrderedDict[str, Offer] = OrderedDict()


def channel_of(key: str, offer: Offer) -> dict[str, Any] | None:
    """The address to which the panes with this key send requests, or the reason why their maps cannot be
    updated during a drag. Returns None if they send no requests."""
    if not st.runtime.exists():
        return None
    header = offer.header
    offered = None
    if header and "refused" not in header:
        offered = offer
    name = _register(f"{key}:live", offered)
    if not name:
        return header
    base = st.get_option("server.baseUrlPath").strip("/")
    address = f"/{base}{ADDRESS}" if base else ADDRESS
    return {"address": address, "name": name, **header}


def _register(place: str, offer: Offer | None) -> str:
    """Register what the session offers at this place, and return the name of the offer, "" if there is none.
    Data that no registered offer uses are released."""
    active = st.runtime.get_instance().is_active_session
    for ended in [name for name, one in _offers.items() if not active(one.session)]:
        del _offers[ended]
    known, name = st.session_state.get(place, (None, ""))
    before = _offers.get(name)
    content = None
    if offer:
        content = offer.content
    if before is None or known != content:
        _offers.pop(name, None)
        name = ""
    if offer and not name:
        name = offer.name
        _offers[offer.name] = offer
        while len(_offers) > _MOST_OFFERS:
            _offers.popitem(last=False)
    st.session_state[place] = content, name
    pairs = [one.pair for one in _offers.values() if one.pair]
    shown = {space.digest for pair in pairs for space in pair.spaces}
    release_other_rows(shown)
    if before and before.pair and before.pair.others:
        unused = {space.digest for space in before.pair.spaces} - shown
        if unused:
            compute.forget(unused)
    return name


async def _connect(socket: WebSocket) -> None:
    offer = _offers.get(socket.query_params.get("name", ""))
    own = offer and (not offer.key or is_same(key_in(socket.cookies), offer.key))
    if not own or not st.runtime.get_instance().is_active_session(offer.session):
        await socket.close(_REFUSED)
        return
    await socket.accept()
    with suppress(WebSocketDisconnect, SpaceError):
        await _answer(socket, await asyncio.to_thread(offer.answers))
    with suppress(RuntimeError, WebSocketDisconnect):  # the browser may have closed the socket already
        await socket.close()


async def _answer(socket: WebSocket, answers: LiveRequests) -> None:
    """Answer the latest request of each kind, and drop earlier ones. When the anchor moves again, stop
    computing scores."""
    waiting: dict[bool, Any] = {}
    came = asyncio.Event()
    ended = asyncio.Event()

    async def listen() -> None:
        try:
            while True:
                frame = await socket.receive()
                if frame["type"] == "websocket.disconnect":
                    return
                message = frame.get("bytes")
                # Requests are bytes; a frame of text, which no pane sends, is ignored.
                request = None
                if message is not None:
                    request = answers.read(message)
                if request is not None:
                    waiting[request[1] == SCORE] = request
                    came.set()
        finally:
            ended.set()
            came.set()

    def answer_beside(request: Any) -> bytes:
        with one_thread_products():  # leaves processors to the browser, which draws at the same time
            return answers.answer(request, lambda: False in waiting)

    listening = asyncio.create_task(listen())
    try:
        while True:
            await came.wait()
            if ended.is_set():
                return
            came.clear()
            while waiting:
                request = waiting.pop(False, None)
                if request is None:
                    request = waiting.pop(True)
                answer = await asyncio.to_thread(answer_beside, request)
                if answer:
                    await socket.send_bytes(answer)
    finally:
        listening.cancel()
        with suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
            await listening


ROUTE = WebSocketRoute(ADDRESS, _connect)
