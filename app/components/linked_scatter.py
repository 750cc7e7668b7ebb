"""The panes as a component of Streamlit. The browser redraws only arrays whose digest in the payload has
changed."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from app.components.page import scripts
from app.items import digest_of_bytes
from relcore.base.memory import MadeOnce
from relcore.figures.scene import Scene
from relcore.panes.page import part, script
from relcore.panes.payload import (
    PaneEvent,
    PaneSettings,
    Payload,
    Sheet,
    ids_digest,
    joined_texts,
    payload_of,
    read_events,
)

_LARGE = 1 << 15  # bytes; a larger array is sent as a file that the browser loads once
_CARRIED = 1 << 22  # bytes; if new files are larger in all, the browser fetches them by a request of its own

_SECRET = secrets.token_hex(16)  # one secret per server: sessions with the same data share its files

# On pages with panes, nothing is faded during a run. This rule is not in the page's own style sheet: there it
# needs :has(.st-key-panes), and Chromium then computes the styles of the whole page at each movement of the
# mouse.
_UNFADED = '.stMain [data-stale="true"] { opacity: 1 !important; transition: none !important; }'

_mount = st.components.v2.component(
    "relscope_linked_scatter",
    css=f"{part('panes.css')}{_UNFADED}",
    js=script(scripts("channel", "linked_scatter")),
    isolate_styles=False,
)


def linked_scatter(
    scene: Scene,
    *,
    key: str,
    on_event: Callable[[PaneEvent], None],
    selected: Sequence[int] | None = None,
    old: Sequence[str] = (),
    sheet: Sheet | None = None,
    settings: PaneSettings | None = None,
) -> None:
    """Draw the scene, whose panes have two or three dimensions. They take the room that there is, and send
    their filters.

    With the same `key`, zoom and tool stay through reruns. `on_event` is a callback that gets each event
    once. `selected` are row numbers; if None, the browser keeps its own selection. `old` has a text for each
    pane: what its map shows if the map is outdated, otherwise "". `sheet` has a picture of each row.

    Raises a ValueError for coordinates that are not finite and for rows that do not exist.
    """
    version = ids_digest(scene)
    payload = payload_of(
        scene,
        version=version,
        answered=st.session_state.get(f"{key}:answered", 0),
        selected=selected,
        sheet=sheet,
        files=_serve(scene, sheet, key),
        old=old,
        settings=replace(settings or PaneSettings(), fill=True, filters=True),
    )
    served = _serve_arrays(payload, key)
    data = payload.leaving(served, _new(payload, served, key)).to_bytes()
    _mount(key=key, data=data, on_events_change=partial(_receive, key, version, len(scene), on_event))


def _receive(key: str, version: str, n: int, on_event: Callable[[PaneEvent], None]) -> None:
    # Streamlit calls this function once for each message, even if the next run is stopped early.
    answered = st.session_state.get(f"{key}:answered", 0)
    fresh, answered = read_events(st.session_state[key].get("events") or (), version, n, answered)
    st.session_state[f"{key}:answered"] = answered
    for event in fresh:
        on_event(event)


def _serve(scene: Scene, sheet: Sheet | None, key: str) -> dict[str, str]:
    columns = {"texts": scene.texts, "notes": scene.notes}
    files = {name: (*_column(column), "text/plain") for name, column in columns.items() if column is not None}
    if sheet is not None:
        files["sheet"] = (sheet.content, digest_of_bytes(sheet.content), sheet.mimetype)
    return _addresses(files, key)


@MadeOnce
def _column(strings: np.ndarray) -> tuple[bytes, str]:
    content = joined_texts(strings)
    return content, digest_of_bytes(content)


def _serve_arrays(payload: Payload, key: str) -> dict[str, str]:
    """Serve the large arrays as files, and return their addresses. Selections change too often for this."""
    large = {
        name: (payload.arrays[name], digest, "application/octet-stream")
        for name, (_, size, digest) in payload.header["arrays"].items()
        if size >= _LARGE and name != "selected"
    }
    return _addresses(large, f"{key}:array")


def _new(payload: Payload, served: Mapping[str, str], key: str) -> list[str]:
    """The names of the served arrays that the last payload lacked, and that are small enough to be sent in
    this one. Returns [] for the first payload: its files are loaded in parallel."""
    about = {name: payload.header["arrays"][name] for name in served}
    digests = {digest for _, _, digest in about.values()}
    before = st.session_state.get(f"{key}:served", digests)
    st.session_state[f"{key}:served"] = digests
    new = {name: size for name, (_, size, digest) in about.items() if digest not in before}
    if sum(new.values()) <= _CARRIED:
        return list(new)
    return []


def _addresses(files: Mapping[str, tuple[bytes, str, str]], key: str) -> dict[str, str]:
    """The address of each file (content, digest, type). The browser loads each file once."""
    if not st.runtime.exists():
        return {}
    # Files get their names here. Streamlit names a large file by a sample of its bytes, so a changed file
    # might keep its name. The secret prevents a session from guessing the address of another session's file.
    media = st.runtime.get_instance().media_file_mgr
    base = st.get_option("server.baseUrlPath").strip("/")
    urls = {
        name: media.add(content, mimetype, f"{key}:{name}", file_name=f"{_SECRET} {digest}")
        for name, (content, digest, mimetype) in files.items()
    }
    return {name: f"/{base}{url}" if base else url for name, url in urls.items()}
