"""The panes as a component of Streamlit. The browser redraws only arrays whose digest in the payload has
changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from app.components.page import scripts
from app.components.served_files import addresses, data_of
from app.items import digest_of_bytes
from relcore.base.memory import MadeOnce
from relcore.figures.scene import Scene
from relcore.panes.page import part, script
from relcore.panes.payload import (
    PaneEvent,
    PaneSettings,
    Sheet,
    ids_digest,
    joined_texts,
    payload_of,
    read_events,
)

# On pages with panes, nothing is faded during a run. This rule is not in the page's own style sheet: there it
# needs :has(.st-key-panes), and Chromium then computes the styles of the whole page at each movement of the
# mouse.
_UNFADED = '.stMain [data-stale="true"] { opacity: 1 !important; transition: none !important; }'

_mount = st.components.v2.component(
    "relscope_linked_scatter",
    css=f"{part('panes.css')}{_UNFADED}",
    js=script(scripts("channel", "arrivals", "linked_scatter")),
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
    _mount(
        key=key,
        data=data_of(payload, key),
        on_events_change=partial(_receive, key, version, len(scene), on_event),
    )


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
    return addresses(files, key)


@MadeOnce
def _column(strings: np.ndarray) -> tuple[bytes, str]:
    content = joined_texts(strings)
    return content, digest_of_bytes(content)
