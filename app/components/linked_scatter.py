"""linked_scatter: the panes in Streamlit, up to four over the same rows; a selection in one is highlighted in
the others.

The browser draws, links and zooms; Python receives selections and clicks. Panes keep their zoom through every
rerun. Only changed arrays are redrawn, by the digest of each array in the payload.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import streamlit as st

from app.items import digest_of_bytes
from relcore.base.caching import MadeOnce
from relcore.figures.scene import Scene
from relcore.panes.page import script, style
from relcore.panes.payload import PaneEvent, Payload, Sheet, ids_digest, joined, payload_of, read_events

TOOLS = ("lasso", "box", "pan")
_LARGE = (
    1 << 15
)  # bytes from which an array is a file that the browser loads once; smaller ones travel with each payload
_CARRIED = (
    1 << 22
)  # bytes of new files that a payload takes along: asked for apart, they come a round trip later

_SECRET = secrets.token_hex(16)  # of this server: sessions that show the same data share its files

_mount = st.components.v2.component(
    "relscope_linked_scatter",
    css=style(),
    js=script((Path(__file__).parent / "linked_scatter.js").read_text(encoding="utf-8")),
    isolate_styles=False,
)


def linked_scatter(
    scene: Scene,
    *,
    key: str,
    selected: Sequence[int] | None = None,
    link_zoom: bool = False,
    height: int = 640,
    fill: bool = False,
    old: Sequence[str] = (),
    dark: bool | None = None,
    tool: Literal["lasso", "box", "pan"] = "lasso",
    sheet: Sheet | None = None,
    on_event: Callable[[PaneEvent], None] | None = None,
) -> tuple[PaneEvent, ...]:
    """Draw the scene; give the events since the last run, each exactly once, oldest first, mostly none or
    one.

    Parameters
    ----------
    scene : Scene
        Its panes may have two or three dimensions.
    key : str
        Names the component: the same key keeps zoom and tool through reruns.
    selected : row numbers, optional
        What to highlight; the browser follows whenever it differs. None leaves the browser its own selection.
    link_zoom, tool
        How it starts; the user's own choice lasts until these arguments change.
    height : int
        Pixels for all panes together.
    fill : bool
        Take the height that is left in the window instead.
    old : one string per pane, optional
        What an old map shows, such as "PCA until UMAP is done"; the pane is dimmed. "" for a pane that is up
        to date.
    dark : bool, optional
        None follows Streamlit's theme.
    sheet : Sheet, optional
        A small picture of each row, shown on hover.
    on_event : callable, optional
        Receives the events before the script runs, as a Streamlit callback; so the whole page knows. None is
        returned then.

    Raises
    ------
    ValueError
        Coordinates that are not finite, rows or a tool that do not exist.
    """
    if tool not in TOOLS:
        raise ValueError(f"tool: expected one of {', '.join(TOOLS)}, got {tool!r}")
    version = ids_digest(scene)
    events = tuple(st.session_state.pop(f"{key}:events", ()))
    # what is returned only now cannot be in `selected` yet, so the browser must not take that for an answer
    if not events:
        st.session_state[f"{key}:told"] = st.session_state.get(f"{key}:answered", 0)
    payload = payload_of(
        scene,
        version=version,
        answered=st.session_state.get(f"{key}:told", 0),
        selected=selected,
        sheet=sheet,
        files=_serve(scene, sheet, key),
        old=old,
        settings={"linkZoom": link_zoom, "height": height, "fill": fill, "dark": dark, "tool": tool},
    )
    served = _serve_arrays(payload, key)
    data = payload.leaving(served, _new(payload, served, key)).to_bytes()
    _mount(key=key, data=data, on_events_change=partial(_receive, key, version, len(scene), on_event))
    return events


def _receive(key: str, version: str, n: int, on_event: Callable[[PaneEvent], None] | None) -> None:
    # A callback runs once for each message, even if the run that follows is cut short: what it queues is not
    # lost.
    answered = st.session_state.get(f"{key}:answered", 0)
    fresh, answered = read_events(st.session_state[key].get("events") or (), version, n, answered)
    st.session_state[f"{key}:answered"] = answered
    if on_event is None:
        st.session_state[f"{key}:events"] = [*st.session_state.get(f"{key}:events", ()), *fresh]
    for event in fresh if on_event else ():
        on_event(event)


def _serve(scene: Scene, sheet: Sheet | None, key: str) -> dict[str, str]:
    """Where the browser finds what hovers show."""
    columns = {"texts": scene.texts, "notes": scene.notes}
    made = {name: _column(column) for name, column in columns.items() if column is not None}
    files = {name: (content, "text/plain", digest) for name, (content, digest) in made.items()}
    if sheet is not None:
        files["sheet"] = (sheet.content, sheet.mimetype, digest_of_bytes(sheet.content))
    return _addresses(files, key)


@MadeOnce
def _column(strings: np.ndarray) -> tuple[bytes, str]:
    content = joined(strings)
    return content, digest_of_bytes(content)


def _serve_arrays(payload: Payload, key: str) -> dict[str, str]:
    """Where the browser finds the large arrays; a selection changes too often to be a file."""
    digests = {name: digest for name, (_, size, digest) in payload.header["arrays"].items() if size >= _LARGE}
    digests.pop("selected", None)
    return _addresses(
        {
            name: (payload.arrays[name], "application/octet-stream", digest)
            for name, digest in digests.items()
        },
        f"{key}:array",
    )


def _new(payload: Payload, served: Mapping[str, str], key: str) -> list[str]:
    """Which of these arrays the last payload did not have; none of the first one, whose files load side by
    side.
    """
    about = {name: payload.header["arrays"][name] for name in served}
    before = st.session_state.get(f"{key}:served")
    st.session_state[f"{key}:served"] = {digest for _, _, digest in about.values()}
    new = {
        name: size for name, (_, size, digest) in about.items() if before is not None and digest not in before
    }
    return list(new) if sum(new.values()) <= _CARRIED else []


def _addresses(files: Mapping[str, tuple[bytes, str, str]], key: str) -> dict[str, str]:
    """Addresses of files (content, type, digest) that the browser loads once, as a payload is sent whole
    with every rerun.
    """
    if not st.runtime.exists():
        return {}
    # Named by us: Streamlit would name a file above a megabyte by samples of it, and show the old one for the
    # new. Its address is a hash of name and content, so the secret keeps whoever guesses the content of
    # another session's file from asking.
    media, base = st.runtime.get_instance().media_file_mgr, st.get_option("server.baseUrlPath").strip("/")
    urls = {
        name: media.add(content, mimetype, f"{key}:{name}", file_name=f"{_SECRET} {digest}")
        for name, (content, mimetype, digest) in files.items()
    }
    return {name: f"/{base}{url}" if base else url for name, url in urls.items()}
