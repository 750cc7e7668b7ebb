"""A migration as a whole: choosers, verdict, and what can be done after it."""

from __future__ import annotations

import streamlit as st

from app import messages
from app.migrate import judge, panel, tabs
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.migrate.migration import NEIGHBOURS

_AFTER = {
    "Judge here, blind": judge.draw,
    "Thresholds": tabs.thresholds,
    "Queries that get worse": tabs.queries_that_get_worse,
    "Export adapter": tabs.export_adapter,
}


def draw(workspace: Workspace) -> None:
    setup = result = None
    try:
        setup = panel.choose(workspace)
        result = panel.measured(setup) if setup else None
    except SpaceError as error:
        messages.error(error)
        st.caption("Choose other vectors or settings above. Load your own by Data, at the top left.")
    if result is None:
        return
    unjudged, result = result.relevance == NEIGHBOURS, judge.judged(setup, result)
    panel.draw(setup, result)
    for name, part in _AFTER.items():
        # without judgements, to judge is the next step
        look = {"expanded": unjudged and part is judge.draw, "key": f"migrate.{name}"}
        with st.expander(name, on_change="rerun", **look) as opened:
            if opened.open:
                part(setup, result)
